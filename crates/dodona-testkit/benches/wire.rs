//! What the wire costs: our server against a bare jsonrpsee server and bare axum SSE.
//!
//! `cargo xtask bench wire [-- --json] [-- --quick]`. Servers have a runtime of their own; the
//! client has one thread, writes prepared bytes and looks at answers only as far as it must. Ours
//! checks the token, the limits and the parameters of every call; the peers do nothing but echo.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::response::sse::{Event, Sse};
use dodona_hub::{Limit, PluginHub};
use dodona_server::{ServerOptions, serve};
use dodona_testkit::TestHub;
use dodona_testkit::measure::{self, Figure, Row, nanos_each, side_by_side};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, stream};
use jsonrpsee::RpcModule;
use jsonrpsee::server::ServerBuilder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Calls of one round.
const CALLS: u64 = 20_000;
/// Items of one stream.
const ITEMS: u64 = 100_000;
/// Calls at once.
const AT_ONCE: u64 = 64;

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let rounds: usize = if asked("--quick") { 3 } else { 15 };
    let wire = Wire::new()?;
    // For a profiler: one side alone, for long.
    if let Ok(name) = std::env::var("DODONA_BENCH_ONLY") {
        return wire.only(&name);
    }
    let few = rounds.div_ceil(3);
    let rows = [
        wire.row(
            "JSON-RPC echo over HTTP, 64 connections",
            "bare jsonrpsee",
            "≥ 0.9×",
            rounds,
            Wire::http,
        )?,
        wire.row(
            "JSON-RPC echo over WebSocket, 64 in flight",
            "bare jsonrpsee",
            "≥ 2×",
            rounds,
            Wire::one_socket,
        )?,
        wire.row(
            "the same on 8 connections",
            "bare jsonrpsee",
            "",
            rounds,
            Wire::eight_sockets,
        )?,
        wire.row(
            "SSE items, journaled, to 100 000",
            "bare axum SSE, one event per write",
            "≥ 1×",
            few,
            Wire::events,
        )?,
        wire.row(
            "the same",
            "bare axum SSE, all events ready at once",
            "",
            few,
            Wire::ready_events,
        )?,
    ];
    if asked("--json") {
        println!("{:#}", measure::as_json(&rows));
    } else {
        print!("{}", measure::table(&rows));
    }
    Ok(())
}

/// Which server is asked.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Ours,
    Peer,
}

struct Wire {
    client: Runtime,
    /// Where the servers run.
    _servers: Runtime,
    _home: TestHub,
    ours: SocketAddr,
    jsonrpsee: SocketAddr,
    axum: SocketAddr,
    token: String,
}

impl Wire {
    fn new() -> Result<Self> {
        let servers = Runtime::new()?;
        let client = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // Limits that are looked at and never met.
        let unmet = Limit {
            per_second: 1_000_000_000,
            burst: 1_000_000_000,
            concurrent: 1_000_000,
        };
        let home = TestHub::builder().config(|config| config.limits.user = unmet);
        let home = servers.block_on(home.start());
        let (ours, token) = servers.block_on(start_ours(&home))?;
        Ok(Self {
            client,
            ours,
            jsonrpsee: servers.block_on(start_jsonrpsee())?,
            axum: servers.block_on(start_axum())?,
            token,
            _servers: servers,
            _home: home,
        })
    }

    fn row(
        &self,
        what: &str,
        against: &str,
        target: &str,
        rounds: usize,
        run: fn(&Self, Side) -> Result<f64>,
    ) -> Result<Row> {
        // Fails here rather than in the middle.
        run(self, Side::Ours)?;
        run(self, Side::Peer)?;
        let measure = |side| run(self, side).expect("it went well a moment ago");
        let (ours, peer) = side_by_side(rounds, || measure(Side::Ours), || measure(Side::Peer));
        Ok(Row {
            what: what.to_owned(),
            against: against.to_owned(),
            target: target.to_owned(),
            figure: Figure::Rate,
            ours,
            peer,
        })
    }

    fn only(&self, name: &str) -> Result<()> {
        let side = match name.strip_prefix("peer-") {
            Some(_) => Side::Peer,
            None => Side::Ours,
        };
        let run = match name.trim_start_matches("peer-") {
            "http" => Self::http,
            "websocket" => Self::one_socket,
            _ => Self::events,
        };
        let (begun, mut each) = (Instant::now(), Vec::new());
        while begun.elapsed() < Duration::from_secs(10) {
            each.push(run(self, side)?);
        }
        println!("{name}: {:.0} ns each", measure::Sample::of(each).median);
        Ok(())
    }

    fn address(&self, side: Side) -> SocketAddr {
        match side {
            Side::Ours => self.ours,
            Side::Peer => self.jsonrpsee,
        }
    }

    fn http(&self, side: Side) -> Result<f64> {
        let address = self.address(side);
        self.client.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..AT_ONCE {
                connections.push(HttpEcho::open(address, &self.token).await?);
            }
            let each = CALLS / AT_ONCE;
            let begun = Instant::now();
            try_join_all(
                connections
                    .iter_mut()
                    .map(|connection| connection.call(each)),
            )
            .await?;
            Ok(nanos_each(begun.elapsed(), each * AT_ONCE))
        })
    }

    fn one_socket(&self, side: Side) -> Result<f64> {
        self.sockets(side, 1)
    }

    fn eight_sockets(&self, side: Side) -> Result<f64> {
        self.sockets(side, 8)
    }

    fn sockets(&self, side: Side, count: u64) -> Result<f64> {
        let address = self.address(side);
        self.client.block_on(async {
            let mut sockets = Vec::new();
            for _ in 0..count {
                sockets.push(SocketEcho::open(address, &self.token).await?);
            }
            let each = CALLS / count;
            let begun = Instant::now();
            try_join_all(sockets.iter_mut().map(|socket| socket.call(each))).await?;
            Ok(nanos_each(begun.elapsed(), each * count))
        })
    }

    fn events(&self, side: Side) -> Result<f64> {
        self.sse(side, "/each")
    }

    fn ready_events(&self, side: Side) -> Result<f64> {
        self.sse(side, "/ready")
    }

    fn sse(&self, side: Side, path: &str) -> Result<f64> {
        self.client.block_on(async {
            let begun = Instant::now();
            let read = match side {
                Side::Ours => {
                    let stream = self.begin_count().await?;
                    read_events(self.ours, &format!("/streams/{stream}"), &self.token).await?
                }
                Side::Peer => read_events(self.axum, path, &self.token).await?,
            };
            ensure!(read >= ITEMS, "{read} events");
            Ok(nanos_each(begun.elapsed(), ITEMS))
        })
    }

    async fn begin_count(&self) -> Result<String> {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "echo.count", "params": {"to": ITEMS}});
        let mut stream = connect(self.ours).await?;
        stream
            .write_all(&post(self.ours, &self.token, &body))
            .await?;
        let mut buffer = Vec::new();
        loop {
            ensure!(
                stream.read_buf(&mut buffer).await? > 0,
                "the connection ended"
            );
            let text = String::from_utf8_lossy(&buffer);
            if let Some((_, rest)) = text.split_once(r#""stream_id":""#)
                && rest.len() >= 36
            {
                return Ok(rest[..36].to_owned());
            }
        }
    }
}

async fn start_ours(home: &TestHub) -> Result<(SocketAddr, String)> {
    let hub = PluginHub::clone(home);
    let token = hub.local_token(&home.home().join("token")).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(
        listener,
        hub,
        ServerOptions::default(),
        CancellationToken::new(),
    ));
    Ok((address, token))
}

#[derive(Serialize, Deserialize, Clone)]
struct Text {
    text: String,
}

async fn start_jsonrpsee() -> Result<SocketAddr> {
    let server = ServerBuilder::default().build("127.0.0.1:0").await?;
    let address = server.local_addr()?;
    let mut module = RpcModule::new(());
    module.register_method("echo.say", |params, (), _| params.parse::<Text>())?;
    tokio::spawn(server.start(module).stopped());
    Ok(address)
}

/// The item of ours that says `n`, with ids as long.
fn item(n: u64) -> Value {
    let call_id = "00000000-0000-4000-8000-000000000000";
    json!({"call_id": call_id, "seq": n + 1, "plugin_path": "echo", "content_type": "Tick", "data": {"n": n}})
}

async fn start_axum() -> Result<SocketAddr> {
    let event = |n: u64| {
        let event = Event::default().id((n + 1).to_string()).event("data");
        Ok::<_, Infallible>(event.data(item(n).to_string()))
    };
    // A source that has one at a time, as one that waits for each does.
    let each = move || async move {
        Sse::new(stream::iter(1..=ITEMS).then(move |n| async move {
            tokio::task::yield_now().await;
            event(n)
        }))
    };
    let ready = move || async move { Sse::new(stream::iter((1..=ITEMS).map(event))) };
    let router = axum::Router::new()
        .route("/each", axum::routing::get(each))
        .route("/ready", axum::routing::get(ready));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await
    });
    Ok(address)
}

async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn say() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "echo.say", "params": {"text": "hello, world"}})
}

fn post(address: SocketAddr, token: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST /rpc HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A connection that asks the same again and again.
struct HttpEcho {
    stream: TcpStream,
    request: Vec<u8>,
    /// How long an answer is: all are alike.
    answer: usize,
}

impl HttpEcho {
    async fn open(address: SocketAddr, token: &str) -> Result<Self> {
        let mut stream = connect(address).await?;
        let request = post(address, token, &say());
        stream.write_all(&request).await?;
        let mut buffer = Vec::new();
        while !buffer.ends_with(b"}}") {
            ensure!(
                stream.read_buf(&mut buffer).await? > 0,
                "the connection ended"
            );
        }
        let text = String::from_utf8(buffer)?;
        let is_echo =
            text.starts_with("HTTP/1.1 200") && text.ends_with(r#"{"text":"hello, world"}}"#);
        ensure!(is_echo, "{text}");
        let answer = text.len();
        Ok(Self {
            stream,
            request,
            answer,
        })
    }

    async fn call(&mut self, times: u64) -> Result<()> {
        let mut buffer = vec![0; self.answer];
        for _ in 0..times {
            self.stream.write_all(&self.request).await?;
            self.stream.read_exact(&mut buffer).await?;
            ensure!(buffer.ends_with(b"\"}}"), "the answers are not alike");
        }
        Ok(())
    }
}

/// A WebSocket that keeps [`AT_ONCE`] calls in flight.
struct SocketEcho {
    stream: TcpStream,
    frame: Vec<u8>,
}

impl SocketEcho {
    async fn open(address: SocketAddr, token: &str) -> Result<Self> {
        let mut stream = connect(address).await?;
        let path = "/rpc";
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let mut buffer = Vec::new();
        while !buffer.ends_with(b"\r\n\r\n") {
            ensure!(
                stream.read_buf(&mut buffer).await? > 0,
                "the connection ended"
            );
        }
        ensure!(buffer.starts_with(b"HTTP/1.1 101"), "not upgraded");
        let body = say().to_string();
        let length = u8::try_from(body.len()).ok().filter(|length| *length < 126);
        // With a mask of zeros, which changes nothing.
        let mut frame = vec![0x81, 0x80 | length.context("a short call")?, 0, 0, 0, 0];
        frame.extend(body.as_bytes());
        Ok(Self { stream, frame })
    }

    async fn call(&mut self, times: u64) -> Result<()> {
        let many = self.frame.repeat(usize::try_from(AT_ONCE)?);
        let (mut sent, mut answered) = (AT_ONCE.min(times), 0);
        self.stream
            .write_all(&many[..self.frame.len() * usize::try_from(sent)?])
            .await?;
        let mut buffer: Vec<u8> = Vec::with_capacity(64 * 1024);
        while answered < times {
            ensure!(
                self.stream.read_buf(&mut buffer).await? > 0,
                "the connection ended"
            );
            let (frames, read) = count_frames(&buffer)?;
            buffer.drain(..read);
            answered += frames;
            let more = frames.min(times - sent);
            sent += more;
            self.stream
                .write_all(&many[..self.frame.len() * usize::try_from(more)?])
                .await?;
        }
        Ok(())
    }
}

/// How many whole text frames there are, and their bytes.
fn count_frames(bytes: &[u8]) -> Result<(u64, usize)> {
    let (mut frames, mut at) = (0, 0);
    while let Some([first, length]) = bytes.get(at..at + 2) {
        let end = at + 2 + usize::from(*length);
        if end > bytes.len() {
            break;
        }
        if *first == 0x81 {
            ensure!(bytes[at..end].ends_with(b"\"}}"), "no echo");
            frames += 1;
        }
        at = end;
    }
    Ok((frames, at))
}

/// Reads a body to its end and counts the events with data.
async fn read_events(address: SocketAddr, path: &str, token: &str) -> Result<u64> {
    let mut stream = connect(address).await?;
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut buffer: Vec<u8> = Vec::with_capacity(256 * 1024);
    let (mut events, mut last) = (0, [0_u8; 5]);
    loop {
        buffer.clear();
        ensure!(
            stream.read_buf(&mut buffer).await? > 0,
            "the connection ended"
        );
        events += count(&buffer, b'\n');
        if buffer.len() >= 5 {
            last.copy_from_slice(&buffer[buffer.len() - 5..]);
        } else {
            last.rotate_left(buffer.len());
            last[5 - buffer.len()..].copy_from_slice(&buffer);
        }
        if &last == b"0\r\n\r\n" {
            // Three lines and an empty one for each event, and some of chunks and headers.
            return Ok(events / 4);
        }
    }
}

fn count(bytes: &[u8], byte: u8) -> u64 {
    bytes.iter().filter(|known| **known == byte).count() as u64
}
