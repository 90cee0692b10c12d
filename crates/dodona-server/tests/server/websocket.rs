//! WebSocket connections.

use std::time::Duration;

use dodona_testkit::assert_well_formed;
use futures_util::StreamExt;
use jsonrpsee::core::client::{BatchResponse, ClientT, SubscriptionClientT};
use jsonrpsee::core::params::{ArrayParams, BatchRequestBuilder, ObjectParams};
use jsonrpsee::ws_client::{WsClient, WsClientBuilder};
use serde_json::{Value, json};

use crate::sse::{parsed, ticks};
use crate::support::{Server, User, until};
use crate::ws::{BINARY, CLOSE, PING, PONG, TEXT, frame};

#[tokio::test]
async fn a_method_is_subscribed_to_and_its_items_follow() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    let by_subscribe = socket
        .subscribe(json!({"method": "echo.count", "params": {"to": 3}}))
        .await;
    let items = socket.items(&by_subscribe).await;
    assert_well_formed(&parsed(&items));
    assert_eq!(ticks(&items), [1, 2, 3]);

    // Calling a streaming method is the same.
    let directly = socket.call("echo.count", json!({"to": 3})).await;
    let again = socket.items(directly.as_str().unwrap()).await;
    assert_eq!(ticks(&again), [1, 2, 3]);

    // A unary method can be watched too.
    let unary = socket
        .subscribe(json!({"method": "echo.say", "params": {"text": "x"}}))
        .await;
    let items = socket.items(&unary).await;
    assert_eq!(items[0]["data"], json!({"text": "x"}));
    assert_eq!(items[1]["status"], "complete");
    server.stop().await;
}

#[tokio::test]
async fn a_stream_is_read_on_from_where_it_was() {
    let server = Server::start().await;
    let owner = server.owner();
    let stream = owner.begin("echo.count", json!({"to": 20})).await;
    let all = owner.events(&stream, 0).await.items().await;
    let mut socket = owner.socket().await;
    for after in [0, 1, 10, 21] {
        let id = socket
            .subscribe(json!({"stream_id": stream, "after": after}))
            .await;
        assert_eq!(id, stream);
        assert_eq!(socket.items(&stream).await, all[after..]);
    }
    server.stop().await;
}

#[tokio::test]
async fn wrong_subscriptions_are_refused() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    let cases = [
        (json!({}), -32602),
        (json!([]), -32602),
        (
            json!({"method": "echo.count", "stream_id": unknown}),
            -32602,
        ),
        (json!({"method": 1}), -32602),
        (json!({"method": "echo.count", "parms": {}}), -32602),
        (json!({"stream_id": "x"}), -32602),
        (json!({"stream_id": unknown, "after": -1}), -32602),
        (json!({"stream_id": unknown}), -32004),
        (json!({"method": "echo.nothing"}), -32601),
        (json!({"method": "echo.count"}), -32602),
        (json!({"method": "hub.subscribe"}), -32601),
    ];
    for (params, number) in cases {
        let answer = socket.ask("hub.subscribe", params.clone()).await;
        assert_eq!(answer["error"]["code"], number, "{params}: {answer}");
    }
    for params in [
        json!({}),
        json!([]),
        json!(["x"]),
        json!({"subscription": 1}),
    ] {
        let answer = socket.ask("hub.unsubscribe", params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{params}");
    }
    let none = socket.call("hub.unsubscribe", json!([unknown])).await;
    assert_eq!(none, json!(false));
    server.stop().await;
}

#[tokio::test]
async fn unsubscribing_cancels_what_this_connection_started() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let stream = socket
        .subscribe(json!({"method": "echo.count", "params": {"to": 1_000_000, "delay_ms": 1}}))
        .await;
    socket.item(&stream).await;
    let gone = socket.call("hub.unsubscribe", json!([stream])).await;
    assert_eq!(gone, json!(true));
    until("the call to end", async || server.running() == 0).await;
    let calls = owner.call("hub.calls", json!({})).await;
    assert_eq!(calls["calls"], json!([]));
    let items = owner.events(&stream, 0).await.items().await;
    assert_eq!(items.last().unwrap()["status"], "cancelled");
    let again = socket
        .call("hub.unsubscribe", json!({"subscription": stream}))
        .await;
    assert_eq!(again, json!(false));
    server.stop().await;
}

#[tokio::test]
async fn a_reader_that_did_not_start_a_stream_does_not_end_it() {
    let server = Server::start().await;
    let owner = server.owner();
    let stream = owner
        .begin("echo.count", json!({"to": 50, "delay_ms": 10}))
        .await;
    let mut socket = owner.socket().await;
    socket.subscribe(json!({"stream_id": stream})).await;
    socket.item(&stream).await;
    assert_eq!(
        socket.call("hub.unsubscribe", json!([stream])).await,
        json!(true)
    );
    let items = owner.events(&stream, 0).await.items().await;
    assert_eq!(items.last().unwrap()["status"], "complete");
    server.stop().await;
}

#[tokio::test]
async fn a_lost_connection_does_not_cancel() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let stream = socket
        .subscribe(json!({"method": "echo.count", "params": {"to": 300, "delay_ms": 1}}))
        .await;
    let mut seen = vec![socket.item(&stream).await];
    while !seen.last().unwrap()["status"].is_string() {
        // Without a word, in the middle.
        drop(socket);
        socket = owner.socket().await;
        socket
            .subscribe(json!({"stream_id": stream, "after": seen.len()}))
            .await;
        for _ in 0..40 {
            let item = socket.item(&stream).await;
            let ended = item["status"].is_string();
            seen.push(item);
            if ended {
                break;
            }
        }
    }
    assert_well_formed(&parsed(&seen));
    assert_eq!(ticks(&seen), (1..=300).collect::<Vec<_>>());
    assert_eq!(seen.last().unwrap()["status"], "complete");
    server.stop().await;
}

#[tokio::test]
async fn subscriptions_are_limited_also_within_a_batch() {
    let server = Server::builder()
        .options(|options| options.subscriptions = 3)
        .start()
        .await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let count = json!({"to": 1, "delay_ms": 60_000});
    let calls: Vec<Value> = (0..10)
        .map(|n| json!({"jsonrpc": "2.0", "id": n, "method": "echo.count", "params": count}))
        .collect();
    socket.say(&json!(calls).to_string()).await;
    let answers = loop {
        let message = socket.json().await;
        if message.is_array() {
            break message;
        }
    };
    let (open, refused): (Vec<&Value>, Vec<&Value>) = answers
        .as_array()
        .unwrap()
        .iter()
        .partition(|answer| answer.get("result").is_some());
    assert_eq!((open.len(), refused.len()), (3, 7), "{answers}");
    for answer in refused {
        assert_eq!(answer["error"]["data"]["code"], "limit.concurrency");
    }
    assert_eq!(server.running(), 3, "nothing was started for the others");
    // A place that was given back can be used again; other calls need none.
    let first = open[0]["result"].clone();
    let mut socket = drain(socket).await;
    assert_eq!(
        socket.call("hub.unsubscribe", json!([first])).await,
        json!(true)
    );
    socket
        .subscribe(json!({"method": "echo.count", "params": count}))
        .await;
    let refused = socket
        .ask("hub.subscribe", json!({"stream_id": first}))
        .await;
    assert_eq!(refused["error"]["data"]["code"], "limit.concurrency");
    assert_eq!(
        socket.call("echo.say", json!({"text": "x"})).await["text"],
        "x"
    );
    server.stop().await;
}

/// Reads what has come so far, by asking something.
async fn drain(mut socket: crate::ws::Socket) -> crate::ws::Socket {
    socket.call("echo.say", json!({"text": "x"})).await;
    socket
}

#[tokio::test]
async fn more_calls_than_the_limit_wait_and_are_all_answered() {
    let server = Server::builder()
        .options(|options| options.in_flight = 4)
        .start()
        .await;
    let mut socket = server.owner().socket().await;
    for _ in 0..40 {
        socket.send_call("echo.slow", json!({"ms": 10})).await;
    }
    let mut ids = Vec::new();
    for _ in 0..40 {
        let answer = socket.json().await;
        assert_eq!(answer["result"], json!({"ms": 10}));
        ids.push(answer["id"].as_u64().unwrap());
        assert!(server.running() <= 4, "no more than the limit run");
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=40).collect::<Vec<_>>());
    server.stop().await;
}

#[tokio::test]
async fn calls_that_fill_the_connection_for_long_do_not_make_it_idle() {
    let server = Server::builder()
        .options(|options| {
            options.in_flight = 1;
            options.keep_alive = Duration::from_millis(50);
            options.idle_timeout = Duration::from_secs(2);
        })
        .start()
        .await;
    let mut socket = server.owner().socket().await;
    let slow = socket.send_call("echo.slow", json!({"ms": 3000})).await;
    let next = socket.send_call("echo.say", json!({"text": "x"})).await;
    assert_eq!(socket.answer_to(slow).await["result"]["ms"], 3000);
    assert_eq!(socket.answer_to(next).await["result"]["text"], "x");
    server.stop().await;
}

#[tokio::test]
async fn a_slow_call_holds_up_no_other() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    let slow = socket.send_call("echo.slow", json!({"ms": 2000})).await;
    let quick = socket.send_call("echo.say", json!({"text": "x"})).await;
    assert_eq!(socket.json().await["id"], quick);
    assert_eq!(socket.json().await["id"], slow);
    server.stop().await;
}

#[tokio::test]
async fn fragmented_messages_are_put_together() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "echo.say", "params": {"text": "ä🙂"}})
        .to_string();
    let bytes = text.as_bytes();
    for opcode in [TEXT, BINARY] {
        socket.frame(opcode, &bytes[..1]).await;
        for byte in &bytes[1..bytes.len() - 1] {
            socket.frame(0, &[*byte]).await;
            if *byte == b',' {
                // Control frames may come in between.
                socket.frame(0x80 | PING, b"now").await;
                assert_eq!(socket.next_message().await.unwrap().opcode, PONG);
            }
        }
        socket.frame(0x80, &bytes[bytes.len() - 1..]).await;
        assert_eq!(socket.json().await["result"]["text"], "ä🙂");
    }
    // And a frame in single bytes.
    for byte in frame(0x81, bytes, Some([1, 2, 3, 4])) {
        socket.connection.send(&[byte]).await;
    }
    assert_eq!(socket.json().await["result"]["text"], "ä🙂");
    server.stop().await;
}

#[tokio::test]
async fn a_ping_is_answered_with_its_bytes() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    for payload in [b"".as_slice(), b"hello", &[7; 125]] {
        socket.frame(0x80 | PING, payload).await;
        let pong = socket.next_message().await.unwrap();
        assert_eq!((pong.opcode, pong.payload.as_slice()), (PONG, payload));
    }
    // One that nobody asked for is fine.
    socket.frame(0x80 | PONG, b"so").await;
    assert_eq!(
        socket.call("echo.say", json!({"text": "x"})).await["text"],
        "x"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_close_is_answered_with_a_close() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    socket.frame(0x80 | CLOSE, &1000_u16.to_be_bytes()).await;
    assert_eq!(socket.next_message().await.unwrap().close_code(), 1000);
    socket.connection.closed().await;
    server.stop().await;
}

#[tokio::test]
async fn each_breach_of_the_protocol_has_its_close_code() {
    let server = Server::builder()
        .options(|options| options.body_bytes = 1000)
        .start()
        .await;
    let owner = server.owner();
    let mask = Some([1, 2, 3, 4]);
    let (protocol, text, size) = (1002, 1007, 1009);
    let first_half = frame(TEXT, &[b' '; 600], mask);
    let second_half = frame(0x80, &[b' '; 600], mask);
    let cases = [
        ("not masked", frame(0x81, b"{}", None), protocol),
        ("a reserved bit", frame(0xc1, b"{}", mask), protocol),
        ("a reserved kind", frame(0x83, b"{}", mask), protocol),
        (
            "a reserved control kind",
            frame(0x8b, b"{}", mask),
            protocol,
        ),
        (
            "a rest without a beginning",
            frame(0x80, b"{}", mask),
            protocol,
        ),
        (
            "a beginning in a beginning",
            [frame(TEXT, b"{", mask), frame(TEXT, b"}", mask)].concat(),
            protocol,
        ),
        ("a ping in pieces", frame(PING, b"x", mask), protocol),
        (
            "a ping that is too long",
            frame(0x89, &[0; 126], mask),
            protocol,
        ),
        (
            "text that is not UTF-8",
            frame(0x81, b"\xff\xfe", mask),
            text,
        ),
        ("text that breaks off", frame(0x81, b"\xf0\x9f", mask), text),
        ("too large", frame(0x81, &[b' '; 1001], mask), size),
        (
            "too large in binary",
            frame(0x82, &[b' '; 100_000], mask),
            size,
        ),
        (
            "too large together",
            [first_half, second_half].concat(),
            size,
        ),
        (
            "as large as can be said",
            vec![
                0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4,
            ],
            size,
        ),
    ];
    for (what, bytes, code) in cases {
        let mut socket = owner.socket().await;
        let _ = socket.connection.try_send(&bytes).await;
        let close = socket.close_frame().await;
        let close = close.unwrap_or_else(|| panic!("{what}: no close frame"));
        assert_eq!(close.close_code(), code, "{what}");
        socket.connection.closed().await;
    }
    server.still_serves().await;
    server.stop().await;
}

#[tokio::test]
async fn a_message_of_exactly_the_limit_is_taken() {
    let server = Server::builder()
        .options(|options| options.body_bytes = 1000)
        .start()
        .await;
    let mut socket = server.owner().socket().await;
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "echo.say", "params": {"text": "x"}})
        .to_string();
    socket.say(&format!("{text:<1000}")).await;
    assert_eq!(socket.json().await["result"]["text"], "x");
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_let_go() {
    let server = Server::builder()
        .options(|options| {
            options.keep_alive = Duration::from_millis(50);
            options.idle_timeout = Duration::from_secs(2);
        })
        .start()
        .await;
    let owner = server.owner();
    // One answers the pings and stays, the other does not.
    let (mut lively, mut silent) = (owner.socket().await, owner.socket().await);
    let closed = tokio::spawn(async move { silent.close_frame().await.unwrap().close_code() });
    while !closed.is_finished() {
        let ping = lively.next_frame().await.unwrap();
        assert_eq!(ping.opcode, PING);
        lively.frame(0x80 | PONG, &ping.payload).await;
    }
    assert_eq!(closed.await.unwrap(), 1001);
    assert_eq!(
        lively.call("echo.say", json!({"text": "x"})).await["text"],
        "x"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_token_ends_the_connection_even_of_one_who_only_listens() {
    let server = Server::start().await;
    let (token, id) = server.token("alice", "page", &["echo:*"]).await;
    let alice = server.with_token(&token);
    let (mut talking, mut listening, mut quiet) = (
        alice.socket().await,
        alice.socket().await,
        alice.socket().await,
    );
    let stream = listening
        .subscribe(json!({"method": "echo.count", "params": {"to": 1_000_000, "delay_ms": 5}}))
        .await;
    listening.item(&stream).await;
    talking.call("echo.say", json!({"text": "x"})).await;
    server.inside("hub.token_revoke", json!({"id": id})).await;
    for socket in [&mut talking, &mut listening, &mut quiet] {
        assert_eq!(socket.close_frame().await.unwrap().close_code(), 1008);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_shutdown_answers_what_runs_and_closes_with_1001() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    let stream = socket
        .subscribe(json!({"method": "echo.count", "params": {"to": 10, "delay_ms": 60_000}}))
        .await;
    socket.item(&stream).await;
    let slow = socket.send_call("echo.slow", json!({"ms": 200})).await;
    until("the call to run", async || server.running() == 2).await;
    server.shutdown.cancel();
    assert_eq!(socket.answer_to(slow).await["result"]["ms"], 200);
    assert_eq!(socket.close_frame().await.unwrap().close_code(), 1001);
    server.stop().await;
}

#[tokio::test]
async fn items_of_many_subscriptions_come_side_by_side_each_in_order() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    let mut streams: Vec<(String, Vec<Value>)> = Vec::new();
    for n in 0..20 {
        let params = json!({"method": "echo.count", "params": {"to": 50, "delay_ms": n % 3}});
        let id = socket.send_call("hub.subscribe", params).await;
        let answer = socket.answer_to(id).await;
        streams.push((answer["result"].as_str().unwrap().to_owned(), Vec::new()));
    }
    let mut open = streams.len();
    while open > 0 {
        let message = socket.json().await;
        let of = message["params"]["subscription"].as_str().unwrap();
        let (_, items) = streams.iter_mut().find(|(id, _)| id == of).unwrap();
        let item = message["params"]["result"].clone();
        open -= usize::from(item["status"].is_string());
        items.push(item);
    }
    for (_, items) in &streams {
        assert_well_formed(&parsed(items));
        assert_eq!(ticks(items), (1..=50).collect::<Vec<_>>());
    }
    server.stop().await;
}

/// A client of other people's making.
pub(crate) async fn jsonrpsee(user: &User<'_>) -> WsClient {
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", user.bearer().parse().unwrap());
    WsClientBuilder::default()
        .set_headers(headers)
        .build(format!("ws://{}/rpc", user.address))
        .await
        .unwrap()
}

fn object(fields: &[(&str, Value)]) -> ObjectParams {
    let mut params = ObjectParams::new();
    for (name, value) in fields {
        params.insert(name, value).unwrap();
    }
    params
}

#[tokio::test]
async fn the_jsonrpsee_client_calls_and_batches() {
    let server = Server::start().await;
    let client = jsonrpsee(&server.owner()).await;
    let said: Value = client
        .request("echo.say", object(&[("text", json!("x"))]))
        .await
        .unwrap();
    assert_eq!(said, json!({"text": "x"}));

    let failed = client
        .request::<Value, _>("echo.fail", ArrayParams::new())
        .await;
    assert!(failed.is_err(), "{failed:?}");
    client
        .notification("echo.tally", ObjectParams::new())
        .await
        .unwrap();
    until("the notification", async || {
        server.inside("echo.tally", json!({})).await["count"].as_u64() > Some(1)
    })
    .await;

    let mut batch = BatchRequestBuilder::new();
    for n in 0..20 {
        batch
            .insert("echo.say", object(&[("text", json!(n.to_string()))]))
            .unwrap();
    }
    batch.insert("echo.fail", ObjectParams::new()).unwrap();
    let answers: BatchResponse<'_, Value> = client.batch_request(batch).await.unwrap();
    assert_eq!(
        (answers.num_successful_calls(), answers.num_failed_calls()),
        (20, 1)
    );
    for (n, answer) in answers.into_iter().take(20).enumerate() {
        assert_eq!(answer.unwrap()["text"], n.to_string());
    }
    server.stop().await;
}

#[tokio::test]
async fn the_jsonrpsee_client_subscribes_and_unsubscribes() {
    let server = Server::start().await;
    let client = jsonrpsee(&server.owner()).await;
    let subscribe = |to: u64, delay: u64| {
        let params = object(&[
            ("method", json!("echo.count")),
            ("params", json!({"to": to, "delay_ms": delay})),
        ]);
        client.subscribe::<Value, _>("hub.subscribe", params, "hub.unsubscribe")
    };
    let items: Vec<Value> = subscribe(100, 0)
        .await
        .unwrap()
        .take(102)
        .map(Result::unwrap)
        .collect()
        .await;
    assert_well_formed(&parsed(&items));

    let mut long = subscribe(1_000_000, 1).await.unwrap();
    long.next().await.unwrap().unwrap();
    assert_eq!(server.running(), 1);
    long.unsubscribe().await.unwrap();
    until("the call to end", async || server.running() == 0).await;
    server.stop().await;
}
