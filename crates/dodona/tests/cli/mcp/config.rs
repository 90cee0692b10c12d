//! `dodona mcp config`.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::stdio::Client;
use super::{Place, post_to};
use crate::harness::{DODONA, Home, check};

/// Every client, and where in its settings a server stands.
const CLIENTS: [(&str, &str); 8] = [
    ("claude-code", "mcpServers"),
    ("claude-desktop", "mcpServers"),
    ("codex", "mcp_servers"),
    ("cursor", "mcpServers"),
    ("gemini-cli", "mcpServers"),
    ("vscode", "servers"),
    ("windsurf", "mcpServers"),
    ("zed", "context_servers"),
];

/// What a client reads out of its settings about us.
fn read(client: &str, key: &str, snippet: &str) -> Value {
    let settings: Value = match client {
        "codex" => serde_json::to_value(toml::from_str::<toml::Table>(snippet).unwrap()).unwrap(),
        _ => serde_json::from_str(snippet).unwrap(),
    };
    settings[key]["dodona"].clone()
}

fn texts(value: &Value) -> Vec<&str> {
    let texts = value.as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).collect()
}

#[test]
fn the_command_of_every_snippet_starts_a_server_about_the_project() {
    let place = Place::new();
    for (client, key) in CLIENTS {
        let snippet = ["mcp", "config", client, "--project", place.project()];
        let snippet = place
            .home
            .run(&[&snippet[..], &["--tools", "vault"]].concat());
        assert_eq!(snippet.code, Some(0), "{}", snippet.stderr);
        let server = read(client, key, &snippet.stdout);
        let program = server["command"].as_str().unwrap();
        let mut command = Command::new(program);
        command
            .args(texts(&server["args"]))
            // Anywhere, as programs with windows do it.
            .current_dir("/")
            .env("DODONA_HOME", place.home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut started = Client::run(&mut command);
        let read = started.call(1, "vault_read", json!({ "path": "auth.md" }));
        assert_eq!(read["isError"], false, "{client}: {read}");
        started.leave();
    }
    let listed = place.home.run(&["mcp", "config", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let names = listed["clients"].as_array().unwrap().iter();
    let names: Vec<&str> = names.filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, CLIENTS.map(|(name, _)| name), "each is tried here");
}

/// What a client puts into a header for what its settings say.
fn filled_in(value: &str, token: &str) -> String {
    let forms = [
        "${env:DODONA_TOKEN}",
        "${DODONA_TOKEN}",
        "${input:dodona-token}",
        "$DODONA_TOKEN",
        "<token>",
    ];
    let form = forms.iter().find(|form| value.contains(**form));
    form.map_or_else(|| value.to_owned(), |form| value.replace(form, token))
}

#[test]
fn the_address_of_every_snippet_is_a_server_about_the_project() {
    let place = Place::new();
    let (_server, setup) = place.serve("all");
    let token = setup["token"].as_str().unwrap();
    for (client, key) in CLIENTS
        .into_iter()
        .filter(|(name, _)| *name != "claude-desktop")
    {
        let snippet = [
            "mcp",
            "config",
            client,
            "--http",
            "--project",
            place.project(),
        ];
        let snippet = place
            .home
            .run(&[&snippet[..], &["--tools", "vault"]].concat());
        assert_eq!(snippet.code, Some(0), "{}", snippet.stderr);
        let server = read(client, key, &snippet.stdout);
        let url = ["url", "httpUrl", "serverUrl"]
            .iter()
            .find_map(|key| server[*key].as_str());
        let named = ["headers", "http_headers"]
            .iter()
            .find_map(|key| server[*key].as_object());
        let mut headers: Vec<(String, String)> = named
            .unwrap()
            .iter()
            .map(|(name, value)| (name.clone(), filled_in(value.as_str().unwrap(), token)))
            .collect();
        if server["bearer_token_env_var"] == "DODONA_TOKEN" {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let stateless = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "vault_read"),
        ];
        let headers = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<_> = headers.chain(stateless).collect();
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "vault_read", "arguments": { "path": "auth.md" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        } });
        let read = post_to(url.unwrap(), &headers, &call);
        assert_eq!(read["result"]["isError"], false, "{client}: {read}");
    }
}

#[test]
fn a_snippet_starts_this_program_about_this_project() {
    let place = Place::new();
    let arguments = [
        "mcp",
        "config",
        "claude-code",
        "--tools",
        "vault,ask",
        "--project",
        place.project(),
    ];
    let made = place.home.run(&arguments);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let snippet: Value = serde_json::from_str(&made.stdout).unwrap();
    let server = &snippet["mcpServers"]["dodona"];
    assert_eq!(server["command"], DODONA);
    let expected = ["mcp", "--project", place.project(), "--tools", "ask,vault"];
    assert_eq!(server["args"], serde_json::json!(expected));
    let as_json = place.home.run(&[&arguments[..], &["--json"]].concat());
    let as_json: Value = serde_json::from_str(&as_json.stdout).unwrap();
    assert_eq!(as_json["snippet"], made.stdout);
    assert_eq!(as_json["transport"], "stdio");
}

#[test]
fn a_snippet_for_http_names_the_running_server_and_holds_no_token() {
    let place = Place::new();
    let (_server, setup) = place.serve("all");
    let token = setup["token"].as_str().unwrap();
    for client in [
        "claude-code",
        "codex",
        "cursor",
        "gemini-cli",
        "vscode",
        "windsurf",
        "zed",
    ] {
        let made = place.home.run(&[
            "mcp",
            "config",
            client,
            "--http",
            "--project",
            place.project(),
        ]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        let url = setup["url"].as_str().unwrap().split('?').next().unwrap();
        assert!(made.stdout.contains(url), "{}", made.stdout);
        assert!(
            made.stdout.contains(setup["project_id"].as_str().unwrap()),
            "{}",
            made.stdout
        );
        assert!(!made.stdout.contains(token) && made.stderr.contains("dodona token create"));
    }
    let cannot = place
        .home
        .run(&["mcp", "config", "claude-desktop", "--http"]);
    assert_eq!(cannot.code, Some(2), "{}", cannot.stdout);
}

#[test]
fn clients_are_listed_and_one_that_is_not_known_is_an_error() {
    check("mcp_config_list", &["mcp", "config"]);
    check("mcp_config_unknown", &["mcp", "config", "curser"]);
    let listed = Home::new().run(&["mcp", "config", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert!(listed["clients"].as_array().unwrap().len() >= 8);
}
