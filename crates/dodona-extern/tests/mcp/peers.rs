//! Servers that others wrote, from the registries.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Params, Plugin, PluginContext, plugin};
use dodona_proto::ItemBody;
use dodona_testkit::{Node, Python, TestHub};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{PATIENCE, builder, mount, text, until};

/// Programs of others may take their time on a busy machine.
const PATIENT: &str = "[server]\nstart_timeout = \"90s\"\ntimeout = \"90s\"\n";

/// The reference servers, installed.
fn node() -> Node {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
    Node::locked(&project).unwrap()
}

/// The command that starts one of them.
fn reference(name: &str, args: &str) -> String {
    let (node, script) = script(&node(), name);
    format!("{} {} {args}", node.display(), script.display())
}

fn script(node: &Node, name: &str) -> (PathBuf, PathBuf) {
    let command = node.command();
    let home = command.get_current_dir().unwrap();
    let script = format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    (PathBuf::from(command.get_program()), home.join(script))
}

/// An agent that asks a server.
struct Asking;

#[derive(Deserialize, schemars::JsonSchema)]
struct AskParams {
    method: String,
    params: Value,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Answer {
    result: Value,
}

#[plugin(name = "agent")]
impl Asking {
    /// Calls a method.
    #[method(scope = "agent:use")]
    async fn ask(&self, ctx: &CallCtx, p: AskParams) -> Result<Answer, CallError> {
        let result = ctx.call_value(&p.method, Params::foreign(p.params)).await?;
        Ok(Answer { result })
    }
}

struct AskingPlugin;

impl Plugin for AskingPlugin {
    fn name(&self) -> &str {
        "agent"
    }

    fn version(&self) -> &str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new().methods(Arc::new(Asking).plugin_methods()?)) })
    }
}

/// A hub with one of them mounted.
async fn mounted(name: &str, module: &str) -> TestHub {
    let hub = builder().plugin(|| AskingPlugin).start().await;
    mount(&hub, &[(name, module, PATIENT)]).await;
    let told = hub
        .call("ada", "plugins.info", json!({"plugin": name}))
        .await
        .unwrap();
    assert_eq!(told["state"], "active", "{told}");
    hub
}

#[tokio::test]
async fn the_filesystem_server_reads_writes_and_stays_in_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("note.md"), "remember the milk").unwrap();
    let hub = mounted(
        "filesystem",
        &reference("filesystem", &root.display().to_string()),
    )
    .await;
    let read = json!({"path": root.join("note.md")});
    let told = hub
        .call("ada", "filesystem.read_text_file", read.clone())
        .await
        .unwrap();
    assert_eq!(told["content"], "remember the milk", "{told}");
    let write = json!({"path": root.join("new.md"), "content": "written"});
    hub.call("ada", "filesystem.write_file", write)
        .await
        .unwrap();
    assert_eq!(
        std::fs::read_to_string(root.join("new.md")).unwrap(),
        "written"
    );
    let outside = json!({"path": "/etc/hostname"});
    let refused = hub
        .call("ada", "filesystem.read_text_file", outside)
        .await
        .unwrap_err();
    assert_eq!(refused.code.as_str(), "mcp.tool_failed");

    let asked = json!({"method": "filesystem.read_text_file", "params": read});
    let stream = hub.open("ada", "agent.ask", asked).await.unwrap();
    let items = stream.collect().await.unwrap();
    let nested = items
        .iter()
        .find(|item| item.plugin_path.to_string() == "agent.filesystem");
    assert!(nested.is_some(), "{items:?}");
    hub.stop().await;
}

#[tokio::test]
async fn the_memory_server_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.json");
    let hub = builder().start().await;
    let settings = format!(
        "{PATIENT}[server.env]\nMEMORY_FILE_PATH = {}\n",
        json!(file)
    );
    mount(&hub, &[("memory", &reference("memory", ""), &settings)]).await;
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["writes notes"]});
    let made = hub
        .call("ada", "memory.create_entities", json!({"entities": [ada]}))
        .await;
    made.unwrap();
    let graph = hub
        .call("ada", "memory.read_graph", json!({}))
        .await
        .unwrap();
    assert_eq!(
        graph["entities"][0]["observations"],
        json!(["writes notes"]),
        "{graph}"
    );
    assert!(file.exists());
    hub.stop().await;
}

/// What the server for everything has, over whichever transport.
async fn shows_everything(hub: &TestHub) {
    let sum = text(hub, "everything.get-sum", json!({"a": 2, "b": 3})).await;
    assert!(sum.contains('5'), "{sum}");
    let weather = json!({"location": "Chicago"});
    let weather = hub
        .call("ada", "everything.get-structured-content", weather)
        .await
        .unwrap();
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = hub
        .call("ada", "everything.get-tiny-image", json!({}))
        .await
        .unwrap();
    assert_eq!(image["blocks"][0]["type"], "image", "{image}");
    let bad = hub
        .call("ada", "everything.get-sum", json!({"a": "two"}))
        .await
        .unwrap_err();
    assert_eq!(bad.code.as_str(), "rpc.invalid_params");

    let long = json!({"duration": 1, "steps": 4});
    let method = "everything.trigger-long-running-operation";
    let stream = hub.open("ada", method, long).await.unwrap();
    let items = stream.collect().await.unwrap();
    let steps = items.iter().filter_map(|item| match &item.body {
        ItemBody::Progress { percentage, .. } => *percentage,
        _ => None,
    });
    let steps: Vec<f32> = steps.collect();
    assert!(steps.is_sorted() && !steps.is_empty(), "{items:?}");

    let resources = hub
        .call("ada", "everything.resources", json!({}))
        .await
        .unwrap();
    let uri = resources["resources"][0]["uri"].clone();
    let read = hub
        .call("ada", "everything.read_resource", json!({ "uri": uri }))
        .await
        .unwrap();
    assert!(!read["text"].as_str().unwrap().is_empty(), "{read}");
    let prompts = hub
        .call("ada", "everything.prompts", json!({}))
        .await
        .unwrap();
    let plain = prompts["prompts"].as_array().unwrap().iter();
    let plain = plain.filter(|prompt| prompt["arguments"].as_array().is_none_or(Vec::is_empty));
    let name = plain.map(|prompt| prompt["name"].clone()).next().unwrap();
    let prompt = hub
        .call("ada", "everything.get_prompt", json!({ "name": name }))
        .await
        .unwrap();
    assert!(prompt["messages"][0]["content"].is_object(), "{prompt}");
}

/// Cancels a call that has begun: it is over for us at once, and the server does other work.
async fn cancels(hub: &TestHub) {
    let long = json!({"duration": 600, "steps": 6000});
    let method = "everything.trigger-long-running-operation";
    let mut stream = hub.open("ada", method, long).await.unwrap();
    let begun = async {
        // Our own word that the server is being started has no number.
        let told =
            |body: &str| serde_json::from_str::<Value>(body).unwrap()["percentage"].is_number();
        while let Some(items) = stream.next().await.unwrap() {
            if items.iter().any(|item| told(&item.body)) {
                return;
            }
        }
        panic!("it ended before it told of its progress");
    };
    tokio::time::timeout(PATIENCE, begun).await.unwrap();
    drop(stream);
    let sum = text(hub, "everything.get-sum", json!({"a": 20, "b": 3})).await;
    assert!(sum.contains("23"), "{sum}");
}

#[tokio::test]
async fn the_server_for_everything_over_standard_input_and_output() {
    let hub = mounted("everything", &reference("everything", "stdio")).await;
    shows_everything(&hub).await;
    cancels(&hub).await;
    hub.stop().await;
}

/// A server that ends with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_server_for_everything_over_http() {
    let node = node();
    let (_, script) = script(&node, "everything");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = node.command();
    command
        .arg(script)
        .arg("streamableHttp")
        .env("PORT", port.to_string());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _served = Served(command.spawn().unwrap());
    until("the server", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    })
    .await;
    let hub = mounted("everything", &format!("http://127.0.0.1:{port}/mcp")).await;
    shows_everything(&hub).await;
    hub.stop().await;
}

/// The reference servers in Python, installed.
fn python(module: &str) -> String {
    let packages = [
        "mcp==2.3.0",
        "mcp-server-git==2026.10.19",
        "mcp-server-time==2026.10.19",
    ];
    let command = Python::with(&packages).unwrap().command();
    format!("{} -m {module}", Path::new(command.get_program()).display())
}

#[tokio::test]
async fn the_time_server_in_python_tells_the_time() {
    let hub = mounted("time", &python("mcp_server_time")).await;
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let told = hub.call("ada", "time.convert_time", noon).await.unwrap();
    assert!(told.to_string().contains("21:00"), "{told}");
    hub.stop().await;
}

#[tokio::test]
async fn the_git_server_in_python_reads_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(folder.path()).args(args);
        assert!(command.output().unwrap().status.success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    std::fs::write(folder.path().join("note.md"), "# Note\n").unwrap();
    git(&["add", "note.md"]);
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    git(&[
        &who[..],
        &["commit", "--quiet", "--message", "the first note"],
    ]
    .concat());
    let hub = mounted("git", &python("mcp_server_git")).await;
    let log = hub
        .call("ada", "git.git_log", json!({"repo_path": folder.path()}))
        .await
        .unwrap();
    assert!(log.to_string().contains("the first note"), "{log}");
    hub.stop().await;
}
