//! `dodona mcp config`.

use serde_json::Value;

use super::Place;
use crate::harness::{DODONA, Home, check};

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
