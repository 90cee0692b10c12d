//! MCP clients: the official ones, on both transports, against the program that ships.

mod config;
mod peers;
mod project;
pub(crate) mod stdio;

use std::fs;
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};

use crate::harness::{DODONA, Home, wait_until};

/// More than one page of notes.
const NOTES: usize = 120;

/// A home with a project of many notes, where writing asks a person and deleting is forbidden.
struct Place {
    home: Home,
    project: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = Home::new();
        home.configure("[approvals]\nmethods = [\"vault.write\"]\n");
        let rules = home.path().join("config/rules");
        fs::create_dir_all(&rules).unwrap();
        fs::write(rules.join("no-deleting.toml"), RULE).unwrap();
        let project = home.path().parent().unwrap().join("project");
        fs::create_dir_all(project.join(".dodona")).unwrap();
        fs::write(project.join("auth.md"), "# Login\n\nRefresh tokens were dropped in March, because revocation needed a shared store.\n").unwrap();
        for n in 1..NOTES {
            fs::write(
                project.join(format!("note-{n:03}.md")),
                format!("# Note {n}\n"),
            )
            .unwrap();
        }
        Self { home, project }
    }

    fn project(&self) -> &str {
        self.project.to_str().unwrap()
    }

    /// What a client is told about where to find us.
    fn setup(&self, tools: &str) -> Value {
        json!({
            "dodona": DODONA,
            "arguments": ["mcp", "--tools", tools, "--project", self.project()],
            "environment": { "DODONA_HOME": self.home.path() },
            "project": self.project(),
        })
    }

    /// A server of this home, and what a client is told about it.
    fn serve(&self, tools: &str) -> (Server, Value) {
        let ready = self.home.path().join("ready.json");
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--ready-file",
            ready.to_str().unwrap(),
        ];
        let child = self
            .home
            .command(&arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Server(child);
        wait_until("the server is ready", || ready.exists());
        let told: Value = serde_json::from_slice(&fs::read(&ready).unwrap()).unwrap();
        let registered = ["call", "hub.register_project", "--json"];
        let root = format!("root={}", self.project());
        let registered = self.home.run(&[&registered[..], &[root.as_str()]].concat());
        let project: Value = serde_json::from_str(&registered.stdout).unwrap();
        let token = fs::read_to_string(self.home.path().join("token")).unwrap();
        let mut setup = self.setup(tools);
        setup["url"] = format!("{}/mcp?tools={tools}", told["url"].as_str().unwrap()).into();
        setup["token"] = token.trim().into();
        setup["project_id"] = project["id"].clone();
        (server, setup)
    }

    /// The states of all questions that were asked, by the path that would have been written.
    fn answered(&self) -> Vec<(String, String)> {
        let listed = self.home.run(&["approvals", "list", "--all", "--json"]);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let approvals = listed.as_array().unwrap();
        let mut states: Vec<_> = approvals
            .iter()
            .map(|one| (text(&one["params"]["path"]), text(&one["state"])))
            .collect();
        states.sort();
        states
    }
}

const RULE: &str = r#"
[rule]
id = "no-deleting"
trigger = "on_tool_call"
[condition]
expression = "context.call.tool_name == 'vault_delete'"
[action]
type = "deny"
message = "Notes are not deleted here; move them to `attic/`."
"#;

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines of a program's output, as they come.
fn lines(child: &mut Child) -> Receiver<String> {
    let output = child.stdout.take().unwrap();
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::BufReader::new(output).lines() {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    lines
}

/// What a server answers to a message, about a project or none.
#[track_caller]
fn post(
    setup: &Value,
    path: &str,
    project: Option<&str>,
    headers: &[(&str, &str)],
    message: &Value,
) -> Value {
    let url = setup["url"].as_str().unwrap();
    let token = setup["token"].as_str().unwrap();
    let bearer = format!("Bearer {token}");
    let mut all = vec![("Authorization", bearer.as_str())];
    all.extend(project.map(|project| ("X-Dodona-Project", project)));
    all.extend(headers);
    post_to(&format!("{}{path}", origin(url)), &all, message)
}

/// The beginning of an address, without a path.
fn origin(url: &str) -> &str {
    let host = url.strip_prefix("http://").unwrap();
    let end = host.find('/').unwrap_or(host.len());
    &url[.."http://".len() + end]
}

/// Sends a message to an address, and reads the one that answers it.
#[track_caller]
fn post_to(url: &str, headers: &[(&str, &str)], message: &Value) -> Value {
    let host = &origin(url)["http://".len()..];
    let path = &url[origin(url).len()..];
    let body = message.to_string();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
        body.len()
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let mut socket = TcpStream::connect(host).unwrap();
    write!(socket, "{request}\r\n{body}").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    // Whether in pieces, as an event or as it is: it is the one line that is an object.
    let lines = answer.lines();
    let mut objects = lines.filter_map(|line| {
        let line = line.strip_prefix("data:").unwrap_or(line).trim();
        serde_json::from_str::<Value>(line)
            .ok()
            .filter(Value::is_object)
    });
    objects.next().unwrap_or_else(|| panic!("{answer}"))
}
