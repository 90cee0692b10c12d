//! What a client hears without asking.

use serde_json::json;

use super::builder;
use super::client::{Client, Told, send, stateless_with};
use crate::support::{Server, until};

async fn write(server: &Server, path: &str, text: &str) {
    let params = json!({ "path": path, "text": text });
    server.owner().call("vault.write", params).await;
}

#[tokio::test]
async fn a_client_with_a_session_hears_when_tools_and_notes_come_and_go() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let mut told = client.listen().await;
    owner
        .call("plugins.disable", json!({ "plugin": "spare" }))
        .await;
    for what in ["tools", "prompts", "resources"] {
        told.method(&format!("notifications/{what}/list_changed"))
            .await;
    }
    let listed = client.ask("tools/list", json!({})).await;
    assert!(!listed.to_string().contains("spare_present"), "{listed}");
    write(&server, "new.md", "# New\n").await;
    told.method("notifications/resources/list_changed").await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_with_a_session_hears_of_the_notes_it_named() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let mut told = client.listen().await;
    let note = json!({ "uri": "dodona://vault/a.md" });
    let done = client.ask("resources/subscribe", note.clone()).await;
    assert_eq!(done["result"], json!({}), "{done}");
    let missing = json!({ "uri": "dodona://vault/none.md" });
    let refused = client.ask("resources/subscribe", missing).await;
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    write(&server, "b c.md", "another").await;
    write(&server, "a.md", "other").await;
    let updated = told.method("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "dodona://vault/a.md");
    let done = client.ask("resources/unsubscribe", note).await;
    assert_eq!(done["result"], json!({}), "{done}");
    write(&server, "a.md", "once more").await;
    // What comes next is about the list, and not about the note.
    write(&server, "new.md", "# New\n").await;
    let next = told
        .until("a change", |said| said["method"].is_string())
        .await;
    assert_eq!(next["method"], "notifications/resources/list_changed");
    server.stop().await;
}

#[tokio::test]
async fn a_client_without_a_session_hears_what_it_asked_for() {
    let server = builder().start().await;
    let owner = server.owner();
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["dodona://vault/a.md"] } });
    let listen = stateless_with("subscriptions/listen", wanted, json!({}));
    let mut connection = owner.connect().await;
    send(&mut connection, &owner, "/mcp", None, &listen).await;
    let mut told = Told::of(connection).await;
    told.method("notifications/subscriptions/acknowledged")
        .await;
    owner
        .call("plugins.disable", json!({ "plugin": "spare" }))
        .await;
    // It is told first and then looked at the note: so the note has to change until it is noticed.
    let mut n = 0;
    let changing = until("never", async || {
        n += 1;
        write(&server, "a.md", &format!("{n}")).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        false
    });
    let next = told.until("a change", |said| said["method"].is_string());
    let next = tokio::select! {
        next = next => next,
        () = changing => unreachable!("it ends with the other"),
    };
    assert_eq!(next["method"], "notifications/resources/updated");
    assert_eq!(next["params"]["uri"], "dodona://vault/a.md");
    drop(told);
    server.stop().await;
}
