//! Tools as methods.

use dodona_proto::{Approval, ItemBody, Mutation};
use dodona_testkit::{TestHub, principal};
use serde_json::{Value, json};

use crate::support::{log, text, with_good};

fn descriptor(hub: &TestHub, method: &str) -> dodona_proto::MethodDescriptor {
    let methods = hub.methods(&principal("ada"));
    let found = methods.iter().find(|known| known.name.as_str() == method);
    (**found.unwrap_or_else(|| panic!("there is no {method}"))).clone()
}

#[tokio::test]
async fn tools_are_methods_with_schema_scope_and_approval() {
    let hub = with_good("").await;
    let say = descriptor(&hub, "good.say");
    assert_eq!(say.description, "The tool say.");
    assert_eq!(say.mutation, Mutation::Reads);
    assert_eq!(say.scope.unwrap().to_string(), "good:read");
    assert_eq!(say.tool.unwrap().approval, Approval::Never);
    let work = descriptor(&hub, "good.work");
    assert_eq!(work.mutation, Mutation::Mutates);
    assert_eq!(work.scope.unwrap().to_string(), "good:write");
    assert_eq!(work.tool.unwrap().approval, Approval::Agents);
    // What is no name of ours is made one, and our own names stay ours.
    let sum = descriptor(&hub, "good.add_up");
    assert_eq!(sum.result["required"], json!(["sum"]));
    assert_eq!(
        text(&hub, "good.tool_resources", json!({})).await,
        "resources ran"
    );
    hub.stop().await;
}

#[tokio::test]
async fn a_call_is_checked_run_and_answered() {
    let hub = with_good("").await;
    assert_eq!(
        text(&hub, "good.say", json!({"text": "héllo"})).await,
        "héllo"
    );
    let sum = hub
        .call("ada", "good.add_up", json!({"a": 2, "b": 3}))
        .await;
    assert_eq!(sum.unwrap(), json!({"sum": 5}));
    let refused = hub
        .call("ada", "good.add_up", json!({"a": "two", "b": 3}))
        .await;
    assert_eq!(refused.unwrap_err().code.as_str(), "rpc.invalid_params");
    let failed = hub.call("ada", "good.fail", json!({})).await.unwrap_err();
    assert_eq!(failed.code.as_str(), "mcp.tool_failed");
    assert_eq!(failed.message, "it [31mfailed");
    let unfit = hub
        .call("ada", "good.wrong_sum", json!({}))
        .await
        .unwrap_err();
    assert_eq!(unfit.code.as_str(), "mcp.bad_result");
    hub.stop().await;
}

#[tokio::test]
async fn progress_becomes_items_of_the_call_in_order() {
    let hub = with_good("").await;
    let stream = hub
        .open("ada", "good.work", json!({"steps": 12}))
        .await
        .unwrap();
    let items: Vec<_> = stream.collect().await.unwrap();
    let steps: Vec<(u32, f32)> = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Progress {
                message,
                percentage,
            } => {
                let number = message.strip_prefix("step ")?.parse().ok()?;
                Some((number, percentage.unwrap()))
            }
            _ => None,
        })
        .collect();
    assert!(steps.is_sorted_by(|a, b| a.0 < b.0), "{steps:?}");
    assert_eq!(steps.last(), Some(&(12, 100.0)));
    assert!(
        items
            .iter()
            .all(|item| item.plugin_path.to_string() == "good")
    );
    hub.stop().await;
}

#[tokio::test]
async fn a_result_that_is_too_large_is_cut_with_a_mark() {
    let hub = with_good("[server]\nmax_output = 1000\n").await;
    let cut = text(&hub, "good.big", json!({"bytes": 5000})).await;
    assert!(
        cut.ends_with("\n[cut: 4000 more bytes; a result has at most 1000]"),
        "{cut}"
    );
    assert_eq!(
        text(&hub, "good.big", json!({"bytes": 1000})).await.len(),
        1000
    );
    hub.stop().await;
}

#[tokio::test]
async fn resources_and_prompts_can_be_read() {
    let hub = with_good("").await;
    let call = async |verb: &str, params: Value| {
        hub.call("ada", &format!("good.{verb}"), params)
            .await
            .unwrap()
    };
    let listed = call("resources", json!({})).await;
    assert_eq!(listed["resources"][0]["uri"], "note://one");
    let read = call("read_resource", json!({"uri": "note://one"})).await;
    assert_eq!(read, json!({"text": "the note"}));
    let listed = call("prompts", json!({})).await;
    assert_eq!(listed["prompts"][0]["name"], "greet");
    let params = json!({"name": "greet", "arguments": {"who": "1 + 1"}});
    let prompt = call("get_prompt", params).await;
    // It is data: nothing in it was rendered.
    assert_eq!(
        prompt["messages"][0]["content"]["text"],
        "Greet {{ 1 + 1 }}."
    );
    hub.stop().await;
}

#[tokio::test]
async fn a_server_sees_no_more_of_our_environment_than_it_needs() {
    let settings = "[server.env]\nTOLD = \"yes\"\nOTHER = { env = \"CARGO_PKG_NAME\" }\n";
    let hub = with_good(settings).await;
    let told = text(&hub, "good.environment", json!({})).await;
    let seen: serde_json::Map<String, Value> = serde_json::from_str(&told).unwrap();
    assert_eq!(seen["TOLD"], "yes");
    assert_eq!(seen["OTHER"], "dodona-extern");
    assert!(seen.contains_key("PATH"));
    assert!(
        !seen.keys().any(|name| name.starts_with("CARGO_")),
        "{seen:?}"
    );
    hub.stop().await;
}

#[tokio::test]
async fn what_a_server_says_beside_is_in_its_log() {
    let hub = with_good("").await;
    let lines = log(&hub, "good").await;
    assert!(
        lines.contains(&"stderr: the good server is here".to_owned()),
        "{lines:?}"
    );
    hub.stop().await;
}
