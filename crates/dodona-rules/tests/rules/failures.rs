//! Tool calls of a model that fail, in every way.

use std::sync::Arc;

use dodona_hub::{Approvers, HubConfig};
use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::rig::{Rig, calls_echo, calls_fail, rule, until};

/// Notes every failed call with its tool and its ending.
fn noted() -> String {
    rule(
        "noted",
        "on_tool_failure",
        "True",
        "type = \"log\"\nmessage = \"{{ context.result.tool_name }} {{ context.event.payload.ending }}\"",
    )
}

#[tokio::test]
async fn every_kind_of_failure_reaches_on_tool_failure_exactly_once() {
    let deny = rule(
        "deny",
        "on_tool_call",
        "context.call.arguments.get('text', '') == 'secret'",
        "type = \"deny\"\nmessage = \"no\"",
    );
    let rig = Rig::with(&[("a.toml", &noted()), ("b.toml", &deny)]).await;
    let reply = Reply::stream()
        .tool_call("c1", "tools_echo", &["[1]"])
        .tool_call("c2", "tools_echo", &["5"])
        .tool_call("c3", "tools_echo", &["\"s\""])
        .tool_call("c4", "tools_echo", &["{bad"])
        .tool_call("c5", "tools_echo", &["{\"text\":5}"])
        .tool_call("c6", "tools_nothing", &["{}"])
        .tool_call("c7", "Not a tool!", &["{}"])
        .tool_call("c8", "tools_fail", &["{}"])
        .tool_call("c9", "tools_hang", &["{}"])
        .tool_call("c10", "tools_echo", &["{\"text\":\"secret\"}"]);
    rig.ask([reply, Reply::text("Done.")]).await;
    let log = rig.log().await;
    let mut seen: Vec<String> = log
        .iter()
        .filter(|one| one["rule"] == "rules/noted")
        .map(|one| one["decisions"][0]["message"].as_str().unwrap().to_owned())
        .collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            "Not a tool! error",
            "tools_echo denied",
            "tools_echo error",
            "tools_echo error",
            "tools_echo error",
            "tools_echo error",
            "tools_echo error",
            "tools_fail error",
            "tools_hang timeout",
            "tools_nothing error",
        ]
    );
    // The journal has each of them too, with what a rule needs to be evaluated again.
    let events = rig.events("tool.call.failure").await;
    assert_eq!(events.len(), 10);
    for event in &events {
        for field in [
            "tool_name",
            "method",
            "path",
            "arguments",
            "snapshot",
            "ending",
            "error",
        ] {
            assert!(
                !event.payload[field].is_null(),
                "{field}: {}",
                event.payload
            );
        }
    }
}

#[tokio::test]
async fn a_call_that_failed_three_times_is_not_run_again() {
    let rig = Rig::with(&[]).await;
    let calls = ["c1", "c2", "c3", "c4", "c5"].map(calls_fail);
    let answer = rig
        .ask(calls.into_iter().chain([Reply::text("Done.")]))
        .await;
    assert_eq!(answer.endings(), ["error"; 5]);
    let ran = rig.events("tool.call.pending").await;
    assert_eq!(ran.len(), 3);
    assert!(rig.sent()[5].contains("failed 3 times in a row with the same arguments"));
}

#[tokio::test]
async fn too_many_turns_are_not_reported_as_too_many_calls() {
    let rig = Rig::with_options(|options| options.max_turns = 2).await;
    let answer = rig
        .ask([
            calls_echo("c1", "a"),
            calls_echo("c2", "b"),
            // The last request, without tools.
            Reply::text("This is all I know."),
        ])
        .await;
    let shown = serde_json::to_string(&answer.items).unwrap();
    assert!(shown.contains("limit.turns"), "{shown}");
    assert!(!shown.contains("limit.concurrency"), "{shown}");
}

#[tokio::test]
async fn a_denied_call_is_not_asked_about_again_in_the_same_query() {
    let ask = rule(
        "ask",
        "on_tool_call",
        "context.call.tool_name == 'tools_echo'",
        "type = \"require_approval\"\nmessage = \"Echo?\"",
    );
    let mut config = HubConfig::default();
    config.approvals.approvers = Approvers::Available;
    let rig = Arc::new(Rig::set_up(config, &[("a.toml", &ask)]).await);
    let asking = Arc::clone(&rig);
    let asked = tokio::spawn(async move {
        let calls = ["c1", "c2"].map(|id| calls_echo(id, "x"));
        asking
            .ask(calls.into_iter().chain([Reply::text("Done.")]))
            .await
    });
    let approvals = || async {
        let found = rig.call("hub.approvals", json!({ "all": true })).await;
        found.unwrap()["approvals"].as_array().unwrap().clone()
    };
    until("the question is there", || async {
        !approvals().await.is_empty()
    })
    .await;
    let id = approvals().await[0]["id"].clone();
    rig.call("hub.deny", json!({ "id": id })).await.unwrap();
    let answer = asked.await.unwrap();
    assert_eq!(answer.endings(), ["denied", "denied"]);
    assert_eq!(approvals().await.len(), 1);
    assert!(
        rig.sent()[2].contains("denied before in this query"),
        "{}",
        rig.sent()[2]
    );
}

#[tokio::test]
async fn outside_of_a_query_only_refusals_apply_unless_a_rule_names_the_surface() {
    let surfaces = "surfaces = [\"cli\", \"rpc\", \"web\", \"mcp\", \"internal\"]\n";
    let counts = rule(
        "counts",
        "on_tool_complete",
        "True",
        "type = \"set_state\"\nkey = \"calls\"\nvalue = \"{{ context.state.get('calls', 0) + 1 }}\"",
    );
    let inside = counts.replace(surfaces, "");
    let everywhere = counts
        .replace("counts", "everywhere")
        .replace("calls", "all");
    let deny = rule(
        "deny",
        "on_tool_call",
        "context.call.arguments.get('text', '') == 'secret'",
        "type = \"deny\"\nmessage = \"no\"",
    );
    let rig = Rig::with(&[
        ("a.toml", &inside),
        ("b.toml", &everywhere),
        ("c.toml", &deny),
    ])
    .await;
    rig.echo("x").await.unwrap();
    assert!(rig.echo("secret").await.is_err());
    assert_eq!(
        (rig.fired("counts").await, rig.fired("everywhere").await),
        (0, 1)
    );
    let liveness = rig.listed("rules/counts").await.unwrap()["liveness"].clone();
    assert_eq!(liveness["evaluated"], 0, "{liveness}");
    let explained = rig
        .call("rules.explain", json!({ "rule": "counts" }))
        .await
        .unwrap();
    assert_eq!(
        explained["events"][0]["verdict"], "outside_query",
        "{explained}"
    );
    rig.ask([calls_echo("c1", "y"), Reply::text("Done.")]).await;
    assert_eq!(
        (rig.fired("counts").await, rig.fired("everywhere").await),
        (1, 2)
    );
}
