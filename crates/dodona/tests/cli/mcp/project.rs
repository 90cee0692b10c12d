//! What a project brings is offered to clients about that project, and to nobody else.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::stdio::Client;
use super::{Place, post};

const MANIFEST: &str = "[plugin]\nid = \"greeter\"\nversion = \"1.0.0\"\ndescription = \"Greets\"\n\
                        [script]\nmain = \"main.luau\"\n";

const SCRIPT: &str = "
dodona.method { name = 'hello', doc = 'Says hello.', tool = true, read_only = true,
    run = function() return { text = 'hello' } end }
";

fn bring_greeter(project: &Path) {
    let dir = project.join(".dodona/plugins/greeter");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("manifest.toml"), MANIFEST).unwrap();
    fs::write(dir.join("main.luau"), SCRIPT).unwrap();
}

/// Whether the tools that a client is offered have the project's.
fn is_offered(listed: &Value) -> bool {
    listed.to_string().contains("\"greeter_hello\"")
}

#[test]
fn the_tools_of_a_trusted_project_are_offered_about_that_project_alone() {
    let place = Place::new();
    bring_greeter(&place.project);
    let mut before = Client::start(&place, &[]);
    assert!(!is_offered(&before.ask(1, "tools/list", json!({}))));
    before.leave();
    let trusted = ["trust", "accept", "--yes", "--project", place.project()];
    let trusted = place.home.run(&trusted);
    assert_eq!(trusted.code, Some(0), "{}", trusted.shown());
    let mut client = Client::start(&place, &[]);
    assert!(is_offered(&client.ask(1, "tools/list", json!({}))));
    let said = client.call(2, "greeter_hello", json!({}));
    assert_eq!(said["isError"], false, "{said}");
    client.leave();
    let (_server, setup) = place.serve("all");
    let project = setup["project_id"].as_str().unwrap();
    for (project, expected) in [(Some(project), true), (None, false)] {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        } } });
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/list"),
        ];
        let listed = post(&setup, "/mcp?tools=all", project, &headers, &list);
        assert_eq!(is_offered(&listed), expected, "{listed}");
        for method in ["rpc.discover", "tools/list"] {
            let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
            let told = post(&setup, "/rpc", project, &[], &ask);
            assert!(told["result"].is_object(), "{told}");
            assert_eq!(told.to_string().contains("greeter"), expected, "{method}");
        }
    }
}
