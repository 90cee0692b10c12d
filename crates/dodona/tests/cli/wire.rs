//! Rules over the real server's wire: what they refuse, ask and emit holds for whoever calls, by
//! HTTP, by WebSocket and by command.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dodona_proto::{CallError, ProjectId};
use dodona_server::client::Client;
use serde_json::{Value, json};

use crate::harness::{Home, wait_until};
use crate::serve::Server;

/// One of the two ways in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wire {
    Http,
    WebSocket,
}

/// A server that knows a project with rules, and how to reach it.
pub(crate) struct Site {
    pub(crate) server: Server,
    url: String,
    token: String,
    project: ProjectId,
}

const RULES: [(&str, &str, &str); 3] = [
    (
        "keep-notes",
        "context.call.tool_name == 'vault_delete'",
        "type = \"deny\"\nmessage = \"{{ context.call.arguments.path }} stays\"",
    ),
    (
        "ask-first",
        "context.call.tool_name == 'vault_write' and context.call.arguments.path.startswith('published/')",
        "type = \"require_approval\"\nmessage = \"Change {{ context.call.arguments.path }}?\"",
    ),
    (
        "tell",
        "context.call.tool_name == 'vault_read'",
        "type = \"emit_event\"\nevent_type = \"custom.note.read\"\npayload = { path = \"{{ context.call.arguments.path }}\" }",
    ),
];

impl Site {
    fn new() -> Self {
        Self::on(Home::new())
    }

    /// On a home that has settings already.
    pub(crate) fn on(home: Home) -> Self {
        let root = home.path().with_file_name("project");
        fs::create_dir_all(root.join(".dodona/rules")).unwrap();
        fs::write(root.join("note.md"), "# Note\n\nText.\n").unwrap();
        for (id, condition, action) in RULES {
            let surfaces = match id {
                "tell" => "surfaces = [\"rpc\", \"cli\"]\n",
                _ => "",
            };
            let text = format!(
                "[rule]\nid = \"{id}\"\ntrigger = \"on_tool_call\"\n{surfaces}[condition]\nexpression = \"{condition}\"\n[action]\n{action}\n"
            );
            fs::write(root.join(format!(".dodona/rules/{id}.toml")), text).unwrap();
        }
        let server = Server::on(home);
        // A command in the project makes the server know it.
        let trusted = server.home.run(&[
            "--project",
            "project",
            "trust",
            "accept",
            "--follow",
            "--yes",
        ]);
        assert_eq!(trusted.code, Some(0), "{}", trusted.shown());
        let listed = server.json(&["--project", "project", "rules", "list", "--json"]);
        assert_eq!(listed["rules"].as_array().unwrap().len(), 9, "{listed}");
        let home = &server.home;
        let ready = fs::read(home.path().with_file_name("ready")).unwrap();
        let ready: Value = serde_json::from_slice(&ready).unwrap();
        let token = fs::read_to_string(home.path().join("token")).unwrap();
        let mut site = Self {
            url: ready["url"].as_str().unwrap().to_owned(),
            token: token.trim().to_owned(),
            project: "unknown".parse().unwrap(),
            server,
        };
        let projects = site.post(None, "hub.projects", &json!({})).unwrap();
        let id = projects["projects"][0]["id"].as_str().unwrap();
        site.project = id.parse().unwrap();
        site
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.server.home.path().with_file_name("project")
    }

    pub(crate) fn call(&self, wire: Wire, method: &str, params: Value) -> Result<Value, CallError> {
        match wire {
            Wire::Http => self.post(Some(&self.project), method, &params),
            Wire::WebSocket => runtime().block_on(async {
                let client = Client::connect(&self.url, &self.token, Some(&self.project)).await?;
                client.call(method, params).await
            }),
        }
    }

    /// A request as any HTTP client would send it.
    fn post(
        &self,
        project: Option<&ProjectId>,
        method: &str,
        params: &Value,
    ) -> Result<Value, CallError> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut answer = self.send("/rpc", project, "", &body);
        match answer["error"].is_null() {
            true => Ok(answer["result"].take()),
            false => Err(error(&answer["error"])),
        }
    }

    /// Posts a message as the owner; the answer.
    fn send(&self, path: &str, project: Option<&ProjectId>, headers: &str, body: &Value) -> Value {
        let address = self.url.strip_prefix("http://").unwrap();
        let project = project.map(|id| format!("X-Dodona-Project: {id}\r\n"));
        let headers = format!(
            "Authorization: Bearer {}\r\n{}{headers}",
            self.token,
            project.unwrap_or_default()
        );
        post(address, path, &headers, body)
    }

    /// Has a client of `/mcp` call a tool; the result.
    pub(crate) fn mcp(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({
            "name": tool, "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = format!(
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        let answer = self.send("/mcp", Some(&self.project), &headers, &body);
        answer["result"].clone()
    }
}

/// Reads a page; headers and body in one text.
pub(crate) fn get(address: &str, path: &str, headers: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n");
    let mut socket = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(60));
    socket.set_read_timeout(patience).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Sends JSON, and reads JSON or a stream of it.
pub(crate) fn post(address: &str, path: &str, headers: &str, body: &Value) -> Value {
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    // One message, or a stream of them of which the last is the answer.
    let mut streamed = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let said = streamed.next_back().unwrap_or(body);
    serde_json::from_str(said).unwrap_or_else(|_| panic!("{answer}"))
}

/// An error object as the client reads it.
fn error(object: &Value) -> CallError {
    let code = object["data"]["code"].as_str().unwrap_or_default();
    CallError::new(
        code.to_owned().into(),
        object["message"].as_str().unwrap_or_default(),
    )
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn write_note(root: &Path) -> PathBuf {
    let path = root.join("old.md");
    fs::write(&path, "# Old\n").unwrap();
    path
}

#[test]
fn a_refusal_holds_over_http_websocket_and_command_and_is_told_by_rules_log() {
    let site = Site::new();
    for wire in [Wire::Http, Wire::WebSocket] {
        let delete = json!({ "path": "note.md" });
        let refused = site.call(wire, "vault.delete", delete).unwrap_err();
        assert_eq!(refused.code.as_str(), "policy.denied", "{wire:?}");
        assert_eq!(
            refused.message, "rule `keep-notes` of project `project` says: note.md stays",
            "{wire:?}"
        );
        let log = json!({ "rule": "keep-notes", "limit": 1 });
        let log = site.call(wire, "rules.log", log).unwrap();
        let said = &log["executions"][0]["decisions"][0];
        assert_eq!(said["message"], "note.md stays", "{wire:?} {log}");
    }
    let arguments = [
        "--project",
        "project",
        "call",
        "vault.delete",
        "path=note.md",
    ];
    let command = site.server.home.run(&arguments);
    assert_eq!(command.code, Some(3), "{}", command.shown());
    assert!(
        command
            .stderr
            .contains("rule `keep-notes` of project `project` says: note.md stays")
    );
    assert!(site.root().join("note.md").exists());
}

#[test]
fn switching_a_rule_off_over_one_wire_counts_at_once_on_the_other() {
    let site = Site::new();
    let rule = json!({ "rule": "keep-notes" });
    for (off, on) in [(Wire::Http, Wire::WebSocket), (Wire::WebSocket, Wire::Http)] {
        let note = write_note(&site.root());
        let delete = json!({ "path": "old.md" });
        site.call(on, "vault.delete", delete.clone()).unwrap_err();
        let toggled = site.call(off, "rules.disable", rule.clone()).unwrap();
        assert_eq!(toggled["enabled"], false);
        site.call(on, "vault.delete", delete).unwrap();
        assert!(!note.exists());
        site.call(on, "rules.enable", rule.clone()).unwrap();
        let core = json!({ "rule": "token-budget-warning" });
        let refused = site.call(off, "rules.disable", core).unwrap_err();
        assert_eq!(refused.code.as_str(), "auth.forbidden", "{refused:?}");
    }
}

#[test]
fn a_call_that_a_rule_asks_about_waits_for_the_answer_over_the_other_wire() {
    let site = Site::new();
    for (asked, answering, verb, written) in [
        (Wire::Http, Wire::WebSocket, "hub.approve", true),
        (Wire::WebSocket, Wire::Http, "hub.approve", true),
        (Wire::Http, Wire::WebSocket, "hub.deny", false),
    ] {
        let path = format!("published/{asked:?}-{written}.md");
        let write = json!({ "path": path, "body": "text" });
        let outcome = std::thread::scope(|scope| {
            let call = scope.spawn(|| site.call(asked, "vault.write", write));
            let mut waiting = Value::Null;
            wait_until("the call waits", || {
                let all = site.call(answering, "hub.approvals", json!({})).unwrap();
                let all = all["approvals"].as_array().unwrap();
                let pending = all.iter().find(|one| one["state"] == "pending");
                waiting = pending.cloned().unwrap_or_default();
                !waiting.is_null()
            });
            let asked = format!("rule `ask-first` of project `project` says: Change {path}?");
            assert_eq!(waiting["message"], asked);
            site.call(answering, verb, json!({ "id": waiting["id"] }))
                .unwrap();
            call.join().unwrap()
        });
        assert_eq!(outcome.is_ok(), written, "{outcome:?}");
        assert_eq!(site.root().join(path).exists(), written);
    }
}

#[test]
fn an_event_that_a_rule_emits_is_listed_over_every_wire() {
    let site = Site::new();
    for (count, wire) in [Wire::Http, Wire::WebSocket].into_iter().enumerate() {
        let read = json!({ "path": "note.md" });
        site.call(wire, "vault.read", read).unwrap();
        let recent = site.call(wire, "events.recent", json!({})).unwrap();
        let events = recent["events"].as_array().unwrap();
        assert_eq!(events.len(), count + 1, "{recent}");
        assert_eq!(events[0]["type"], "custom.note.read");
        assert_eq!(events[0]["source"], "project-rules");
        assert_eq!(events[0]["payload"], json!({ "path": "note.md" }));
    }
    let list = |more: &[&str]| {
        let arguments = [&["--project", "project", "events"], more].concat();
        let outcome = site.server.home.run(&arguments);
        assert_eq!(outcome.code, Some(0), "{}", outcome.shown());
        outcome.stdout
    };
    let shown = list(&[]);
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.contains(r#"custom.note.read  project-rules  {"path":"note.md"}"#));
    let one = list(&["--type", "custom.note", "--limit", "1"]);
    assert!(one.starts_with("… older ones: see --limit\n"), "{one}");
    assert_eq!(one.lines().count(), 2, "{one}");
    let none = list(&["--type", "custom.other"]);
    assert_eq!(none, "no events of type `custom.other`\n");
    let every: Value = serde_json::from_str(&list(&["--all", "--json"])).unwrap();
    let kinds = every["events"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|event| event["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"tool.call.pending"), "{kinds:?}");
}

#[test]
fn rules_are_checked_tested_explained_and_gone_through_again_over_http_and_websocket() {
    let site = Site::new();
    let read = json!({ "path": "note.md" });
    site.call(Wire::Http, "vault.read", read).unwrap();
    for wire in [Wire::Http, Wire::WebSocket] {
        let call = |method: &str, params: Value| {
            let answer = site.call(wire, method, params);
            answer.unwrap_or_else(|error| panic!("{wire:?} {method} {error:?}"))
        };
        assert_eq!(call("rules.check", json!({}))["problems"], json!([]));
        let tested = call("rules.test", json!({}));
        assert_eq!(tested["failed"], 0, "{tested}");
        let explained = call("rules.explain", json!({ "rule": "tell" }));
        assert_eq!(explained["events"][0]["verdict"], "fired", "{explained}");
        let shown = call("rules.show", json!({ "rule": "tell" }));
        assert_eq!(shown["rule"], "rules/tell", "{shown}");
        let doctor = call("rules.doctor", json!({}));
        assert!(doctor["findings"].is_array(), "{doctor}");
        let wrong = site.call(wire, "rules.show", json!({ "rule": "no-such" }));
        assert_eq!(wrong.unwrap_err().code.as_str(), "hub.not_found");
    }
    let began = site.call(Wire::Http, "rules.backtest", json!({})).unwrap();
    assert!(began["stream_id"].is_string(), "{began}");
    let report = runtime().block_on(async {
        let client = Client::connect(&site.url, &site.token, Some(&site.project)).await?;
        let stream = client.open("rules.backtest", json!({}), None).await?;
        stream.result().await
    });
    let report = report.unwrap();
    let rules = report["rules"].as_array().unwrap().iter();
    let mut told = rules.filter(|rule| rule["rule"] == "rules/tell");
    assert_eq!(told.next().unwrap()["fired"], 1, "{report}");
}
