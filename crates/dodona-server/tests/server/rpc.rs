//! JSON-RPC 2.0, the same over HTTP and WebSocket.

use serde_json::{Value, json};

use crate::support::{Server, until};
use crate::ws::{BINARY, TEXT};

const PARSE: i64 = -32700;
const INVALID: i64 = -32600;
const UNKNOWN: i64 = -32601;
const PARAMS: i64 = -32602;
const LIMIT: i64 = -32005;

/// What is asked, and the id and number of the error that answers it.
fn refused() -> Vec<(Vec<u8>, Value, i64)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let say = |member: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"echo.say",{member}}}"#).into_bytes()
    };
    let deep = |levels: usize| {
        say(&format!(
            r#""params":{{"text":{}{}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        ))
    };
    vec![
        // Not JSON.
        (text(""), Value::Null, PARSE),
        (text("   "), Value::Null, PARSE),
        (text("{"), Value::Null, PARSE),
        (text("nonsense"), Value::Null, PARSE),
        (
            text(r#"{"jsonrpc":"2.0","id":1,"method":"echo.say"} x"#),
            Value::Null,
            PARSE,
        ),
        (
            text(r#"[{"jsonrpc":"2.0","id":1,"method":"echo.say"},"#),
            Value::Null,
            PARSE,
        ),
        (text(r#"{'jsonrpc':'2.0'}"#), Value::Null, PARSE),
        (text("\u{feff}{}"), Value::Null, PARSE),
        // JSON, but no request.
        (text("1"), Value::Null, INVALID),
        (text("null"), Value::Null, INVALID),
        (text(r#""echo.say""#), Value::Null, INVALID),
        (text("{}"), Value::Null, INVALID),
        (text("[]"), Value::Null, INVALID),
        (text(r#"{"id":7,"method":"echo.say"}"#), json!(7), INVALID),
        (
            text(r#"{"jsonrpc":"1.0","id":7,"method":"echo.say"}"#),
            json!(7),
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":2.0,"id":7,"method":"echo.say"}"#),
            json!(7),
            INVALID,
        ),
        (text(r#"{"jsonrpc":"2.0","id":7}"#), json!(7), INVALID),
        (
            text(r#"{"jsonrpc":"2.0","id":7,"method":null}"#),
            json!(7),
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":7,"method":1}"#),
            json!(7),
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":7,"method":"\ud800"}"#),
            json!(7),
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":7,"method":["echo.say"]}"#),
            json!(7),
            INVALID,
        ),
        (say(r#""params":"text""#), json!(7), INVALID),
        (say(r#""params":1"#), json!(7), INVALID),
        (
            text(r#"{"jsonrpc":"2.0","id":{},"method":"echo.say"}"#),
            Value::Null,
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":[1],"method":"echo.say"}"#),
            Value::Null,
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":true,"method":"echo.say"}"#),
            Value::Null,
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":"2.0","method":1}"#),
            Value::Null,
            INVALID,
        ),
        // Each member once.
        (
            text(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"echo.say"}"#),
            Value::Null,
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":7,"method":"echo.say","method":"echo.fail"}"#),
            Value::Null,
            INVALID,
        ),
        (
            text(r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"echo.say"}"#),
            Value::Null,
            INVALID,
        ),
        (say(r#""params":{},"params":{}"#), Value::Null, INVALID),
        // A request that nothing answers.
        (
            text(r#"{"jsonrpc":"2.0","id":7,"method":"echo.sya"}"#),
            json!(7),
            UNKNOWN,
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":7,"method":""}"#),
            json!(7),
            UNKNOWN,
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":7,"method":"rpc.unknown"}"#),
            json!(7),
            UNKNOWN,
        ),
        // Parameters that do not fit.
        (say(r#""params":{}"#), json!(7), PARAMS),
        (say(r#""params":null"#), json!(7), PARAMS),
        (say(r#""params":{"text":1}"#), json!(7), PARAMS),
        (say(r#""params":["hello"]"#), json!(7), PARAMS),
        (say(r#""params":{"text":1e999}"#), json!(7), PARAMS),
        (say(r#""params":{"text":"\ud800"}"#), json!(7), PARAMS),
        // Parameters that nest: JSON, so the request is one, but nothing we look into.
        (deep(60), json!(7), PARAMS),
        (deep(127), json!(7), LIMIT),
        (deep(200), json!(7), LIMIT),
        (deep(100_000), json!(7), LIMIT),
    ]
}

#[tokio::test]
async fn each_wrong_request_has_its_code_and_id_over_http() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut connection = server.connect().await;
    for (body, id, number) in refused() {
        connection.post(&owner.token, &body).await;
        let response = connection.response().await;
        assert_eq!(response.status, 200);
        assert_refusal(&response.json(), &body, &id, number);
    }
    // Never UTF-8, which a WebSocket's text frames refuse by themselves.
    connection
        .post(
            &owner.token,
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo.\xff\"}",
        )
        .await;
    assert_refusal(
        &connection.response().await.json(),
        b"\xff",
        &Value::Null,
        PARSE,
    );
    connection
        .post(
            &owner.token,
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo.tally\",\"x\":\"\xff\"}",
        )
        .await;
    assert_refusal(
        &connection.response().await.json(),
        b"\xff",
        &Value::Null,
        PARSE,
    );
    connection.post(&owner.token, b"\xff\xfe").await;
    assert_refusal(
        &connection.response().await.json(),
        b"\xff",
        &Value::Null,
        PARSE,
    );
    // All on one connection, which is good for more.
    connection
        .post(
            &owner.token,
            br#"{"jsonrpc":"2.0","id":1,"method":"echo.say","params":{"text":"x"}}"#,
        )
        .await;
    assert_eq!(
        connection.response().await.json()["result"],
        json!({"text": "x"})
    );
    server.stop().await;
}

#[tokio::test]
async fn each_wrong_request_has_its_code_and_id_over_websocket() {
    let server = Server::start().await;
    let mut socket = server.owner().socket().await;
    for (body, id, number) in refused() {
        for opcode in [TEXT, BINARY] {
            socket.frame(0x80 | opcode, &body).await;
            assert_refusal(&socket.json().await, &body, &id, number);
        }
    }
    socket
        .frame(
            0x80 | BINARY,
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo.\xff\"}",
        )
        .await;
    assert_refusal(&socket.json().await, b"\xff", &Value::Null, PARSE);
    assert_eq!(
        socket.call("echo.say", json!({"text": "x"})).await,
        json!({"text": "x"})
    );
    server.stop().await;
}

#[track_caller]
fn assert_refusal(answer: &Value, body: &[u8], id: &Value, number: i64) {
    let asked = String::from_utf8_lossy(&body[..body.len().min(120)]);
    assert_eq!(answer["jsonrpc"], "2.0", "{asked}: {answer}");
    assert_eq!(answer.get("id"), Some(id), "{asked}: {answer}");
    assert_eq!(answer["error"]["code"], number, "{asked}: {answer}");
    assert!(answer.get("result").is_none(), "{asked}: {answer}");
    assert!(
        answer["error"]["data"]["code"].is_string(),
        "{asked}: {answer}"
    );
}

#[tokio::test]
async fn ids_of_every_kind_come_back_exactly_as_they_were() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let ids = [
        "1",
        "0",
        "-1",
        "1.5",
        "-0.0",
        "1E+2",
        "9007199254740993",
        "123456789012345678901234567890",
        "null",
        r#""""#,
        r#""a b""#,
        r#""\u00e4\n\"""#,
        r#""ä🙂""#,
        r#""\ud800""#,
    ];
    for id in ids {
        let request = |method: &str| {
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"text":"x"}},"id":{id}}}"#)
        };
        let answered = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"x"}}}}"#);
        let refused = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
        assert_eq!(owner.post(request("echo.say")).await.text(), answered);
        let response = owner.post(request("echo.nothing")).await.text();
        assert!(response.starts_with(&refused), "{response}");
        socket.say(&request("echo.say")).await;
        let frame = socket.next_message().await.unwrap();
        assert_eq!(String::from_utf8(frame.payload).unwrap(), answered);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_notification_is_run_and_not_answered() {
    let server = Server::start().await;
    let owner = server.owner();
    let response = owner
        .post(r#"{"jsonrpc":"2.0","method":"echo.tally"}"#)
        .await;
    assert_eq!((response.status, response.body.len()), (204, 0));
    assert_eq!(server.inside("echo.tally", json!({})).await["count"], 2);

    let mut socket = owner.socket().await;
    socket
        .say(r#"{"jsonrpc":"2.0","method":"echo.tally"}"#)
        .await;
    // Wrong ones have no id to be answered with, and stay unanswered too.
    socket
        .say(r#"{"jsonrpc":"2.0","method":"echo.nothing"}"#)
        .await;
    socket
        .say(r#"{"jsonrpc":"2.0","method":"echo.say","params":{}}"#)
        .await;
    let answer = socket.ask("echo.say", json!({"text": "first"})).await;
    assert_eq!(answer["result"]["text"], "first");
    until("the notification", async || {
        server.inside("echo.tally", json!({})).await["count"].as_u64() > Some(3)
    })
    .await;
    server.stop().await;
}

fn say(id: u64, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "echo.say", "params": {"text": text}})
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let server = Server::start().await;
    let owner = server.owner();
    // The first takes longest, so the order is not that in which they end.
    let mut batch =
        vec![json!({"jsonrpc": "2.0", "id": 0, "method": "echo.slow", "params": {"ms": 50}})];
    batch.extend((1..50).map(|n| say(n, &n.to_string())));
    batch.push(json!({"jsonrpc": "2.0", "method": "echo.tally"}));
    batch.push(json!({"jsonrpc": "2.0", "id": 50, "method": "echo.fail"}));
    batch.push(json!(1));
    batch.push(json!({"jsonrpc": "2.0", "id": "x", "method": 3}));
    let text = json!(batch).to_string();

    let mut socket = owner.socket().await;
    socket.say(&text).await;
    for answers in [owner.answer(&text).await, socket.json().await] {
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 53, "one for each that is no notification");
        assert_eq!(answers[0]["result"], json!({"ms": 50}));
        for (n, answer) in answers.iter().enumerate().take(50).skip(1) {
            assert_eq!(answer["id"], json!(n));
            assert_eq!(answer["result"]["text"], n.to_string());
        }
        assert_eq!(answers[50]["error"]["code"], -32000);
        let ids = (&answers[50]["id"], &answers[51]["id"], &answers[52]["id"]);
        assert_eq!(ids, (&json!(50), &Value::Null, &json!("x")));
        assert_eq!(answers[51]["error"]["code"], INVALID);
        assert_eq!(answers[52]["error"]["code"], INVALID);
    }
    server.stop().await;
}

#[tokio::test]
async fn an_array_in_a_batch_is_no_request() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let batch = r#"[["2.0","echo.tally",{},1],[["2.0","echo.tally",{},1]],[]]"#;
    socket.say(batch).await;
    for answers in [owner.answer(batch).await, socket.json().await] {
        assert_eq!(answers.as_array().unwrap().len(), 3);
        for answer in answers.as_array().unwrap() {
            assert_refusal(answer, batch.as_bytes(), &Value::Null, INVALID);
        }
    }
    assert_eq!(server.inside("echo.tally", json!({})).await["count"], 1);
    server.stop().await;
}

#[tokio::test]
async fn a_batch_of_the_wrong_size_is_refused_whole() {
    let server = Server::builder()
        .options(|options| options.batch = 3)
        .start()
        .await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let tally = json!({"jsonrpc": "2.0", "id": 1, "method": "echo.tally"});
    let four = json!([tally, tally, tally, tally]).to_string();
    let three = json!([tally, tally, tally]).to_string();

    assert_eq!(owner.answer(&four).await["error"]["code"], LIMIT);
    socket.say(&four).await;
    assert_eq!(socket.json().await["error"]["code"], LIMIT);
    assert_eq!(
        server.inside("echo.tally", json!({})).await["count"],
        1,
        "none was run"
    );
    assert_eq!(owner.answer(&three).await.as_array().unwrap().len(), 3);

    let notifications =
        r#"[{"jsonrpc":"2.0","method":"echo.tally"},{"jsonrpc":"2.0","method":"echo.nothing"}]"#;
    let response = owner.post(notifications).await;
    assert_eq!((response.status, response.body.len()), (204, 0));
    socket.say(notifications).await;
    assert_eq!(
        socket.ask("echo.say", json!({"text": "next"})).await["result"]["text"],
        "next"
    );
    let three_wrong = owner.answer("[1,2,3]").await;
    assert_eq!(three_wrong.as_array().unwrap().len(), 3);
    server.stop().await;
}

#[tokio::test]
async fn batch_entries_are_charged_singly() {
    let limit = dodona_hub::Limit {
        per_second: 1,
        burst: 5,
        concurrent: 0,
    };
    let server = Server::builder()
        .hub(|hub| hub.config(|config| config.limits.user = limit))
        .start()
        .await;
    let batch: Vec<Value> = (0..20).map(|n| say(n, "x")).collect();
    let answers = server.owner().answer(json!(batch).to_string()).await;
    let refused: Vec<&Value> = answers
        .as_array()
        .unwrap()
        .iter()
        .filter(|answer| answer.get("error").is_some())
        .collect();
    assert!(refused.len() >= 14, "{answers}");
    for answer in refused {
        assert_eq!(answer["error"]["data"]["code"], "limit.rate");
        assert!(answer["error"]["data"]["data"]["retry_after_ms"].as_u64() > Some(0));
    }
    server.stop().await;
}

#[tokio::test]
async fn positional_parameters_are_refused_with_a_hint() {
    let server = Server::start().await;
    let answer = server
        .owner()
        .answer(r#"{"jsonrpc":"2.0","id":1,"method":"echo.say","params":["hello"]}"#)
        .await;
    let error = &answer["error"];
    assert_eq!(
        error["message"],
        r#"invalid parameters: ["hello"] is not of type "object""#
    );
    assert_eq!(error["data"]["hint"], "the method takes text* (* required)");
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_with_413() {
    let server = Server::builder()
        .options(|options| options.body_bytes = 1000)
        .start()
        .await;
    let owner = server.owner();
    let padded = |bytes: usize| {
        let request = say(1, "x").to_string();
        format!("{request}{}", " ".repeat(bytes - request.len()))
    };
    assert_eq!(owner.post(padded(1000)).await.status, 200);
    let refused = owner.post(padded(1001)).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (413, "limit.size")
    );

    // With its length unsaid, the limit is met while reading.
    let mut connection = server.connect().await;
    let bearer = owner.bearer();
    connection.send(format!("POST /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", connection.host).as_bytes()).await;
    for _ in 0..20 {
        if connection
            .try_send(format!("64\r\n{}\r\n", " ".repeat(100)).as_bytes())
            .await
            .is_err()
        {
            break;
        }
    }
    let response = connection.response().await;
    assert_eq!(
        (response.status, response.code().as_str()),
        (413, "limit.size")
    );

    // A length that is told is refused before anything is sent.
    let mut connection = server.connect().await;
    connection.send(format!("POST /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n", connection.host).as_bytes()).await;
    assert_eq!(connection.response().await.status, 413);
    connection.closed().await;
    server.still_serves().await;
    server.stop().await;
}

#[tokio::test]
async fn only_json_is_taken() {
    let server = Server::start().await;
    let owner = server.owner();
    let bearer = owner.bearer();
    let body = say(1, "x").to_string();
    let types = [
        (Some("application/json"), 200),
        (Some("application/json; charset=utf-8"), 200),
        (Some("APPLICATION/JSON"), 200),
        (Some("application/json-rpc"), 200),
        (None, 415),
        (Some(""), 415),
        (Some("text/plain"), 415),
        (Some("application/x-www-form-urlencoded"), 415),
        (Some("multipart/form-data; boundary=x"), 415),
        (Some("application/jsonx"), 415),
    ];
    let mut connection = server.connect().await;
    for (content_type, status) in types {
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(content_type.map(|content_type| ("Content-Type", content_type)));
        connection
            .request("POST", "/rpc", &headers, body.as_bytes())
            .await;
        let response = connection.response().await;
        assert_eq!(response.status, status, "{content_type:?}");
        assert_eq!(
            response.json()["id"],
            if status == 200 { json!(1) } else { Value::Null }
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn other_routes_and_verbs_have_their_status() {
    let server = Server::start().await;
    let owner = server.owner();
    let bearer = owner.bearer();
    let cases = [
        ("GET", "/nothing", 404),
        ("GET", "/rpc/", 404),
        ("PUT", "/rpc", 405),
        ("DELETE", "/rpc", 405),
        ("OPTIONS", "/rpc", 405),
        ("POST", "/streams/x", 405),
        ("POST", "/healthz", 405),
        ("GET", "/healthz", 200),
        ("HEAD", "/healthz", 200),
        ("GET", "/", 200),
        ("GET", "/metrics", 404),
        // Not an upgrade.
        ("GET", "/rpc", 426),
    ];
    for (verb, path, status) in cases {
        let mut connection = server.connect().await;
        connection
            .request(verb, path, &[("Authorization", &bearer)], b"")
            .await;
        assert_eq!(
            connection.head().await.unwrap().status,
            status,
            "{verb} {path}"
        );
    }
    let response = owner.get("/rpc").await;
    assert_eq!(response.header("upgrade"), Some("websocket"));
    assert_eq!(owner.get("/healthz").await.json(), json!({"status": "ok"}));
    server.stop().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut connection = server.connect().await;
    for n in 0..20 {
        let ms = if n == 0 { 50 } else { 0 };
        let request =
            json!({"jsonrpc": "2.0", "id": n, "method": "echo.slow", "params": {"ms": ms}});
        connection
            .post(&owner.token, request.to_string().as_bytes())
            .await;
    }
    for n in 0..20 {
        assert_eq!(connection.response().await.json()["id"], n);
    }
    server.stop().await;
}
