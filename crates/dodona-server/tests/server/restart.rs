//! A server that is killed at any moment, and started again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::PluginHub;
use dodona_server::{ServerOptions, serve};
use dodona_testkit::{Chance, TestHub, assert_well_formed};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::http::Connection;
use crate::sse::{Events, parsed, ticks};
use crate::support::soon;
use crate::ws::Socket;

/// How often the server is killed.
const KILLS: usize = 50;

/// Where the process that is killed finds its home.
const HOME: &str = "DODONA_TEST_HOME";

struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    async fn start(home: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "restart::a_process_to_be_killed", "--nocapture"])
            .env(HOME, home)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = soon("the start", async {
            loop {
                let line = lines.next_line().await.unwrap().expect("an address");
                if let Some(address) = line.strip_prefix("serving on ") {
                    return address.parse().unwrap();
                }
            }
        });
        Self {
            address: address.await,
            child,
        }
    }

    /// As `kill -9`.
    async fn kill(mut self) {
        self.child.start_kill().unwrap();
        soon("the kill", self.child.wait()).await.unwrap();
    }
}

/// Not a test: this binary, started by the test below, serves until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_to_be_killed() {
    let Some(home) = std::env::var_os(HOME).map(PathBuf::from) else {
        return;
    };
    let home = TestHub::builder().start_at(&home).await.unwrap();
    let hub = PluginHub::clone(&home);
    hub.local_token(&home.home().join("token")).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("\nserving on {}", listener.local_addr().unwrap());
    let (options, shutdown) = (ServerOptions::default(), CancellationToken::new());
    serve(listener, hub, options, shutdown).await.unwrap();
}

/// What clients need to know: where the server is now.
#[derive(Clone)]
struct Whereabouts {
    address: watch::Receiver<SocketAddr>,
    token: Arc<str>,
}

/// How a client reads.
#[derive(Clone, Copy)]
enum Over {
    Sse,
    WebSocket,
}

impl Whereabouts {
    /// Tries with the server of the moment until one answers.
    async fn reach<T>(&mut self, mut ask: impl AsyncFnMut(SocketAddr) -> Option<T>) -> T {
        soon("a server that answers", async {
            loop {
                let address = *self.address.borrow_and_update();
                if let Some(answer) = ask(address).await {
                    return answer;
                }
                // The next one, or the same one a little later.
                let _ =
                    tokio::time::timeout(Duration::from_millis(20), self.address.changed()).await;
            }
        })
        .await
    }

    async fn connection(address: SocketAddr) -> Option<Connection> {
        let stream = tokio::net::TcpStream::connect(address).await.ok()?;
        Some(Connection::over(stream, address))
    }

    /// Starts a stream; the server may die with it before its id is known.
    async fn begin(&mut self, to: u64) -> String {
        let token = Arc::clone(&self.token);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "echo.count", "params": {"to": to, "delay_ms": 1}}).to_string();
        self.reach(async |address| {
            let mut connection = Self::connection(address).await?;
            let head = format!("POST /rpc HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            connection.try_send(head.as_bytes()).await.ok()?;
            let answer = connection.try_response().await?.json();
            Some(answer["result"]["stream_id"].as_str().unwrap().to_owned())
        })
        .await
    }

    /// Reads on after what was seen, until the connection breaks or the stream ends.
    async fn read(&mut self, over: Over, stream: &str, seen: &mut Vec<Value>) {
        let (token, after) = (Arc::clone(&self.token), seen.len() as u64);
        match over {
            Over::Sse => {
                let mut events = self
                    .reach(async |address| {
                        let mut connection = Self::connection(address).await?;
                        let head = format!("GET /streams/{stream} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nLast-Event-ID: {after}\r\n\r\n");
                        connection.try_send(head.as_bytes()).await.ok()?;
                        let head = connection.head().await?;
                        assert_eq!(head.status, 200, "{head:?}");
                        Some(Events::of(connection))
                    })
                    .await;
                while let Ok(Some(item)) = events.item().await {
                    seen.push(item);
                }
            }
            Over::WebSocket => {
                let mut socket = self
                    .reach(async |address| {
                        let connection = Self::connection(address).await?;
                        let mut socket = Socket::try_over(connection, &token).await?;
                        let params = json!({"stream_id": stream, "after": after});
                        socket.try_subscribe(params).await?;
                        Some(socket)
                    })
                    .await;
                while !ended(seen) {
                    match socket.try_item(stream).await {
                        Some(item) => seen.push(item),
                        None => return,
                    }
                }
            }
        }
    }
}

fn ended(seen: &[Value]) -> bool {
    seen.last().is_some_and(|last| last["status"].is_string())
}

/// One client: stream after stream, each read to its end over as many servers as it takes.
async fn follow(
    mut server: Whereabouts,
    over: Over,
    seed: u64,
    stop: watch::Receiver<bool>,
) -> (u32, u32) {
    let mut chance = Chance::from_seed(seed);
    let (mut complete, mut interrupted) = (0, 0);
    while !*stop.borrow() {
        let to = 20 + chance.below(300);
        let stream = server.begin(to).await;
        let mut seen = Vec::new();
        while !ended(&seen) {
            server.read(over, &stream, &mut seen).await;
        }
        assert_well_formed(&parsed(&seen));
        let counted = ticks(&seen);
        assert_eq!(counted, (1..=counted.len() as u64).collect::<Vec<_>>());
        let last = seen.last().unwrap();
        match last["status"].as_str() {
            Some("complete") => {
                assert_eq!(counted.len() as u64, to);
                complete += 1;
            }
            Some("failed") => {
                assert_eq!(last["reason"], "interrupted");
                interrupted += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    (complete, interrupted)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_read_on_after_each_kill_without_a_hole() {
    let seed = Chance::seed();
    println!("DODONA_SEED={seed}");
    let mut chance = Chance::from_seed(seed);
    let home = tempfile::tempdir().unwrap();
    let mut process = Process::start(home.path()).await;
    let token = std::fs::read_to_string(home.path().join("token")).unwrap();
    let (address, watched) = watch::channel(process.address);
    let (stop, stopped) = watch::channel(false);
    let server = Whereabouts {
        address: watched,
        token: token.trim().into(),
    };
    let overs = [Over::Sse, Over::WebSocket].repeat(3);
    let clients = overs
        .into_iter()
        .zip(seed + 1..)
        .map(|(over, seed)| follow(server.clone(), over, seed, stopped.clone()));
    let killing = async {
        for _ in 0..KILLS {
            let lifetime = Duration::from_millis(chance.below(250));
            tokio::time::sleep(lifetime).await;
            process.kill().await;
            process = Process::start(home.path()).await;
            address.send(process.address).unwrap();
        }
        stop.send(true).unwrap();
        process
    };
    let (process, followed) = tokio::join!(killing, join_all(clients));
    let complete: u32 = followed.iter().map(|(complete, _)| complete).sum();
    let interrupted: u32 = followed.iter().map(|(_, interrupted)| interrupted).sum();
    println!("{complete} complete, {interrupted} interrupted");
    assert!(interrupted > 0, "some were met");
    assert!(complete > 0, "some got through");
    process.kill().await;
}
