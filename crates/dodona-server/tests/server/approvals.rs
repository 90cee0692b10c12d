//! A person's agreement, over the wire.

use dodona_hub::Approvers;
use serde_json::{Value, json};

use crate::support::{Server, User, soon, until};

/// A server whose `echo.say` asks first.
async fn asking() -> Server {
    let asks = |config: &mut dodona_hub::HubConfig| {
        config.approvals.approvers = Approvers::Available;
        config.approvals.methods = ["echo.say".parse().unwrap()].into();
    };
    Server::builder().hub(|hub| hub.config(asks)).start().await
}

/// Waits until something is pending, and tells its id.
async fn pending(user: &User<'_>) -> Value {
    let mut found = Value::Null;
    until("a question", async || {
        let listed = user.call("hub.approvals", json!({})).await;
        found = listed["approvals"][0]["id"].clone();
        !found.is_null()
    })
    .await;
    found
}

#[tokio::test]
async fn who_watches_a_call_sees_the_question_and_another_connection_answers() {
    let server = asking().await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let stream = socket
        .subscribe(json!({"method": "echo.say", "params": {"text": "hello"}}))
        .await;
    let asked = socket.item(&stream).await;
    assert_eq!(asked["content_type"], "ApprovalRequest");
    assert_eq!(asked["plugin_path"], "echo");
    assert_eq!(asked["data"]["method"], "echo.say");
    assert_eq!(asked["data"]["params"], json!({"text": "hello"}));
    let id = asked["data"]["approval_id"].clone();
    let answered = owner.call("hub.approve", json!({ "id": id })).await;
    assert_eq!(answered["state"], "approved");
    let rest = socket.items(&stream).await;
    let kinds: Vec<&Value> = rest.iter().map(|item| &item["content_type"]).collect();
    assert_eq!(
        kinds,
        [&json!("ApprovalAnswer"), &json!("Said"), &Value::Null]
    );
    assert_eq!(rest[0]["data"]["answered_by"], "local");
    assert_eq!(rest[1]["data"], json!({"text": "hello"}));
    assert_eq!(rest[2]["status"], "complete");
    server.stop().await;
}

#[tokio::test]
async fn a_plain_request_is_answered_when_somebody_has_agreed_or_not() {
    let server = asking().await;
    let owner = server.owner();
    for (method, result) in [
        ("hub.approve", json!({"text": "x"})),
        ("hub.deny", Value::Null),
    ] {
        let calling = owner.ask("echo.say", json!({"text": "x"}));
        let answering = async {
            let params = json!({"id": pending(&owner).await, "reason": "so"});
            owner.call(method, params).await
        };
        let (answer, _) = soon("both", async { tokio::join!(calling, answering) }).await;
        assert_eq!(answer["result"], result, "{answer}");
        if method == "hub.deny" {
            assert_eq!(answer["error"]["code"], -32009);
            assert_eq!(answer["error"]["data"]["code"], "policy.denied");
            let message = "user `local` denied `echo.say`: so";
            assert_eq!(answer["error"]["message"], message);
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn an_answer_needs_the_scope_and_the_question_must_be_ones_own() {
    let server = asking().await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let stream = socket
        .subscribe(json!({"method": "echo.say", "params": {"text": "hello"}}))
        .await;
    let id = pending(&owner).await;
    let without = server.user("ann").await;
    let (token, _) = server
        .token("bob", "test", &["hub:read", "hub:approve"])
        .await;
    let stranger = server.with_token(&token);
    for (who, code) in [(&without, -32002), (&stranger, -32004)] {
        let listed = who.call("hub.approvals", json!({"all": true})).await;
        assert_eq!(listed["approvals"], json!([]));
        for method in ["hub.approve", "hub.deny"] {
            let refused = who.ask(method, json!({ "id": id })).await;
            assert_eq!(refused["error"]["code"], code, "{refused}");
        }
    }
    assert_eq!(pending(&owner).await, id, "it still waits");
    socket.call("hub.unsubscribe", json!([stream])).await;
    until("the question to end", async || {
        let found = owner.call("hub.approvals", json!({ "id": id })).await;
        found["approvals"][0]["state"] == "cancelled"
    })
    .await;
    server.stop().await;
}
