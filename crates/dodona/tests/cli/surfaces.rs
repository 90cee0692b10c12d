//! What a rule refuses or asks holds for whoever calls: by command, HTTP, WebSocket, MCP on both
//! transports, from a plugin's own call, and for the agent.

use std::fs;

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::approvals::told;
use crate::harness::{Home, wait_until};
use crate::mcp::stdio;
use crate::model::Model;
use crate::wire::{Site, Wire};

/// A way by which a tool is called.
#[derive(Debug, Clone, Copy)]
enum Surface {
    Command,
    Http,
    WebSocket,
    Mcp,
    McpStdio,
    Plugin,
    Agent,
}

const SURFACES: [Surface; 7] = [
    Surface::Command,
    Surface::Http,
    Surface::WebSocket,
    Surface::Mcp,
    Surface::McpStdio,
    Surface::Plugin,
    Surface::Agent,
];

/// A plugin that passes calls on.
const CLERK: &str = r#"
dodona.method { name = "pass", doc = "Calls a method.",
    params = { type = "object", properties = { method = { type = "string" }, params = { type = "object" } } },
    run = function(ctx, p) return ctx.call(p.method, p.params) end }
"#;

const MANIFEST: &str = "[plugin]\nid = \"clerk\"\nversion = \"0.1.0\"\n\
    [capabilities]\nuses = [\"call:vault\"]\n[script]\nmain = \"main.luau\"\n";

/// The server with its rules, a plugin that calls others, and a model.
struct Office {
    site: Site,
    model: Model,
}

impl Office {
    fn open() -> Self {
        let home = Home::new();
        let model = Model::of(&home);
        let plugin = home.path().join("config/plugins/clerk");
        fs::create_dir_all(&plugin).unwrap();
        fs::write(plugin.join("manifest.toml"), MANIFEST).unwrap();
        fs::write(plugin.join("main.luau"), CLERK).unwrap();
        let granted = home.run(&["plugins", "grant", "clerk", "call:vault"]);
        assert_eq!(granted.code, Some(0), "{}", granted.shown());
        Self {
            site: Site::on(home),
            model,
        }
    }

    /// Calls a tool, and tells what the caller is told where that goes wrong.
    fn call(&self, surface: Surface, method: &str, params: &Value) -> Result<(), String> {
        let tool = method.replace('.', "_");
        let wire = |wire: Wire, method: &str, params: Value| {
            let called = self.site.call(wire, method, params);
            called.map(|_| ()).map_err(|error| error.message)
        };
        match surface {
            Surface::Command => self.command(method, params),
            Surface::Http => wire(Wire::Http, method, params.clone()),
            Surface::WebSocket => wire(Wire::WebSocket, method, params.clone()),
            Surface::Mcp => of_mcp(&self.site.mcp(&tool, params)),
            Surface::McpStdio => {
                let home = &self.site.server.home;
                let arguments = ["mcp", "--project", "project", "--tools", "vault"];
                let mut client = stdio::Client::run(&mut home.command(&arguments));
                let result = client.call(1, &tool, params.clone());
                client.leave();
                of_mcp(&result)
            }
            Surface::Plugin => {
                let passed = json!({ "method": method, "params": params });
                wire(Wire::Http, "clerk.pass", passed)
            }
            Surface::Agent => self.ask(&tool, params),
        }
    }

    fn command(&self, method: &str, params: &Value) -> Result<(), String> {
        let params = params.as_object().unwrap().iter();
        let params = params.map(|(name, value)| format!("{name}={}", value.as_str().unwrap()));
        let params: Vec<String> = params.collect();
        let mut arguments = vec!["--project", "project", "call", method];
        arguments.extend(params.iter().map(String::as_str));
        let called = self.site.server.home.run(&arguments);
        match called.code {
            Some(0) => Ok(()),
            _ => Err(called.stderr),
        }
    }

    /// A question for which the model uses the tool.
    fn ask(&self, tool: &str, params: &Value) -> Result<(), String> {
        let call = Reply::stream().tool_call("a", tool, &[&params.to_string()]);
        self.model.says(call);
        self.model.says(Reply::text("Done."));
        let arguments = ["--project", "project", "ask", "Go"];
        let asked = self.site.server.home.run(&arguments);
        assert_eq!(asked.code, Some(0), "{}", asked.shown());
        match told(&self.model)["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(()),
        }
    }

    /// Answers the next call that waits, and tells what was asked.
    fn answer(&self, verb: &str) -> String {
        let mut waiting = Value::Null;
        wait_until("a call waits", || {
            let all = self.site.call(Wire::Http, "hub.approvals", json!({}));
            let all = all.unwrap()["approvals"].as_array().unwrap().clone();
            let mut pending = all.into_iter().filter(|one| one["state"] == "pending");
            waiting = pending.next().unwrap_or_default();
            !waiting.is_null()
        });
        let id = json!({ "id": waiting["id"] });
        self.site.call(Wire::Http, verb, id).unwrap();
        waiting["message"].as_str().unwrap().to_owned()
    }
}

/// What a client of MCP makes of a result.
fn of_mcp(result: &Value) -> Result<(), String> {
    match result["isError"].as_bool() {
        Some(false) => Ok(()),
        _ => Err(result["content"].to_string()),
    }
}

#[test]
fn a_refusal_of_a_rule_holds_on_every_surface() {
    let office = Office::open();
    for surface in SURFACES {
        let delete = json!({ "path": "note.md" });
        let refused = office.call(surface, "vault.delete", &delete).unwrap_err();
        assert!(refused.contains("note.md stays"), "{surface:?}: {refused}");
        assert!(office.site.root().join("note.md").exists(), "{surface:?}");
    }
}

#[test]
fn a_question_of_a_rule_waits_on_every_surface_for_its_answer() {
    let office = Office::open();
    for surface in SURFACES {
        for (verb, is_written) in [("hub.approve", true), ("hub.deny", false)] {
            let path = format!("published/{surface:?}-{is_written}.md");
            let write = json!({ "path": path, "body": "text" });
            let (called, question) = std::thread::scope(|scope| {
                let call = scope.spawn(|| office.call(surface, "vault.write", &write));
                let question = office.answer(verb);
                (call.join().unwrap(), question)
            });
            assert_eq!(
                question,
                format!("rule `ask-first` of project `project` says: Change {path}?")
            );
            assert_eq!(called.is_ok(), is_written, "{surface:?}: {called:?}");
            assert_eq!(office.site.root().join(path).exists(), is_written);
        }
    }
}
