//! Whatever is sent, the server does not panic, answers or closes, and goes on.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::http::Connection;
use crate::support::Server;
use crate::ws::{Socket, frame};

/// How many cases each of the runs has.
const CASES: u32 = 200;

/// Panics of the server's own threads, which are named so.
static PANICS: AtomicU32 = AtomicU32::new(0);

const THREAD: &str = "fuzzed server";

fn watch_for_panics() {
    static WATCHED: OnceLock<()> = OnceLock::new();
    WATCHED.get_or_init(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() == Some(THREAD) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            before(panic);
        }));
    });
}

/// Runs cases against one server; after each, a normal request must work.
fn fuzz<S: Strategy>(strategy: S, case: impl AsyncFn(&Server, S::Value)) {
    watch_for_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(THREAD)
        .enable_all()
        .build()
        .unwrap();
    let server = start(&runtime);
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&strategy, |input| {
        runtime.block_on(async {
            case(&server, input).await;
            server.still_serves().await;
        });
        prop_assert_eq!(PANICS.load(Ordering::SeqCst), 0, "the server panicked");
        Ok(())
    });
    runtime.block_on(server.stop());
    outcome.unwrap();
}

fn start(runtime: &Runtime) -> Server {
    runtime.block_on(async {
        Server::builder()
            .options(|options| {
                // So that whatever waits for more does not wait for long. Every case sends all it
                // has at once, but on a busy machine that may take a while to arrive.
                let soon = std::time::Duration::from_secs(5);
                (options.header_timeout, options.body_timeout) = (soon, soon);
                options.body_bytes = 64 * 1024;
            })
            .start()
            .await
    })
}

/// A response that a client can make sense of: JSON-RPC, or nothing where nothing is due.
async fn well_answered(connection: &mut Connection) {
    let Some(response) = connection.try_response().await else {
        return;
    };
    match response.status {
        // The one page there is.
        200 if response.header("content-type") != Some("application/json") => {}
        200 => {
            let answer = response.json();
            let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
            for answer in answers {
                assert_eq!(answer["jsonrpc"], "2.0");
                assert!(answer.get("id").is_some());
                assert!(answer.get("result").is_some() != answer.get("error").is_some());
            }
        }
        204 => assert!(response.body.is_empty()),
        101 | 303 | 400..=431 => {}
        other => panic!("{other}: {response:?}"),
    }
}

#[test]
fn any_bytes_as_a_body() {
    let bytes = proptest::collection::vec(any::<u8>(), 0..2000);
    fuzz(bytes, async |server, bytes| {
        let mut connection = server.connect().await;
        connection.post(&server.token, &bytes).await;
        well_answered(&mut connection).await;
    });
}

/// JSON of any shape.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(json!("2.0")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((".{0,8}", inner), 0..6)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// Nearly a request: each member right, wrong or missing.
fn near_request() -> impl Strategy<Value = Value> {
    let methods = prop_oneof![
        prop::sample::select(vec![
            "echo.say",
            "echo.count",
            "echo.nest",
            "echo.fail",
            "echo.tally",
            "hub.calls",
            "hub.cancel",
            "hub.subscribe",
            "hub.unsubscribe",
            "hub.stream",
            "hub.methods",
            "rpc.discover",
            "tools/list",
            "hub.tokens",
        ])
        .prop_map(Value::from),
        json_value(),
    ];
    let params = prop_oneof![
        Just(json!({"text": "x"})),
        (0..50_u64).prop_map(|to| json!({"to": to})),
        Just(json!({"method": "echo.count", "params": {"to": 3}})),
        Just(json!({"stream_id": "00000000-0000-4000-8000-000000000000", "after": 1})),
        json_value(),
    ];
    let version = prop_oneof![4 => Just(json!("2.0")), 1 => json_value()];
    let members = (
        prop::option::weighted(0.9, version),
        prop::option::weighted(0.9, json_value()),
        prop::option::weighted(0.95, methods),
        prop::option::weighted(0.8, params),
        prop::option::weighted(0.1, json_value()),
    );
    members.prop_map(|(jsonrpc, id, method, params, extra)| {
        let names = ["jsonrpc", "id", "method", "params", "extra"];
        let fields = names.into_iter().zip([jsonrpc, id, method, params, extra]);
        let fields = fields.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(fields.collect())
    })
}

/// The text of a request or a batch, sometimes with bytes changed.
fn near_message() -> impl Strategy<Value = Vec<u8>> {
    let message = prop_oneof![
        3 => near_request(),
        1 => proptest::collection::vec(near_request(), 0..8).prop_map(Value::from),
    ];
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (message, prop::option::weighted(0.3, changes)).prop_map(|(message, changes)| {
        let mut bytes = message.to_string().into_bytes();
        for (at, byte) in changes.into_iter().flatten() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

#[test]
fn nearly_right_requests_over_http() {
    fuzz(near_message(), async |server, bytes| {
        let mut connection = server.connect().await;
        connection.post(&server.token, &bytes).await;
        well_answered(&mut connection).await;
    });
}

#[test]
fn nearly_right_requests_over_websocket() {
    let messages = proptest::collection::vec((any::<bool>(), near_message()), 1..4);
    fuzz(messages, async |server, messages| {
        let mut socket = Socket::open(server.address, &server.token).await;
        for (text, bytes) in messages {
            let kind = if text { 0x81 } else { 0x82 };
            let frame = frame(kind, &bytes, Some([1, 2, 3, 4]));
            let _ = socket.connection.try_send(&frame).await;
        }
        let last =
            json!({"jsonrpc": "2.0", "id": "last", "method": "echo.say", "params": {"text": "x"}});
        let _ = socket
            .connection
            .try_send(&frame(
                0x81,
                last.to_string().as_bytes(),
                Some([1, 2, 3, 4]),
            ))
            .await;
        // Everything that comes is JSON; the last is answered unless the text was not UTF-8.
        while let Some(message) = socket.fresh_json().await {
            if message["id"] == "last" && message.get("result").is_some() {
                break;
            }
        }
    });
}

#[test]
fn any_bytes_after_the_handshake() {
    let frames = (
        any::<u8>(),
        proptest::collection::vec(any::<u8>(), 0..300),
        prop::option::weighted(0.8, any::<[u8; 4]>()),
    )
        .prop_map(|(first, payload, mask)| frame(first, &payload, mask));
    let raw = proptest::collection::vec(any::<u8>(), 1..400);
    let pieces = proptest::collection::vec(prop_oneof![frames, raw], 1..5);
    fuzz(pieces, async |server, pieces| {
        let mut socket = Socket::open(server.address, &server.token).await;
        for piece in pieces {
            if socket.connection.try_send(&piece).await.is_err() {
                break;
            }
        }
        // Half a frame may be waited for; who sent it goes away in the end.
        let patience = std::time::Duration::from_millis(20);
        let _ = tokio::time::timeout(patience, async {
            while socket.next_frame().await.is_some() {}
        })
        .await;
    });
}

#[test]
fn any_values_of_the_headers_we_read() {
    let names = prop::sample::select(vec![
        "Host",
        "Origin",
        "Authorization",
        "Cookie",
        "Last-Event-ID",
        "X-Dodona-Project",
        "X-Dodona-Surface",
        "Content-Type",
        "Upgrade",
        "Connection",
        "Sec-WebSocket-Key",
        "Sec-WebSocket-Version",
        "Expect",
    ]);
    let values = prop_oneof![
        proptest::collection::vec(
            any::<u8>().prop_filter("no line break", |b| !b"\r\n".contains(b)),
            0..60
        ),
        "[ -~]{0,40}".prop_map(String::into_bytes),
        prop::sample::select(vec![
            "127.0.0.1",
            "localhost:0",
            "http://127.0.0.1",
            "Bearer ",
            "Bearer dod_",
            "dodona_session=",
            "dodona_session",
            ";;=;",
            "18446744073709551615",
            "-1",
            "websocket",
            "upgrade",
            "13",
            "100-continue"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    let routes = prop::sample::select(vec![
        ("GET", "/rpc"),
        ("POST", "/rpc"),
        ("GET", "/streams/00000000-0000-4000-8000-000000000000"),
        ("GET", "/streams/%00"),
        ("GET", "/metrics"),
        ("GET", "/login?code=%ff"),
        ("GET", "/"),
        ("GET", "/streams/x?after=%31"),
    ]);
    let request = (
        routes,
        any::<bool>(),
        any::<bool>(),
        proptest::collection::vec((names, values), 0..5),
    );
    fuzz(
        request,
        async |server, ((verb, path), host, token, headers)| {
            let mut bytes = format!("{verb} {path} HTTP/1.1\r\n").into_bytes();
            if host {
                bytes.extend(format!("Host: {}\r\n", server.address).into_bytes());
            }
            if token {
                bytes.extend(format!("Authorization: Bearer {}\r\n", server.token).into_bytes());
            }
            for (name, value) in headers {
                bytes.extend(name.as_bytes());
                bytes.extend(b": ");
                bytes.extend(value);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"Content-Length: 2\r\n\r\n{}");
            let mut connection = server.connect().await;
            let _ = connection.try_send(&bytes).await;
            well_answered(&mut connection).await;
        },
    );
}
