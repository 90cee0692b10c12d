//! Two users who never see each other, on any transport.

use serde_json::{Value, json};

use crate::support::{Server, User, until};

async fn refusals(other: &User<'_>, stream: &str) -> [Value; 4] {
    let mut socket = other.socket().await;
    let sse = other.get(&format!("/streams/{stream}")).await;
    assert_eq!(sse.status, 404);
    [
        sse.json(),
        other.ask("hub.stream", json!({"stream_id": stream})).await,
        other.ask("hub.cancel", json!({"stream_id": stream})).await,
        socket
            .ask("hub.subscribe", json!({"stream_id": stream}))
            .await,
    ]
}

#[tokio::test]
async fn somebody_elses_stream_is_as_one_that_never_was() {
    let server = Server::start().await;
    let (alice, bob) = (server.user("alice").await, server.user("bob").await);
    let running = alice
        .begin("echo.count", json!({"to": 2, "delay_ms": 60_000}))
        .await;
    let ended = alice.begin("echo.count", json!({"to": 2})).await;
    alice.events(&ended, 0).await.items().await;
    let never = "00000000-0000-4000-8000-000000000000".to_owned();

    let without_the_id =
        |answers: [Value; 4], id: &str| answers.map(|answer| answer.to_string().replace(id, "ID"));
    let expected = without_the_id(refusals(&bob, &never).await, &never);
    for stream in [&running, &ended] {
        let answers = refusals(&bob, stream).await;
        for answer in &answers {
            assert_eq!(answer["error"]["data"]["code"], "hub.not_found", "{answer}");
        }
        assert_eq!(without_the_id(answers, stream), expected);
    }
    assert_eq!(server.running(), 1, "bob did not cancel it");
    // What she may do, and the owner, who may see everybody.
    assert_eq!(
        alice.ask("hub.stream", json!({"stream_id": ended})).await["result"]["ended"],
        "complete"
    );
    assert_eq!(
        server.owner().events(&ended, 0).await.items().await.len(),
        4
    );
    alice
        .call("hub.cancel", json!({"stream_id": running}))
        .await;
    server.stop().await;
}

#[tokio::test]
async fn lists_show_only_ones_own() {
    let server = Server::start().await;
    let (alice, bob) = (server.user("alice").await, server.user("bob").await);
    let mut of_alice = alice.socket().await;
    let mut of_bob = bob.socket().await;
    let slow = of_alice.send_call("echo.slow", json!({"ms": 60_000})).await;
    let stream = of_alice
        .subscribe(json!({"method": "echo.count", "params": {"to": 2, "delay_ms": 60_000}}))
        .await;
    until("both to run", async || server.running() == 2).await;

    assert_eq!(
        of_bob.call("hub.calls", json!({})).await["calls"],
        json!([])
    );
    assert_eq!(bob.call("hub.calls", json!({})).await["calls"], json!([]));
    assert_eq!(
        alice.call("hub.calls", json!({})).await["calls"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let tokens = bob.call("hub.tokens", json!({})).await;
    let owners: Vec<&Value> = tokens["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| &token["user"])
        .collect();
    assert_eq!(owners, ["bob"]);

    let hers = alice.call("hub.tokens", json!({})).await["tokens"][0]["id"].clone();
    let refused = of_bob.ask("hub.token_revoke", json!({"id": hers})).await;
    assert_eq!(refused["error"]["code"], -32004);
    // A path names calls of anybody; only one's own are stopped.
    let stopped = bob.call("hub.cancel", json!({"path": "echo"})).await;
    assert_eq!(stopped["stopped"], json!([]));
    assert_eq!(server.running(), 2);
    let other = of_bob.call("hub.unsubscribe", json!([stream])).await;
    assert_eq!(other, json!(false));
    assert_eq!(server.running(), 2);

    let stopped = alice.call("hub.cancel", json!({"path": "echo"})).await;
    assert_eq!(stopped["stopped"].as_array().unwrap().len(), 2);
    assert_eq!(
        of_alice.answer_to(slow).await["error"]["data"]["code"],
        "call.cancelled"
    );
    server.stop().await;
}

#[tokio::test]
async fn one_users_limits_are_not_anothers() {
    let limit = dodona_hub::Limit {
        per_second: 1,
        burst: 3,
        concurrent: 0,
    };
    let server = Server::builder()
        .hub(|hub| hub.config(|config| config.limits.user = limit))
        .start()
        .await;
    // Made from within, which the limits on the owner's calls do not count.
    let mut tokens = Vec::new();
    for user in ["alice", "bob"] {
        let principal = std::sync::Arc::new(dodona_proto::Principal {
            user: dodona_proto::UserId::new(&format!("maker-of-{user}")).unwrap(),
            scopes: dodona_proto::Scopes::all(),
            surface: dodona_proto::Surface::Internal,
        });
        let params = json!({"user": user, "name": "test", "scopes": ["*"]});
        let made = server
            .hub
            .call(dodona_hub::Request::new(
                principal,
                "hub.token_create",
                params,
            ))
            .await
            .unwrap();
        tokens.push(made["token"].as_str().unwrap().to_owned());
    }
    let (alice, bob) = (server.with_token(&tokens[0]), server.with_token(&tokens[1]));
    let mut refused = Value::Null;
    for _ in 0..20 {
        let answer = alice.ask("echo.say", json!({"text": "x"})).await;
        if answer.get("error").is_some() {
            refused = answer;
        }
    }
    assert_eq!(refused["error"]["data"]["code"], "limit.rate");
    assert_eq!(
        bob.ask("echo.say", json!({"text": "x"})).await["result"]["text"],
        "x"
    );
    server.stop().await;
}
