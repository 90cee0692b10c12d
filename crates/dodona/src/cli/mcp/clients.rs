//! MCP clients, and how each of them is told about a server. One line each in [`CLIENTS`].

use serde_json::{Map, Value, json};

/// The name that clients know the server by.
const NAME: &str = "dodona";

/// The variable from which clients take the token.
pub(super) const TOKEN: &str = "DODONA_TOKEN";

/// How to reach Dodona.
pub(super) enum Way {
    /// The client starts it.
    Stdio {
        command: String,
        arguments: Vec<String>,
    },
    /// It runs already.
    Http {
        url: String,
        project: Option<String>,
    },
}

/// A client.
pub(super) struct Client {
    pub(super) name: &'static str,
    /// Where it reads what servers there are.
    pub(super) file: &'static str,
    form: Form,
}

/// In what form.
#[derive(Clone, Copy)]
enum Form {
    /// `{"mcpServers": {…}}`; how a server over HTTP is written differs.
    McpServers(Remote),
    /// `{"servers": {…}}`, with the kind of each.
    Servers,
    /// `{"context_servers": {…}}`.
    ContextServers,
    /// `[mcp_servers.…]`, in TOML.
    Toml,
}

/// How a server over HTTP is written.
#[derive(Clone, Copy)]
enum Remote {
    /// It is not.
    Never,
    /// Under this key, with this kind if any, and the token taken from the environment like this.
    Key {
        url: &'static str,
        kind: Option<&'static str>,
        token: &'static str,
    },
}

const fn key(url: &'static str, token: &'static str) -> Remote {
    let kind = None;
    Remote::Key { url, kind, token }
}

/// Every client that is known.
#[rustfmt::skip]
pub(super) const CLIENTS: &[Client] = &[
    Client { name: "claude-code",    file: ".mcp.json in the project",                     form: Form::McpServers(Remote::Key { url: "url", kind: Some("http"), token: "${DODONA_TOKEN}" }) },
    Client { name: "claude-desktop", file: "claude_desktop_config.json (Settings > Developer > Edit Config)", form: Form::McpServers(Remote::Never) },
    Client { name: "codex",          file: "~/.codex/config.toml, or .codex/config.toml in the project", form: Form::Toml },
    Client { name: "cursor",         file: ".cursor/mcp.json in the project, or ~/.cursor/mcp.json", form: Form::McpServers(key("url", "${env:DODONA_TOKEN}")) },
    Client { name: "gemini-cli",     file: ".gemini/settings.json in the project, or ~/.gemini/settings.json", form: Form::McpServers(key("httpUrl", "$DODONA_TOKEN")) },
    Client { name: "vscode",         file: ".vscode/mcp.json in the project",              form: Form::Servers },
    Client { name: "windsurf",       file: "~/.codeium/windsurf/mcp_config.json",          form: Form::McpServers(key("serverUrl", "${env:DODONA_TOKEN}")) },
    Client { name: "zed",            file: "settings.json (command: zed: open settings file)",  form: Form::ContextServers },
];

impl Client {
    /// What to write into the file; `None` if the client cannot reach a server that way.
    pub(super) fn snippet(&self, way: &Way) -> Option<String> {
        let value = match self.form {
            Form::McpServers(remote) => wrap("mcpServers", entry(way, remote)?),
            Form::Servers => servers(way)?,
            Form::ContextServers => wrap("context_servers", entry(way, key("url", "<token>"))?),
            Form::Toml => return Some(toml(way)),
        };
        Some(format!("{value:#}\n"))
    }
}

fn wrap(key: &str, entry: Value) -> Value {
    json!({ key: { NAME: entry } })
}

fn entry(way: &Way, remote: Remote) -> Option<Value> {
    match (way, remote) {
        (Way::Stdio { command, arguments }, _) => {
            Some(json!({ "command": command, "args": arguments }))
        }
        (Way::Http { .. }, Remote::Never) => None,
        (
            Way::Http { url, project },
            Remote::Key {
                url: key,
                kind,
                token,
            },
        ) => {
            let mut fields = Map::new();
            fields.extend(kind.map(|kind| ("type".to_owned(), json!(kind))));
            fields.insert(key.to_owned(), json!(url));
            fields.insert("headers".to_owned(), headers(token, project.as_deref()));
            Some(Value::Object(fields))
        }
    }
}

fn headers(token: &str, project: Option<&str>) -> Value {
    let mut headers = json!({ "Authorization": format!("Bearer {token}") });
    if let Some(project) = project {
        headers["X-Dodona-Project"] = project.into();
    }
    headers
}

/// VS Code asks for the token itself, and keeps it.
fn servers(way: &Way) -> Option<Value> {
    let token = "${input:dodona-token}";
    let remote = Remote::Key {
        url: "url",
        kind: Some("http"),
        token,
    };
    let mut entry = entry(way, remote)?;
    if let Way::Stdio { .. } = way {
        entry["type"] = "stdio".into();
        return Some(wrap("servers", entry));
    }
    let mut whole = wrap("servers", entry);
    whole["inputs"] = json!([{
        "type": "promptString", "id": "dodona-token", "description": "Dodona token", "password": true,
    }]);
    Some(whole)
}

fn toml(way: &Way) -> String {
    // What JSON calls a string, TOML does too.
    let text = |text: &str| json!(text).to_string();
    match way {
        Way::Stdio { command, arguments } => {
            let arguments: Vec<String> = arguments.iter().map(|argument| text(argument)).collect();
            let (command, arguments) = (text(command), arguments.join(", "));
            format!("[mcp_servers.{NAME}]\ncommand = {command}\nargs = [{arguments}]\n")
        }
        Way::Http { url, project } => {
            let url = text(url);
            let project = project.as_ref().map(|project| {
                format!(
                    "http_headers = {{ \"X-Dodona-Project\" = {} }}\n",
                    text(project)
                )
            });
            let project = project.unwrap_or_default();
            format!(
                "[mcp_servers.{NAME}]\nurl = {url}\nbearer_token_env_var = \"{TOKEN}\"\n{project}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_snippet_can_be_read_and_none_holds_a_token() {
        let ways = [
            Way::Stdio {
                command: "/opt/do dona\"".to_owned(),
                arguments: vec![
                    "mcp".to_owned(),
                    "--project".to_owned(),
                    "/srv/ä".to_owned(),
                ],
            },
            Way::Http {
                url: "http://127.0.0.1:7421/mcp".to_owned(),
                project: Some("site".to_owned()),
            },
        ];
        for client in CLIENTS {
            for way in &ways {
                let Some(snippet) = client.snippet(way) else {
                    assert_eq!(client.name, "claude-desktop");
                    continue;
                };
                let read = match client.form {
                    Form::Toml => toml::from_str::<toml::Table>(&snippet).is_ok(),
                    _ => serde_json::from_str::<Value>(&snippet).is_ok(),
                };
                assert!(read, "{}: {snippet}", client.name);
                let named = match way {
                    Way::Stdio { .. } => "/srv/ä",
                    Way::Http { .. } => "http://127.0.0.1:7421/mcp",
                };
                assert!(snippet.contains(named), "{}: {snippet}", client.name);
            }
        }
        assert!(CLIENTS.is_sorted_by_key(|client| client.name));
    }
}
