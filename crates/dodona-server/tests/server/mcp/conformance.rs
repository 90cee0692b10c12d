//! The official conformance suite. What it expects of a server and we do not offer is listed in
//! `expected-failures-*.yaml`, each with its reason; the suite fails if one of those passes.

use std::path::Path;
use std::process::Command;

use dodona_testkit::{Node, Peer};

use super::builder;
use crate::support::Server;

/// The suite sends no token, so something in between has to.
async fn start() -> (Server, Peer, Node) {
    let own = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let server = builder()
        .options(|options| options.allowed_hosts = own.to_vec())
        .start()
        .await;
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dodona-testkit/mcp-peers");
    let node = tokio::task::spawn_blocking(move || Node::locked_on(&peers, 22)).await;
    let node = node.unwrap().unwrap();
    let mut bearer = node.command();
    bearer
        .arg(here("bearer.mjs"))
        .env("UPSTREAM", format!("http://{}", server.address))
        .env("TOKEN", &server.token);
    let bearer = tokio::task::spawn_blocking(move || Peer::start(&mut bearer)).await;
    (server, bearer.unwrap().unwrap(), node)
}

fn here(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/server/mcp")
        .join(file)
}

async fn passes(requirements: &str) {
    let (server, bearer, node) = start().await;
    let expected = here(&format!("expected-failures-{requirements}.yaml"));
    let results = tempfile::tempdir().unwrap();
    let mut suite: Command = node.command();
    suite
        .arg("node_modules/@modelcontextprotocol/conformance/dist/index.js")
        .args(["server", "--url", &format!("{}/mcp", bearer.url())])
        // For each scenario; the machine may be busy with other tests.
        .args(["--requirements", requirements, "--timeout", "120000"])
        .arg("--expected-failures")
        .arg(expected)
        .arg("--output-dir")
        .arg(results.path());
    let output = tokio::task::spawn_blocking(move || suite.output())
        .await
        .unwrap()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // It ran, and did not skip everything.
    assert!(said.contains("tools-call-with-progress"), "{said}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requirements_of_2025_11_25_are_met_but_for_those_listed() {
    passes("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requirements_of_2026_07_28_are_met_but_for_those_listed() {
    passes("2026-07-28").await;
}
