//! The official SDKs.

use std::path::Path;
use std::process::Command;

use dodona_testkit::{Node, Python};
use serde_json::{Value, json};

use super::{NOTES, Place};
use crate::harness::wait_until;

/// The Python SDK and what it stands on.
const PYTHON: [&str; 5] = [
    "mcp==2.3.0",
    "mcp-types==2.3.0",
    "httpx2==2.16.0",
    "anyio==4.16.0",
    "pydantic==2.14.3",
];

const TOOLS: &str = "vault,thread,ask";

/// Runs a client to its end; what it saw.
#[track_caller]
fn seen(command: &mut Command, setup: &Value) -> Value {
    let output = command.env("SETUP", setup.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}\n{said}"))
}

/// Compares with what every client sees, whatever its language, transport and protocol.
#[track_caller]
fn check(seen: &Value, protocol: &str) {
    let tools: Vec<&str> = seen["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let known = [
        "ask",
        "thread_push",
        "thread_read",
        "vault_delete",
        "vault_read",
        "vault_search",
        "vault_write",
    ];
    assert!(known.iter().all(|name| tools.contains(name)), "{tools:?}");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(
        tools
            .iter()
            .all(|name| name.len() <= 64 && name.chars().all(is_plain)),
        "{tools:?}"
    );
    assert!(
        tools.iter().all(|name| !name.starts_with("code_")),
        "groups: {tools:?}"
    );
    let mut rest = seen.clone();
    rest.as_object_mut().unwrap().remove("tools");
    let note = "# Login\n\nRefresh tokens were dropped in March, because revocation needed a shared store.";
    // A missing note has a number of its own until 2026-07-28.
    let missing = if protocol == "2026-07-28" {
        -32602
    } else {
        -32002
    };
    let denied = "Notes are not deleted here; move them to `attic/`.\nhint: plugin `rules` denied `vault.delete`";
    assert_eq!(
        rest,
        json!({
            "protocol": protocol,
            "instructions": true,
            "read_only": true,
            "notes": NOTES,
            "pages": 2,
            "templates": ["dodona://vault/{+path}"],
            "completed": ["auth.md"],
            "prompts": ["ask"],
            "prompt": true,
            "note": ["text/markdown", note],
            "found": "auth.md",
            "answered": true,
            "progress": true,
            "author": "claude",
            "denied": [true, denied],
            "wrong": true,
            "unknown_tool": -32602,
            "unknown_note": missing,
            "agreed": true,
            "cancelled": true,
            "after": true,
            "form": true,
        })
    );
}

/// What was agreed to is written, and a call that was given up leaves no question behind.
fn check_questions(place: &Place, name: &str) {
    let mut expected: Vec<(String, String)> = [
        ("agreed", "approved"),
        ("cancelled", "cancelled"),
        ("form", "approved"),
    ]
    .iter()
    .map(|(file, state)| (format!("{file}-{name}.md"), (*state).to_owned()))
    .collect();
    expected.sort();
    wait_until("every question has its end", || {
        place.answered() == expected
    });
    for (file, state) in expected {
        assert_eq!(place.project.join(file).exists(), state == "approved");
    }
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli/mcp")
        .join(name)
}

fn python(transport: &str, protocol: &str) -> Command {
    let mut command = Python::with(&PYTHON).unwrap().command();
    command.arg(script("client.py")).args([transport, protocol]);
    command
}

fn node(transport: &str, protocol: &str) -> Command {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dodona-testkit/mcp-peers");
    let mut command = Node::locked_on(&peers, 22).unwrap().command();
    command
        .arg(script("client.mjs"))
        .args([transport, protocol]);
    command
}

/// Has a client of each protocol start us.
fn over_pipes(client: fn(&str, &str) -> Command, protocols: &[&str], suffix: &str) {
    for protocol in protocols {
        let place = Place::new();
        let seen = seen(&mut client("stdio", protocol), &place.setup(TOOLS));
        check(&seen, protocol);
        check_questions(&place, &format!("stdio-{protocol}{suffix}"));
    }
}

/// Has a client of each protocol use a server.
fn over_http(client: fn(&str, &str) -> Command, protocols: &[&str], suffix: &str) {
    for protocol in protocols {
        let place = Place::new();
        let (_server, setup) = place.serve(TOOLS);
        check(&seen(&mut client("http", protocol), &setup), protocol);
        check_questions(&place, &format!("http-{protocol}{suffix}"));
    }
}

#[test]
fn the_python_sdk_works_over_standard_input_and_output() {
    over_pipes(python, &["2025-06-18", "2025-11-25", "2026-07-28"], "");
}

#[test]
fn the_python_sdk_works_over_http() {
    over_http(python, &["2025-06-18", "2025-11-25", "2026-07-28"], "");
}

#[test]
fn the_typescript_sdk_works_over_standard_input_and_output() {
    over_pipes(node, &["2025-06-18", "2025-11-25"], "-ts");
}

#[test]
fn the_typescript_sdk_works_over_http() {
    over_http(node, &["2025-06-18", "2025-11-25"], "-ts");
}
