//! Clients that one would rather not have.

use serde_json::json;

use super::builder;
use super::client::{Client, initialize, post, request};
use crate::support::{Server, soon, until};

const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("Content-Type", "application/json");

async fn status(server: &Server, verb: &str, headers: &[(&str, &str)], body: &[u8]) -> u16 {
    let mut connection = server.connect().await;
    connection.request(verb, "/mcp", headers, body).await;
    connection.response().await.status
}

#[tokio::test]
async fn nobody_gets_in_without_a_token_or_from_elsewhere() {
    let server = builder().start().await;
    let bearer = server.owner().bearer();
    let body = initialize().to_string();
    let body = body.as_bytes();
    for verb in ["POST", "GET", "DELETE"] {
        assert_eq!(
            status(&server, verb, &[ACCEPT, JSON], body).await,
            401,
            "{verb}"
        );
        let wrong = [ACCEPT, JSON, ("Authorization", "Bearer nonsense")];
        assert_eq!(status(&server, verb, &wrong, body).await, 401, "{verb}");
        let elsewhere = [
            ACCEPT,
            JSON,
            ("Authorization", bearer.as_str()),
            ("Origin", "http://evil.example"),
        ];
        assert_eq!(status(&server, verb, &elsewhere, body).await, 403, "{verb}");
    }
    let mut connection = server.connect().await;
    connection.host = "evil.example".to_owned();
    connection
        .request(
            "POST",
            "/mcp",
            &[ACCEPT, JSON, ("Authorization", &bearer)],
            body,
        )
        .await;
    assert_eq!(connection.response().await.status, 403);
    server.stop().await;
}

#[tokio::test]
async fn bodies_that_are_too_large_or_no_json_are_refused() {
    let server = builder()
        .options(|options| options.body_bytes = 10_000)
        .start()
        .await;
    let bearer = server.owner().bearer();
    let headers = [ACCEPT, JSON, ("Authorization", bearer.as_str())];
    let large = format!("\"{}\"", "x".repeat(20_000));
    assert_eq!(
        status(&server, "POST", &headers, large.as_bytes()).await,
        413
    );
    for nonsense in ["", "{", "nonsense", "[1,", "\u{1}"] {
        assert_eq!(
            status(&server, "POST", &headers, nonsense.as_bytes()).await,
            400,
            "{nonsense}"
        );
    }
    let unknown = [
        ACCEPT,
        ("Content-Type", "text/plain"),
        ("Authorization", bearer.as_str()),
    ];
    assert_eq!(status(&server, "POST", &unknown, b"{}").await, 415);
    server.still_serves().await;
    server.stop().await;
}

#[tokio::test]
async fn a_session_is_its_owners_alone_and_over_when_it_was_ended() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let ann = server.user("ann").await;
    let list = request("tools/list", json!({}));
    assert_eq!(
        post(&ann, "/mcp", Some(&client.session), &list)
            .await
            .status,
        404
    );
    assert_eq!(
        post(&owner, "/mcp", Some("nonsense"), &list).await.status,
        404
    );
    assert_eq!(client.post(&list).await.status, 200);
    assert_eq!(client.other("DELETE").await.status / 100, 2);
    assert_eq!(client.post(&list).await.status, 404);
    assert_eq!(client.other("GET").await.status, 404);
    // A request that needs one and names none.
    assert_eq!(post(&owner, "/mcp", None, &list).await.status / 100, 4);
    server.stop().await;
}

#[tokio::test]
async fn a_user_has_so_many_sessions_and_the_one_that_rested_longest_ends() {
    let server = builder().start().await;
    let (owner, ann) = (server.owner(), server.user("ann").await);
    let list = request("tools/list", json!({}));
    let hers = Client::begin(&ann).await;
    let first = Client::begin(&owner).await;
    let second = Client::begin(&owner).await;
    assert_eq!(first.post(&list).await.status, 200);
    for _ in 2..65 {
        Client::begin(&owner).await;
    }
    assert_eq!(second.post(&list).await.status, 404, "it rested longest");
    assert_eq!(first.post(&list).await.status, 200);
    assert_eq!(hers.post(&list).await.status, 200, "somebody else's stay");
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_token_ends_what_is_still_read_with_it() {
    let server = builder()
        .options(|options| options.keep_alive = std::time::Duration::from_millis(100))
        .start()
        .await;
    let (token, id) = server.token("ann", "test", &["test:use"]).await;
    let ann = server.with_token(&token);
    let client = Client::begin(&ann).await;
    let params = json!({ "name": "test_sleep", "arguments": { "ms": 600_000 } });
    let mut reading = client.open(&request("tools/call", params)).await;
    assert_eq!(reading.head().await.unwrap().status, 200);
    server
        .owner()
        .call("hub.token_revoke", json!({ "id": id }))
        .await;
    soon("the stream to end", async {
        while let Ok(Some(_)) = reading.chunk().await {}
    })
    .await;
    assert_eq!(
        client.post(&request("tools/list", json!({}))).await.status,
        401
    );
    server.stop().await;
}

#[tokio::test]
async fn streams_that_nobody_reads_hold_up_nobody_and_end_with_the_server() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let params = json!({ "name": "test_sleep", "arguments": { "ms": 600_000 }, "_meta": { "progressToken": 1 } });
    let mut open = Vec::new();
    for id in 0..20 {
        let mut call = request("tools/call", params.clone());
        call["id"] = json!(100 + id);
        open.push(client.open(&call).await);
    }
    until("all of them to run", async || server.running() == 20).await;
    let other = Client::begin(&owner).await;
    assert_eq!(other.call("vault_list", json!({})).await["isError"], false);
    assert_eq!(client.call("vault_list", json!({})).await["isError"], false);
    server.stop().await;
}

#[tokio::test]
async fn what_the_address_asks_for_must_make_sense() {
    let server = builder().start().await;
    let owner = server.owner();
    for (path, expected) in [
        ("/mcp?tools=vault,,x", 400),
        ("/mcp?tools=", 400),
        ("/mcp?colour=red", 400),
        ("/mcp?project=../x", 404),
        ("/mcp?tools=vault%2Ctest", 200),
    ] {
        assert_eq!(
            post(&owner, path, None, &initialize()).await.status,
            expected,
            "{path}"
        );
    }
    server.stop().await;
}
