//! Opens thousands of streams on a server that ships, some of whose readers stall, and checks that
//! the others see every item once and in order.
//!
//! ```console
//! $ cargo run --release -p dodona-testkit --bin many-streams -- target/release/dodona 10000 100
//! ```
//!
//! It prints the memory of the server for each idle stream and WebSocket. It exits with 1 where an
//! item is missing or there twice, a reader that stalled cannot resume, or the memory is above its
//! bound, and with 2 where the limit of open files is too low.

#![expect(clippy::unwrap_used, reason = "a failure ends the measurement")]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Items of a stream and the time between them.
#[derive(Clone, Copy)]
struct Count {
    items: u64,
    delay_ms: u64,
}

/// Streams that are read: idle most of the time, and open for as long as it takes to open all.
const READ: Count = Count {
    items: 20,
    delay_ms: 6_000,
};

/// Streams whose readers stall: more than the buffers of a connection hold.
const STALLED: Count = Count {
    items: 2_000,
    delay_ms: 40,
};

/// How many connections are opened at once.
const OPENING: usize = 64;

const WEBSOCKETS: usize = 1_000;

/// The most memory of the server, in bytes, for each open stream and its reader.
const STREAM_BYTES: u64 = 25_000;

/// The same for each idle WebSocket.
const WEBSOCKET_BYTES: u64 = 20_000;

/// The longest that a stream may take beyond its own time. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(600);

/// Open files of either process that are not connections.
const OTHER_FILES: u64 = 300;

impl Count {
    fn duration(self) -> Duration {
        Duration::from_millis(self.items * self.delay_ms)
    }
}

struct Server {
    process: Child,
    address: SocketAddr,
    token: String,
    _home: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(program: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("config");
        fs::create_dir_all(&config).unwrap();
        let settings = "[limits.user]\nper_second = 0\nburst = 0\nconcurrent = 0\n[calls]\nstream_grace = \"1h\"\n";
        fs::write(config.join("config.toml"), settings).unwrap();
        let ready = home.path().join("ready");
        let process = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&ready)
            .env("DODONA_HOME", home.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        wait_for(&ready);
        let told: Value = serde_json::from_slice(&fs::read(&ready).unwrap()).unwrap();
        let url = told["url"].as_str().unwrap().to_owned();
        let token = fs::read_to_string(home.path().join("token")).unwrap();
        Self {
            process,
            address: url.strip_prefix("http://").unwrap().parse().unwrap(),
            token: token.trim().to_owned(),
            _home: home,
        }
    }

    /// Panics unless the server still answers.
    async fn assert_alive(&self) {
        let ended = begin(
            self,
            Count {
                items: 1,
                delay_ms: 0,
            },
        );
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        ended.expect("the server answers after all streams");
    }

    /// Bytes of memory that the server holds.
    fn resident(&self) -> u64 {
        let path = format!("/proc/{}/statm", self.process.id());
        let statm = fs::read_to_string(path).unwrap();
        let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }
}

fn wait_for(file: &Path) {
    for _ in 0..3_000 {
        if file.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the server never became ready");
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().expect("the path of `dodona`");
    let mut number = |default: usize| {
        let given = arguments.next();
        given.map_or(default, |text| text.parse().expect("a number"))
    };
    let (streams, stalled) = (number(10_000), number(100));
    let needed = streams as u64 + OTHER_FILES;
    let allowed = raise_file_limit();
    if allowed < needed {
        eprintln!("error: {streams} streams need {needed} open files, and the limit is {allowed}");
        eprintln!("hint: run `ulimit -Hn {needed}` as root in the same shell, then run this again");
        return ExitCode::from(2);
    }
    // Each part has a server of its own: memory that one has freed would hide what the next takes.
    let of_websocket = websockets(&Server::start(&program)).await;
    let of_stream = all_streams(Arc::new(Server::start(&program)), streams, stalled).await;
    let mut code = ExitCode::SUCCESS;
    for (what, bytes, most) in [
        ("WebSocket", of_websocket, WEBSOCKET_BYTES),
        ("stream", of_stream, STREAM_BYTES),
    ] {
        if bytes > most {
            eprintln!("error: an idle {what} takes {bytes} bytes; at most {most} are allowed");
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Raises the limit of open files as far as it can be. Returns the new limit.
#[cfg(unix)]
fn raise_file_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    files.unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
fn raise_file_limit() -> u64 {
    u64::MAX
}

/// Opens all streams and reads them to their ends. Returns the memory of each in bytes.
async fn all_streams(server: Arc<Server>, streams: usize, stalled: usize) -> u64 {
    // The first call creates what all later ones share.
    server.assert_alive().await;
    let before = server.resident();
    let began = Instant::now();
    let opening = Arc::new(Semaphore::new(OPENING));
    let (open, mut opened) = watch::channel(0_usize);
    let mut readers = Vec::new();
    for n in 0..streams {
        let (server, opening, open) = (Arc::clone(&server), Arc::clone(&opening), open.clone());
        // Readers that stall come last: their items must not be counted as memory of idle streams.
        let stalls = n >= streams - stalled;
        readers.push(tokio::spawn(async move {
            let place = opening.acquire().await.unwrap();
            let count = if stalls { STALLED } else { READ };
            let stream = begin(&server, count).await;
            let reader = attach(&server, &stream, 0, stalls).await;
            drop(place);
            open.send_modify(|count| *count += 1);
            let reading = async {
                match stalls {
                    true => stall_and_resume(&server, &stream, reader).await,
                    false => read(reader, 0).await.expect("the connection stays open"),
                }
            };
            let read = tokio::time::timeout(count.duration() + PATIENCE, reading).await;
            assert_eq!(
                read.expect("the stream ends"),
                count.items,
                "items are missing"
            );
            count.items
        }));
    }
    let all_open = opened.wait_for(|count| *count == streams);
    let all_open = tokio::time::timeout(PATIENCE, all_open).await;
    assert!(
        all_open.is_ok_and(|open| open.is_ok()),
        "not all streams could be opened"
    );
    let took = began.elapsed();
    let of_stream = server.resident().saturating_sub(before) / streams as u64;
    println!(
        "{streams} streams open after {:.1} s: {} of memory each",
        took.as_secs_f64(),
        kilobytes(of_stream)
    );
    assert!(
        took < READ.duration(),
        "the first streams ended before the last were open, so the memory is not that of all"
    );
    let mut items = 0;
    for reader in readers {
        items += reader.await.expect("no gap and no duplicate");
    }
    server.assert_alive().await;
    println!(
        "{items} items read in {:.1} s, none missing, none twice; {stalled} readers stalled and resumed; {} MB of memory at the end",
        began.elapsed().as_secs_f64(),
        server.resident() / 1_000_000
    );
    of_stream
}

fn kilobytes(bytes: u64) -> String {
    format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100)
}

/// Opens WebSockets. Returns the memory of each in bytes.
async fn websockets(server: &Server) -> u64 {
    server.assert_alive().await;
    let before = server.resident();
    let mut open = Vec::new();
    for _ in 0..WEBSOCKETS {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let request = format!(
            "GET /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address, server.token
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 101");
        open.push(socket);
    }
    let of_socket = server.resident().saturating_sub(before) / WEBSOCKETS as u64;
    println!(
        "{WEBSOCKETS} idle WebSockets: {} of memory each",
        kilobytes(of_socket)
    );
    of_socket
}

/// Starts a stream; its id.
async fn begin(server: &Server, count: Count) -> String {
    let params = json!({ "to": count.items, "delay_ms": count.delay_ms });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo.count", "params": params });
    let body = body.to_string();
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "POST /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    let id = answer["result"]["stream_id"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Opens the items of a stream after one. The buffer of a reader that stalls is small.
async fn attach(server: &Server, stream: &str, after: u64, stalls: bool) -> BufReader<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    if stalls {
        socket.set_recv_buffer_size(2048).unwrap();
    }
    let mut socket = socket.connect(server.address).await.unwrap();
    let request = format!(
        "GET /streams/{stream} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nLast-Event-ID: {after}\r\n\r\n",
        server.address, server.token
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    BufReader::new(socket)
}

/// Reads nothing until the stream has ended, then what was sent, and the rest over new connections.
/// Returns how many items of the count there were.
async fn stall_and_resume(server: &Server, stream: &str, reader: BufReader<TcpStream>) -> u64 {
    tokio::time::sleep(STALLED.duration()).await;
    let mut part = read(reader, 0).await;
    let mut counted = 0;
    loop {
        match part {
            Ok(items) => return counted + items,
            Err(Lost { after, items }) => {
                counted += items;
                let reader = attach(server, stream, after, false).await;
                part = read(reader, after).await;
            }
        }
    }
}

/// The connection ended before the stream did.
#[derive(Debug)]
struct Lost {
    /// The last item that was read whole.
    after: u64,
    /// Items of the count until there.
    items: u64,
}

/// Reads a stream to its end. Returns how many items of the count there were.
async fn read(mut reader: BufReader<TcpStream>, after: u64) -> Result<u64, Lost> {
    let (mut last, mut counted) = (after, 0);
    let (mut seq, mut is_data, mut is_done) = (None, false, false);
    let mut line = String::new();
    loop {
        line.clear();
        match reader.read_line(&mut line).await {
            Ok(length) if length > 0 => {}
            _ => {
                return Err(Lost {
                    after: last,
                    items: counted,
                });
            }
        }
        if let Some(id) = line.strip_prefix("id: ") {
            seq = Some(id.trim().parse::<u64>().unwrap());
        } else if let Some(kind) = line.strip_prefix("event: ") {
            (is_data, is_done) = (kind.trim() == "data", kind.trim() == "done");
        } else if line.trim().is_empty()
            && let Some(seq) = seq.take()
        {
            // An item counts once its last line has arrived.
            assert_eq!(seq, last + 1, "a gap or a duplicate");
            last = seq;
            counted += u64::from(std::mem::take(&mut is_data));
            if is_done {
                return Ok(counted);
            }
        }
    }
}
