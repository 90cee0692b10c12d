//! `dodona mcp`, line by line.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Place, lines};
use crate::harness::wait_until;

/// How long anything may take before the test has failed. Never reached by one that passes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client that says what a test wants.
pub(crate) struct Client {
    child: Child,
    lines: Receiver<String>,
}

impl Client {
    pub(super) fn start(place: &Place, arguments: &[&str]) -> Self {
        let arguments = [&["mcp", "--project", place.project()], arguments].concat();
        Self::run(&mut place.home.command(&arguments))
    }

    /// Starts a command as clients do, and begins.
    pub(crate) fn run(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let lines = lines(&mut child);
        let mut client = Self { child, lines };
        let begin = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        client.ask(0, "initialize", begin);
        client.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: Value) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// The answer to a request; what comes before is skipped.
    pub(super) fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.until(|message| message["id"] == id)
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .expect("it says something");
            let message: Value = serde_json::from_str(&line).expect("only messages are printed");
            if is_it(&message) {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, id: u32, tool: &str, arguments: Value) -> Value {
        self.ask(
            id,
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )["result"]
            .clone()
    }

    /// Closes its end and waits for ours.
    pub(crate) fn leave(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_clients_share_a_home_and_the_second_takes_over_when_the_first_leaves() {
    let place = Place::new();
    let mut first = Client::start(&place, &[]);
    let mut second = Client::start(&place, &[]);
    for client in [&mut first, &mut second] {
        let read = client.call(1, "vault_read", json!({ "path": "auth.md" }));
        assert_eq!(read["isError"], false, "{read}");
    }
    // Meanwhile every other command works too.
    let listed = place.home.run(&["methods"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    first.leave();
    let read = second.call(2, "vault_read", json!({ "path": "auth.md" }));
    assert_eq!(read["isError"], false, "{read}");
    second.leave();
    // Nobody has the home any more.
    assert_eq!(place.home.run(&["methods"]).code, Some(0));
}

#[test]
fn tools_are_offered_by_group_and_the_rest_cannot_be_called() {
    let place = Place::new();
    let mut client = Client::start(&place, &["--tools", "thread,ask"]);
    let listed = client.ask(1, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "ask",
            "thread_archive",
            "thread_list",
            "thread_push",
            "thread_read",
            "thread_seek"
        ]
    );
    let unknown = client.ask(
        2,
        "tools/call",
        json!({ "name": "vault_read", "arguments": { "path": "auth.md" } }),
    );
    assert_eq!(unknown["error"]["code"], -32602);
    client.leave();
    let mut client = Client::start(&place, &[]);
    let listed = client.ask(1, "tools/list", json!({}));
    let listed = listed["result"]["tools"].to_string();
    assert!(
        listed.contains("\"code_search\"") && listed.contains("\"ask\""),
        "{listed}"
    );
    let apart = ["\"web_fetch\"", "\"echo_say\"", "\"agent_delegate\""];
    assert!(apart.iter().all(|name| !listed.contains(name)), "{listed}");
    client.leave();
}

#[test]
fn a_client_hears_when_tools_go() {
    let place = Place::new();
    let mut client = Client::start(&place, &["--tools", "all"]);
    let echoed = client.call(1, "echo_say", json!({ "text": "hello" }));
    assert_eq!(echoed["structuredContent"], json!({ "text": "hello" }));
    let disabled = place.home.run(&["plugins", "disable", "echo"]);
    assert_eq!(disabled.code, Some(0), "{}", disabled.stderr);
    client.until(|message| message["method"] == "notifications/tools/list_changed");
    let listed = client.ask(2, "tools/list", json!({}));
    assert!(!listed.to_string().contains("echo_say"));
    client.leave();
}

#[test]
fn what_is_wrong_goes_to_standard_error_and_ends_with_a_code() {
    let place = Place::new();
    let mistaken = place.home.run_with_input(&["mcp"], "hello\n");
    assert_eq!(mistaken.stdout, "");
    assert!(
        mistaken.stderr.contains("no project is here"),
        "{}",
        mistaken.stderr
    );
    let groups = place.home.run(&["mcp", "--tools", "vault,,code"]);
    assert_eq!(groups.code, Some(2));
    assert!(
        groups.stderr.contains("names no group of tools"),
        "{}",
        groups.stderr
    );
    wait_until("the home is free", || {
        place.home.run(&["methods"]).code == Some(0)
    });
}
