//! `GET /streams/{id}`.

use std::net::SocketAddr;
use std::time::Duration;

use dodona_proto::HubStreamItem;
use dodona_testkit::{Chance, assert_well_formed};
use serde_json::{Value, json};

use crate::http::{BrokenOff, Connection};
use crate::support::{Server, until};

/// A reader of server-sent events.
pub(crate) struct Events {
    connection: Connection,
    text: String,
}

/// One event, or a comment.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: String,
    pub(crate) comment: bool,
    pub(crate) retry: Option<u64>,
}

impl Events {
    pub(crate) async fn open(address: SocketAddr, token: &str, stream: &str, after: u64) -> Self {
        Self::over(Connection::open(address).await, token, stream, after).await
    }

    pub(crate) async fn over(
        mut connection: Connection,
        token: &str,
        stream: &str,
        after: u64,
    ) -> Self {
        let bearer = format!("Bearer {token}");
        let path = format!("/streams/{stream}?after={after}");
        connection
            .request("GET", &path, &[("Authorization", &bearer)], b"")
            .await;
        let head = connection.head().await.expect("a response");
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("cache-control"), Some("no-store"));
        Self::of(connection)
    }

    /// Reads the body of a response whose head was read.
    pub(crate) fn of(connection: Connection) -> Self {
        Self {
            connection,
            text: String::new(),
        }
    }

    /// The next event or comment; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, BrokenOff> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = parse(event);
                self.text = rest.to_owned();
                return Ok(Some(event));
            }
            match self.connection.chunk().await? {
                Some(piece) => self.text.push_str(std::str::from_utf8(&piece).unwrap()),
                None => return Ok(None),
            }
        }
    }

    /// The next item; `None` at the end of the body.
    pub(crate) async fn item(&mut self) -> Result<Option<Value>, BrokenOff> {
        while let Some(event) = self.next().await? {
            let Some(id) = event.id else { continue };
            let item: Value = serde_json::from_str(&event.data).unwrap();
            assert_eq!(item["seq"], id);
            assert_eq!(event.event, kind(&item));
            return Ok(Some(item));
        }
        Ok(None)
    }

    /// Every item to the end of the body.
    pub(crate) async fn items(mut self) -> Vec<Value> {
        let mut items = Vec::new();
        while let Some(item) = self.item().await.unwrap() {
            items.push(item);
        }
        items
    }
}

/// A browser's way to read an event: lines end with `\n`, `\r` or both.
fn parse(text: &str) -> Event {
    assert!(!text.contains('\r'), "{text:?}");
    let mut event = Event::default();
    for line in text.split('\n') {
        match line.split_once(": ").unwrap() {
            ("id", id) => event.id = Some(id.parse().unwrap()),
            ("event", kind) => event.event = kind.to_owned(),
            ("data", data) => event.data.push_str(data),
            ("retry", retry) => event.retry = Some(retry.parse().unwrap()),
            ("", _) => event.comment = true,
            other => panic!("a line {other:?}"),
        }
    }
    event
}

fn kind(item: &Value) -> &'static str {
    let has = |field: &str| item.get(field).is_some();
    match () {
        () if has("status") => "done",
        () if has("error") => "error",
        () if has("content_type") => "data",
        () => "progress",
    }
}

pub(crate) fn parsed(items: &[Value]) -> Vec<HubStreamItem> {
    let parse = |item: &Value| serde_json::from_value(item.clone()).unwrap();
    items.iter().map(parse).collect()
}

/// The numbers an `echo.count` gave.
pub(crate) fn ticks(items: &[Value]) -> Vec<u64> {
    items
        .iter()
        .filter_map(|item| item["data"]["n"].as_u64())
        .collect()
}

#[tokio::test]
async fn items_come_as_events_and_then_204() {
    let server = Server::start().await;
    let owner = server.owner();
    let stream = owner.begin("echo.count", json!({"to": 3})).await;
    let items = owner.events(&stream, 0).await.items().await;
    assert_well_formed(&parsed(&items));
    assert_eq!(ticks(&items), [1, 2, 3]);
    let first = json!({"call_id": stream, "seq": 1, "plugin_path": "echo", "message": "counting to 3", "percentage": 0.0});
    let second = json!({"call_id": stream, "seq": 2, "plugin_path": "echo", "content_type": "Tick", "data": {"n": 1}});
    let last = json!({"call_id": stream, "seq": 5, "plugin_path": "echo", "status": "complete", "reason": null});
    assert_eq!((&items[0], &items[1], &items[4]), (&first, &second, &last));

    let over = owner.get(&format!("/streams/{stream}?after=5")).await;
    assert_eq!((over.status, over.body.len()), (204, 0));
    assert_eq!(
        owner
            .get(&format!("/streams/{stream}?after=99999"))
            .await
            .status,
        204
    );
    server.stop().await;
}

#[tokio::test]
async fn a_reader_can_resume_at_every_position() {
    let server = Server::start().await;
    let owner = server.owner();
    let stream = owner
        .begin("echo.nest", json!({"depth": 2, "width": 3}))
        .await;
    let all = owner.events(&stream, 0).await.items().await;
    assert_well_formed(&parsed(&all));
    for after in 0..all.len() {
        let rest = owner.events(&stream, after as u64).await.items().await;
        assert_eq!(rest, all[after..]);
    }
    server.stop().await;
}

#[tokio::test]
async fn last_event_id_counts_more_than_the_address() {
    let server = Server::start().await;
    let owner = server.owner();
    let stream = owner.begin("echo.count", json!({"to": 8})).await;
    owner.events(&stream, 0).await.items().await;
    let bearer = owner.bearer();
    let cases = [
        ("?after=2", Some("7"), Some(8)),
        ("", Some("7"), Some(8)),
        ("?after=2", None, Some(3)),
        ("", None, Some(1)),
        ("?after=0", Some("0"), Some(1)),
        ("?after=1", Some("10"), None),
    ];
    for (query, last, first) in cases {
        let mut connection = server.connect().await;
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(last.map(|last| ("Last-Event-ID", last)));
        let path = format!("/streams/{stream}{query}");
        connection.request("GET", &path, &headers, b"").await;
        let response = connection.response().await;
        let Some(first) = first else {
            assert_eq!(response.status, 204);
            continue;
        };
        let text = response.text();
        assert!(
            text.contains(&format!("id: {first}\n")),
            "{query} {last:?}: {text}"
        );
        assert!(
            !text.contains(&format!("id: {}\n", first - 1)),
            "{query} {last:?}: {text}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_position_that_is_no_number_is_refused() {
    let server = Server::start().await;
    let owner = server.owner();
    let stream = owner.begin("echo.count", json!({"to": 1})).await;
    let bearer = owner.bearer();
    for wrong in ["x", "-1", "1.5", "", "18446744073709551616", "0x1", "1,2"] {
        let response = owner.get(&format!("/streams/{stream}?after={wrong}")).await;
        assert_eq!(response.status, 400, "after={wrong}");
        assert_eq!(response.code(), "rpc.invalid_params");
        let mut connection = server.connect().await;
        let headers = [("Authorization", bearer.as_str()), ("Last-Event-ID", wrong)];
        connection
            .request("GET", &format!("/streams/{stream}"), &headers, b"")
            .await;
        assert_eq!(
            connection.response().await.status,
            400,
            "Last-Event-ID: {wrong}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_quiet_stream_sends_comments() {
    let server = Server::builder()
        .options(|options| options.keep_alive = Duration::from_millis(20))
        .start()
        .await;
    let owner = server.owner();
    let stream = owner
        .begin("echo.count", json!({"to": 1, "delay_ms": 60_000}))
        .await;
    let mut events = owner.events(&stream, 0).await;
    assert_eq!(events.next().await.unwrap().unwrap().retry, Some(1000));
    let mut comments = 0;
    while comments < 3 {
        comments += u32::from(events.next().await.unwrap().unwrap().comment);
    }
    server.stop().await;
}

#[tokio::test]
async fn two_readers_see_the_same() {
    let server = Server::start().await;
    let owner = server.owner();
    let stream = owner
        .begin("echo.count", json!({"to": 200, "delay_ms": 1}))
        .await;
    let (one, two) = (
        owner.events(&stream, 0).await,
        owner.events(&stream, 0).await,
    );
    let (one, two) = tokio::join!(one.items(), two.items());
    assert_eq!(one, two);
    assert_well_formed(&parsed(&one));
    assert_eq!(ticks(&one), (1..=200).collect::<Vec<_>>());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_comes_and_goes_misses_nothing_and_sees_nothing_twice() {
    let seed = Chance::seed();
    println!("DODONA_SEED={seed}");
    let server = Server::start().await;
    let streams = (0..8).map(|n| {
        let (server, mut chance) = (&server, Chance::from_seed(seed + n));
        async move {
            let owner = server.owner();
            let (to, delay) = (2_000, n % 2);
            let stream = owner
                .begin("echo.count", json!({"to": to, "delay_ms": delay}))
                .await;
            let (mut seen, mut visits) = (Vec::new(), 0);
            loop {
                visits += 1;
                let mut events = owner.events(&stream, seen.len() as u64).await;
                let leave_after = chance.below(60);
                let mut ended = false;
                for _ in 0..leave_after {
                    match events.item().await.unwrap() {
                        Some(item) => seen.push(item),
                        None => {
                            ended = true;
                            break;
                        }
                    }
                }
                if ended || seen.last().is_some_and(|last| kind(last) == "done") {
                    break;
                }
            }
            assert!(visits > 30, "{visits}");
            assert_well_formed(&parsed(&seen));
            assert_eq!(ticks(&seen), (1..=to).collect::<Vec<_>>());
        }
    });
    futures_util::future::join_all(streams).await;
    server.stop().await;
}

#[tokio::test]
async fn a_lost_reader_does_not_cancel_but_nobody_at_all_does() {
    let server = Server::builder()
        .hub(|hub| hub.config(|config| config.stream_grace = Duration::from_millis(200)))
        .start()
        .await;
    let owner = server.owner();
    let stream = owner
        .begin("echo.count", json!({"to": 1_000_000, "delay_ms": 1}))
        .await;
    for visit in 0..5 {
        let mut events = owner.events(&stream, visit).await;
        assert_eq!(events.item().await.unwrap().unwrap()["seq"], visit + 1);
    }
    until("the stream that nobody reads to end", async || {
        server.running() == 0
    })
    .await;
    let items = owner.events(&stream, 0).await.items().await;
    let last = items.last().unwrap();
    assert_eq!(last["status"], "cancelled");
    assert_eq!(last["reason"], "the stream had no reader");
    server.stop().await;
}

#[tokio::test]
async fn text_of_every_kind_arrives_as_it_was() {
    let server = Server::start().await;
    let owner = server.owner();
    let text = "one\ntwo\r\nthree\rfour\u{2028}five\u{2029}six 🙂 \u{0}\u{1f}\u{7f}\u{85} \\ \" data: x\n\nevent: done\n\n";
    let mut socket = owner.socket().await;
    let stream = socket
        .subscribe(json!({"method": "echo.say", "params": {"text": text}}))
        .await;
    let over_websocket = socket.items(&stream).await;
    let over_sse = owner.events(&stream, 0).await.items().await;
    assert_eq!(over_sse, over_websocket);
    assert_eq!(over_sse[0]["data"]["text"], text);
    assert_eq!(over_sse.len(), 2);
    let unary = owner.call("echo.say", json!({"text": text})).await;
    assert_eq!(unary["text"], text);
    server.stop().await;
}

#[tokio::test]
async fn a_shutdown_ends_the_body_so_that_the_reader_comes_back() {
    let server = Server::start().await;
    let owner = server.owner();
    let stream = owner
        .begin("echo.count", json!({"to": 10, "delay_ms": 60_000}))
        .await;
    let mut events = owner.events(&stream, 0).await;
    assert_eq!(events.item().await.unwrap().unwrap()["seq"], 1);
    server.shutdown.cancel();
    assert_eq!(events.item().await, Ok(None), "a proper end");
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_token_reads_no_further() {
    let server = Server::start().await;
    let (token, id) = server
        .token("alice", "reader", &["echo:*", "hub:read"])
        .await;
    let alice = server.with_token(&token);
    let stream = alice
        .begin("echo.count", json!({"to": 1_000_000, "delay_ms": 5}))
        .await;
    let mut events = alice.events(&stream, 0).await;
    events.item().await.unwrap().unwrap();
    server.inside("hub.token_revoke", json!({"id": id})).await;
    while let Ok(Some(_)) = events.item().await {}
    assert_eq!(alice.get(&format!("/streams/{stream}")).await.status, 401);
    assert_eq!(server.running(), 1, "the call itself goes on");
    server.shutdown.cancel();
    server.stop().await;
}
