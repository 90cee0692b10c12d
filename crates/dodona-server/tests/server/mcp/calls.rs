//! What a client can do.

use dodona_hub::Approvers;
use serde_json::{Value, json};

use super::builder;
use super::client::{Client, messages, post, request, send, stateless};
use crate::support::until;

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

#[tokio::test]
async fn tools_are_those_that_the_token_allows_in_the_groups_that_are_asked_for() {
    let server = builder().start().await;
    let owner = server.owner();
    let usual = Client::begin(&owner).await;
    let listed = usual.ask("tools/list", json!({})).await;
    let offered = names(&listed);
    assert!(
        offered.contains(&"vault_read") && offered.contains(&"test_sleep"),
        "{offered:?}"
    );
    assert!(
        !offered.contains(&"echo_say") && !offered.contains(&"ask"),
        "{offered:?}"
    );
    let echo = Client::begin_at(&owner, "/mcp?tools=echo,ask").await;
    assert_eq!(
        names(&echo.ask("tools/list", json!({})).await),
        ["echo_say"]
    );
    assert_eq!(
        echo.call("echo_say", json!({ "text": "x" })).await["structuredContent"],
        json!({ "text": "x" })
    );
    let (token, _) = server.token("ann", "test", &["vault:read"]).await;
    let ann = server.with_token(&token);
    let hers = Client::begin_at(&ann, "/mcp?tools=all").await;
    assert_eq!(
        names(&hers.ask("tools/list", json!({})).await),
        ["vault_list", "vault_read"]
    );
    let refused = hers
        .ask(
            "tools/call",
            json!({ "name": "echo_say", "arguments": { "text": "x" } }),
        )
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn a_tool_says_what_it_takes_gives_and_does() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin_at(&owner, "/mcp?tools=vault").await;
    let listed = client.ask("tools/list", json!({})).await;
    let read = &listed["result"]["tools"][1];
    assert_eq!(read["name"], "vault_read");
    assert_eq!(read["title"], "Vault: read");
    assert_eq!(read["description"], "Reads one.");
    assert_eq!(read["inputSchema"]["required"], json!(["path"]));
    assert_eq!(read["outputSchema"]["properties"]["text"]["type"], "string");
    let hints = json!({ "title": "Vault: read", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false });
    assert_eq!(read["annotations"], hints);
    assert_eq!(read["_meta"]["dodona/method"], "vault.read");
    server.stop().await;
}

#[tokio::test]
async fn notes_are_resources() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin_at(&owner, "/mcp?tools=vault").await;
    let listed = client.ask("resources/list", json!({})).await;
    let expected = json!([
        { "uri": "dodona://vault/a.md", "name": "a.md", "title": "First", "mimeType": "text/markdown" },
        { "uri": "dodona://vault/b%20c.md", "name": "b c.md", "title": "Second", "mimeType": "text/markdown" },
    ]);
    assert_eq!(listed["result"]["resources"], expected);
    let read = client
        .ask(
            "resources/read",
            json!({ "uri": "dodona://vault/b%20c.md" }),
        )
        .await;
    assert_eq!(read["result"]["contents"][0]["text"], "# Second\n");
    for missing in [
        "dodona://vault/none.md",
        "file:///etc/passwd",
        "dodona://vault/",
    ] {
        let refused = client
            .ask("resources/read", json!({ "uri": missing }))
            .await;
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
    }
    let cursor = client
        .ask("resources/list", json!({ "cursor": "nonsense" }))
        .await;
    assert_eq!(cursor["error"]["code"], -32602);
    server.stop().await;
}

#[tokio::test]
async fn progress_is_told_to_who_asked_for_it_and_grows() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let call = json!({ "name": "test_tool_with_progress", "arguments": {} });
    assert_eq!(client.messages("tools/call", call.clone()).await.len(), 1);
    let mut asked = call;
    asked["_meta"] = json!({ "progressToken": "mine" });
    let said = client.messages("tools/call", asked.clone()).await;
    let told: Vec<&Value> = said
        .iter()
        .filter(|said| said["method"] == "notifications/progress")
        .collect();
    let values: Vec<f64> = told
        .iter()
        .filter_map(|told| told["params"]["progress"].as_f64())
        .collect();
    assert_eq!(values.len(), 3, "{said:?}");
    assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
    assert!(
        told.iter()
            .all(|told| told["params"]["progressToken"] == "mine")
    );
    assert_eq!(said.last().unwrap()["result"]["content"][0]["text"], "done");
    // Without a session it is the same.
    let answer = post(&owner, "/mcp", None, &stateless("tools/call", asked)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(messages(&answer).len(), 4, "{answer:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let params = json!({ "name": "test_sleep", "arguments": { "ms": 600_000 }, "_meta": { "progressToken": 1 } });
    // Told so, within a session.
    let mut waiting = client.open(&request("tools/call", params.clone())).await;
    assert_eq!(waiting.head().await.unwrap().status, 200);
    until("the call to run", async || server.running() == 1).await;
    let stop = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    assert_eq!(client.post(&stop).await.status, 202);
    until("the call to end", async || server.running() == 0).await;
    // By going away, without one.
    let mut leaving = server.connect().await;
    send(
        &mut leaving,
        &owner,
        "/mcp",
        None,
        &stateless("tools/call", params.clone()),
    )
    .await;
    until("the call to run", async || server.running() == 1).await;
    drop(leaving);
    until("the call to end", async || server.running() == 0).await;
    // Within a session, going away says nothing; ending the session does.
    let leaving = client.open(&request("tools/call", params)).await;
    until("the call to run", async || server.running() == 1).await;
    drop(leaving);
    client.call("vault_list", json!({})).await;
    assert_eq!(server.running(), 1);
    assert_eq!(client.other("DELETE").await.status / 100, 2);
    until("the call to end", async || server.running() == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn a_person_is_asked_and_a_refusal_has_no_side_door() {
    let asks = |config: &mut dodona_hub::HubConfig| {
        config.approvals.approvers = Approvers::Available;
        config.approvals.methods = ["vault.read".parse().unwrap()].into();
    };
    let server = builder().hub(|hub| hub.config(asks)).start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let answers = [("hub.approve", false), ("hub.deny", true)];
    for (answer, is_error) in answers {
        let params = json!({ "name": "vault_read", "arguments": { "path": "a.md" }, "_meta": { "progressToken": 1 } });
        let calling = client.messages("tools/call", params);
        let answering = async {
            let mut id = Value::Null;
            until("a question", async || {
                let listed = owner.call("hub.approvals", json!({})).await;
                id = listed["approvals"][0]["id"].clone();
                !id.is_null()
            })
            .await;
            owner
                .call(answer, json!({ "id": id, "reason": "so" }))
                .await;
            id
        };
        let (said, id) = tokio::join!(calling, answering);
        let told = said[0]["params"]["message"].as_str().unwrap();
        assert!(told.starts_with("waiting for a person: "), "{told}");
        assert!(
            told.contains(&format!(
                "dodona approvals approve {}",
                id.as_str().unwrap()
            )),
            "{told}"
        );
        let result = &said.last().unwrap()["result"];
        assert_eq!(result["isError"], is_error, "{result}");
    }
    // A note that is read as a resource passes the same gate.
    let reading = client.ask("resources/read", json!({ "uri": "dodona://vault/a.md" }));
    let refusing = async {
        let mut id = Value::Null;
        until("a question", async || {
            let listed = owner.call("hub.approvals", json!({})).await;
            id = listed["approvals"][0]["id"].clone();
            !id.is_null()
        })
        .await;
        owner.call("hub.deny", json!({ "id": id })).await;
    };
    let (read, ()) = tokio::join!(reading, refusing);
    assert_eq!(read["error"]["data"]["code"], "policy.denied", "{read}");
    server.stop().await;
}

#[tokio::test]
async fn where_nobody_can_answer_the_call_is_refused_at_once() {
    let asks = |config: &mut dodona_hub::HubConfig| {
        config.approvals.methods = ["vault.read".parse().unwrap()].into();
    };
    let server = builder().hub(|hub| hub.config(asks)).start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let refused = client.call("vault_read", json!({ "path": "a.md" })).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(
        refused["_meta"]["dodona/error"]["code"],
        "policy.approval_required"
    );
    server.stop().await;
}
