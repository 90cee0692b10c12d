//! The official conformance suite, on both transports. What it expects of a server and ours does not
//! do is listed in `expected-failures-*.yaml`, each with its reason; the suite fails if one of those
//! passes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dodona_proto::{CallError, Surface};
use dodona_server::client::Client;
use dodona_server::mcp::{Connect, Groups, serve_pipes};
use dodona_testkit::{Node, Peer};
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::builder;
use crate::support::Server;

/// How often the suite is run before it has failed. It waits half a second for some answers, which a
/// machine that is busy with other tests may need longer for.
const ATTEMPTS: usize = 4;

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/server/mcp")
        .join(file)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// A server with everything that the suite wants, and the Node that runs it.
async fn start() -> (Server, Node) {
    let own = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let server = builder()
        .options(|options| options.allowed_hosts = own.to_vec())
        .start()
        .await;
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dodona-testkit/mcp-peers");
    let node = blocking(move || Node::locked_on(&peers, 22)).await;
    (server, node.unwrap())
}

async fn peer(mut command: Command) -> Peer {
    blocking(move || Peer::start(&mut command)).await.unwrap()
}

/// The suite sends no token, so something in between has to.
async fn over_http(server: &Server, node: &Node) -> Peer {
    let mut bearer = node.command();
    bearer
        .arg(here("bearer.mjs"))
        .env("UPSTREAM", format!("http://{}", server.address))
        .env("TOKEN", &server.token);
    peer(bearer).await
}

/// The way to the server, as `dodona mcp` has one.
#[derive(Clone)]
struct Way {
    url: String,
    token: String,
}

impl Connect for Way {
    fn client(&self) -> BoxFuture<'_, Result<Client, CallError>> {
        Box::pin(Client::connect_for(
            Surface::Mcp,
            &self.url,
            &self.token,
            None,
        ))
    }
}

/// What `dodona mcp` serves at its pipes, here at sockets, and HTTP in front of that.
async fn over_pipes(server: &Server, node: &Node) -> Peer {
    let way = Way {
        url: format!("http://{}", server.address),
        token: server.token.clone(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (input, output) = socket.into_split();
            let (way, stop) = (way.clone(), CancellationToken::new());
            tokio::spawn(serve_pipes(way, Groups::default(), input, output, stop));
        }
    });
    let mut pipe = node.command();
    pipe.arg(here("pipe.mjs"))
        .env("UPSTREAM", address.to_string());
    peer(pipe).await
}

/// Runs the suite against an address.
async fn run(node: &Node, url: &str, requirements: &str, expected: &Path) -> Output {
    let results = tempfile::tempdir().unwrap();
    let mut suite: Command = node.command();
    suite
        .arg("node_modules/@modelcontextprotocol/conformance/dist/index.js")
        .args(["server", "--url", &format!("{url}/mcp")])
        // For each scenario; the machine may be busy with other tests.
        .args(["--requirements", requirements, "--timeout", "120000"])
        .arg("--expected-failures")
        .arg(expected)
        .arg("--output-dir")
        .arg(results.path());
    blocking(move || suite.output()).await.unwrap()
}

async fn passes(node: &Node, peer: &Peer, requirements: &str, transport: &str) {
    let expected = here(&format!(
        "expected-failures-{transport}-{requirements}.yaml"
    ));
    for attempt in 1..=ATTEMPTS {
        let output = run(node, peer.url(), requirements, &expected).await;
        let said = String::from_utf8_lossy(&output.stdout);
        // It ran, and did not skip everything.
        assert!(said.contains("tools-call-with-progress"), "{said}");
        if output.status.success() {
            return;
        }
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(attempt < ATTEMPTS, "{said}\n{wrong}");
    }
}

async fn passes_over_http(requirements: &str) {
    let (server, node) = start().await;
    let bearer = over_http(&server, &node).await;
    passes(&node, &bearer, requirements, "http").await;
    server.stop().await;
}

async fn passes_over_pipes(requirements: &str) {
    let (server, node) = start().await;
    let pipe = over_pipes(&server, &node).await;
    passes(&node, &pipe, requirements, "pipes").await;
    drop(pipe);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requirements_of_2025_11_25_are_met_over_http() {
    passes_over_http("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requirements_of_2026_07_28_are_met_over_http() {
    passes_over_http("2026-07-28").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requirements_of_2025_11_25_are_met_over_pipes() {
    passes_over_pipes("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requirements_of_2026_07_28_are_met_over_pipes() {
    passes_over_pipes("2026-07-28").await;
}
