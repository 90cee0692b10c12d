//! Calls that ask their client something.

use dodona_hub::{Approvers, HubConfig};
use serde_json::{Value, json};

use super::builder;
use super::client::{Client, messages, post, stateless_with};
use crate::support::{Server, User, until};

fn forms() -> Value {
    json!({ "elicitation": {} })
}

/// A server where reading a note requires approval.
async fn careful() -> Server {
    let asks = |config: &mut HubConfig| {
        config.approvals.approvers = Approvers::Available;
        config.approvals.methods = ["vault.read".parse().unwrap()].into();
    };
    builder().hub(|hub| hub.config(asks)).start().await
}

fn read() -> Value {
    json!({ "name": "vault_read", "arguments": { "path": "a.md" } })
}

/// The question that waits.
async fn question(owner: &User<'_>) -> Value {
    let mut found = Value::Null;
    until("a question", async || {
        let listed = owner.call("hub.approvals", json!({})).await;
        found = listed["approvals"][0].clone();
        !found.is_null()
    })
    .await;
    found
}

#[tokio::test]
async fn a_person_in_front_of_the_client_agrees_or_not() {
    let server = careful().await;
    let owner = server.owner();
    let client = Client::begin_with(&owner, "/mcp", forms()).await;
    for (action, is_error, state) in [("accept", false, "approved"), ("decline", true, "denied")] {
        let mut told = client.watch("tools/call", read()).await;
        let asked = told.method("elicitation/create").await;
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("vault.read") && message.contains("a.md"),
            "{message}"
        );
        let content = json!({ "reason": "because" });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": action, "content": content } });
        assert_eq!(client.post(&answer).await.status, 202);
        let result = told.result().await;
        assert_eq!(result["isError"], is_error, "{result}");
        let listed = owner
            .call("hub.approvals", json!({ "all": true, "limit": 1 }))
            .await;
        assert_eq!(listed["approvals"][0]["state"], state, "{listed}");
        assert_eq!(listed["approvals"][0]["reason"], "because");
    }
    server.stop().await;
}

#[tokio::test]
async fn who_closes_the_form_has_not_answered_and_others_still_can() {
    let server = careful().await;
    let owner = server.owner();
    let client = Client::begin_with(&owner, "/mcp", forms()).await;
    let mut told = client.watch("tools/call", read()).await;
    let asked = told.method("elicitation/create").await;
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "cancel" } });
    assert_eq!(client.post(&answer).await.status, 202);
    let waiting = question(&owner).await;
    owner
        .call("hub.approve", json!({ "id": waiting["id"] }))
        .await;
    assert_eq!(told.result().await["isError"], false);
    // One that somebody else answers is taken back.
    let mut aside = client.listen().await;
    let mut told = client.watch("tools/call", read()).await;
    let asked = told.method("elicitation/create").await;
    let waiting = question(&owner).await;
    owner
        .call("hub.approve", json!({ "id": waiting["id"] }))
        .await;
    let taken_back = aside.method("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(told.result().await["isError"], false);
    server.stop().await;
}

#[tokio::test]
async fn a_client_whose_user_may_not_agree_is_not_asked() {
    let server = careful().await;
    let owner = server.owner();
    let (token, _) = server.token("ann", "test", &["vault:read"]).await;
    let ann = server.with_token(&token);
    let client = Client::begin_with(&ann, "/mcp", forms()).await;
    let mut call = read();
    call["_meta"] = json!({ "progressToken": 1 });
    let calling = client.messages("tools/call", call);
    let answering = async {
        let waiting = question(&owner).await;
        owner
            .call("hub.approve", json!({ "id": waiting["id"] }))
            .await;
    };
    let (said, ()) = tokio::join!(calling, answering);
    assert_eq!(said.last().unwrap()["result"]["isError"], false);
    let is_question = |said: &Value| said["method"] == "elicitation/create";
    assert!(!said.iter().any(is_question), "{said:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_tool_that_always_needs_agreement_is_refused_asked_for_or_run() {
    let call = json!({ "name": "test_guarded", "arguments": {} });
    // Where nobody can answer.
    let server = builder().start().await;
    let owner = server.owner();
    let refused = Client::begin(&owner)
        .await
        .call("test_guarded", json!({}))
        .await;
    let about = &refused["_meta"]["dodona/error"];
    assert_eq!(about["code"], "policy.approval_required", "{refused}");
    server.stop().await;
    // Where somebody can, through the client.
    let server = careful().await;
    let owner = server.owner();
    let client = Client::begin_with(&owner, "/mcp", forms()).await;
    let mut told = client.watch("tools/call", call.clone()).await;
    let asked = told.method("elicitation/create").await;
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } });
    client.post(&answer).await;
    assert_eq!(told.result().await["content"][0]["text"], "agreed");
    // And elsewhere.
    let plain = Client::begin(&owner).await;
    let answering = async {
        let waiting = question(&owner).await;
        assert_eq!(waiting["method"], "test.guarded");
        owner
            .call(
                "hub.deny",
                json!({ "id": waiting["id"], "reason": "not now" }),
            )
            .await;
    };
    let (result, ()) = tokio::join!(plain.call("test_guarded", json!({})), answering);
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not now"), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn a_client_without_a_session_comes_back_with_the_answer() {
    let server = careful().await;
    let (owner, ann) = (server.owner(), server.user("ann").await);
    let ask = async |user: &User<'_>, params: Value| {
        let answer = post(
            user,
            "/mcp",
            None,
            &stateless_with("tools/call", params, forms()),
        )
        .await;
        messages(&answer).pop().unwrap()
    };
    let first = ask(&owner, read()).await;
    let result = &first["result"];
    assert_eq!(result["resultType"], "input_required", "{first}");
    let (key, request) = result["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(request["method"], "elicitation/create");
    let back = |word: &str, answers: Value| {
        let mut params = read();
        params["requestState"] = word.into();
        params["inputResponses"] = answers;
        params
    };
    let word = result["requestState"].as_str().unwrap();
    let agreed = json!({ key: { "action": "accept" } });
    // Neither a changed word nor somebody else's counts.
    let changed = ask(&owner, back(&format!("{word}x"), agreed.clone())).await;
    assert_eq!(changed["error"]["code"], -32602, "{changed}");
    let stolen = ask(&ann, back(word, agreed.clone())).await;
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    // Who brings nothing is asked again, and the old word is used up.
    let again = ask(&owner, back(word, json!({}))).await;
    let next = again["result"]["requestState"].as_str().unwrap();
    assert_ne!(next, word);
    let used = ask(&owner, back(word, agreed.clone())).await;
    assert_eq!(used["error"]["code"], -32602, "{used}");
    let done = ask(&owner, back(next, agreed)).await;
    assert_eq!(
        done["result"]["structuredContent"],
        json!({ "text": "# First\n" }),
        "{done}"
    );
    assert_eq!(server.running(), 0);
    server.stop().await;
}
