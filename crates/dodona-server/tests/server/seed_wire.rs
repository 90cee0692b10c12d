//! The wire examples of the hub's first design document ("Plugin-Based Context Management
//! Architecture"), with the fields and values that it shows: the request, the response with the
//! address of the stream, the SSE events, and the path of a nested call three plugins deep.
//!
//! `docs/reference/seeds.md` compares the whole document with what is here.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Emitter, Plugin, PluginContext, plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::sse::Event;
use crate::support::Server;

/// The request of the document.
const REQUEST: &str = r#"{
  "jsonrpc": "2.0",
  "method": "agent.chat",
  "params": {
    "agent_id": "123",
    "message": "Hello!"
  },
  "id": 1
}"#;

#[derive(Deserialize, JsonSchema)]
struct ChatParams {
    agent_id: String,
    message: String,
}

#[derive(Serialize, JsonSchema)]
struct AgentResponse {
    text: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct ToolParams {
    tool: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct ToolResult {
    content: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct FileParams {
    path: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct FileContent {
    content: String,
}

struct Agent;

#[plugin(name = "agent")]
impl Agent {
    /// Chat with an agent.
    #[method(scope = "agent:use")]
    async fn chat(
        &self,
        ctx: &CallCtx,
        p: ChatParams,
        out: Emitter<AgentResponse>,
    ) -> Result<(), CallError> {
        ctx.progress("Starting...", None).await?;
        let tool = ToolParams {
            tool: "read".into(),
        };
        let found: ToolResult = ctx.call("mcp_client.execute_tool", tool).await?;
        ctx.progress("Generating response...", Some(75.0)).await?;
        let text = format!("{} said {}: {}", p.agent_id, p.message, found.content);
        out.send(AgentResponse { text }).await
    }
}

struct McpClient;

#[plugin(name = "mcp_client")]
impl McpClient {
    /// Run a tool of a server.
    #[method(scope = "mcp_client:use")]
    async fn execute_tool(&self, ctx: &CallCtx, p: ToolParams) -> Result<ToolResult, CallError> {
        let file = FileParams { path: p.tool };
        let read: FileContent = ctx.call("filesystem.read", file).await?;
        ctx.progress("Processing tool result...", None).await?;
        Ok(ToolResult {
            content: read.content,
        })
    }
}

struct Filesystem;

#[plugin(name = "filesystem")]
impl Filesystem {
    /// Read a file.
    #[method(scope = "filesystem:use")]
    async fn read(&self, ctx: &CallCtx, p: FileParams) -> Result<FileContent, CallError> {
        ctx.progress("Reading file...", None).await?;
        Ok(FileContent { content: p.path })
    }
}

/// A plugin of one group of methods.
macro_rules! plugin_of {
    ($plugin:ident, $methods:expr, $name:literal) => {
        struct $plugin;

        impl Plugin for $plugin {
            fn name(&self) -> &'static str {
                $name
            }

            fn version(&self) -> &'static str {
                "1.0.0"
            }

            fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
                Box::pin(async {
                    let methods = Arc::new($methods).plugin_methods()?;
                    Ok(Contribution::new().methods(methods))
                })
            }
        }
    };
}

plugin_of!(AgentPlugin, Agent, "agent");
plugin_of!(McpClientPlugin, McpClient, "mcp_client");
plugin_of!(FilesystemPlugin, Filesystem, "filesystem");

async fn server() -> Server {
    let plugins = |hub: dodona_testkit::HubBuilder| {
        hub.plugin(|| AgentPlugin)
            .plugin(|| McpClientPlugin)
            .plugin(|| FilesystemPlugin)
    };
    Server::builder().hub(plugins).start().await
}

/// The events of the stream that answers the request of the document.
async fn events(server: &Server) -> Vec<Event> {
    let owner = server.owner();
    let answer = owner.answer(REQUEST).await;
    // {"jsonrpc": "2.0", "result": {"stream_id": …, "sse_url": "/streams/…"}, "id": 1}
    assert_eq!(answer.as_object().unwrap().len(), 3, "{answer}");
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!(1))
    );
    let stream = answer["result"]["stream_id"].as_str().unwrap();
    let expected = json!({ "stream_id": stream, "sse_url": format!("/streams/{stream}") });
    assert_eq!(answer["result"], expected);
    let mut reader = owner.events(stream, 0).await;
    let mut events = Vec::new();
    while let Some(event) = reader.next().await.unwrap() {
        if event.id.is_some() {
            events.push(event);
        }
    }
    events
}

/// An event without what we add to those of the document: the call, the position in the stream,
/// and how and why a call ended.
fn as_in_the_document(event: &Event) -> (String, Value) {
    let mut fields: Map<String, Value> = serde_json::from_str(&event.data).unwrap();
    for added in ["call_id", "seq"] {
        assert!(fields.remove(added).is_some(), "{event:?}");
    }
    if event.event == "done" {
        assert_eq!(fields.remove("status"), Some(json!("complete")));
        assert_eq!(fields.remove("reason"), Some(Value::Null));
    }
    // `75` and `75.0` are the same JSON number, but not the same `Value`.
    if let Some(percentage) = fields.get("percentage").and_then(Value::as_f64) {
        fields.insert("percentage".to_owned(), json!(percentage as u64));
    }
    (event.event.clone(), Value::Object(fields))
}

#[tokio::test]
async fn the_sse_example_arrives_with_its_events_fields_and_values() {
    let server = server().await;
    let seen: Vec<_> = events(&server)
        .await
        .iter()
        .map(as_in_the_document)
        .collect();
    let expected = [
        (
            "progress",
            json!({"plugin_path": "agent", "message": "Starting...", "percentage": null}),
        ),
        (
            "data",
            json!({"plugin_path": "agent.mcp_client", "content_type": "ToolResult", "data": {"content": "read"}}),
        ),
        (
            "progress",
            json!({"plugin_path": "agent", "message": "Generating response...", "percentage": 75}),
        ),
        (
            "data",
            json!({"plugin_path": "agent", "content_type": "AgentResponse", "data": {"text": "123 said Hello!: read"}}),
        ),
        ("done", json!({"plugin_path": "agent"})),
    ];
    // The example leaves out the other items of nested calls, so it is a part of the stream, in order.
    let mut rest = seen.iter();
    for (event, fields) in expected {
        let found = rest.any(|(kind, data)| kind == event && *data == fields);
        assert!(found, "{event} {fields}\n{seen:#?}");
    }
    assert_eq!(rest.next(), None, "the root's `done` is the last event");
    server.stop().await;
}

#[tokio::test]
async fn the_nested_example_has_its_paths_messages_and_order() {
    let server = server().await;
    let events = events(&server).await;
    let shown: Vec<String> = events
        .iter()
        .map(|event| {
            let (kind, fields) = as_in_the_document(event);
            let path = fields["plugin_path"].as_str().unwrap().to_owned();
            match fields["message"].as_str() {
                Some(message) => format!("{kind} {path} {message}"),
                None => format!("{kind} {path}"),
            }
        })
        .collect();
    assert_eq!(
        shown,
        [
            "progress agent Starting...",
            "progress agent.mcp_client.filesystem Reading file...",
            "data agent.mcp_client.filesystem",
            "done agent.mcp_client.filesystem",
            "progress agent.mcp_client Processing tool result...",
            "data agent.mcp_client",
            "done agent.mcp_client",
            "progress agent Generating response...",
            "data agent",
            "done agent",
        ]
    );
    // Cancelling by a prefix of the path needs the calls behind the names to differ.
    let calls: std::collections::BTreeSet<String> = events
        .iter()
        .map(|event| {
            let item: Value = serde_json::from_str(&event.data).unwrap();
            item["call_id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(calls.len(), 3, "{calls:?}");
    server.stop().await;
}
