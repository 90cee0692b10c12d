//! Plugins with the tools that the conformance suite calls. They are in no program: only these
//! tests install them.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, NoParams, Plugin, PluginContext, plugin};
use dodona_proto::ErrorCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A red pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A moment of silence.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Text and blocks, as a mounted server's tool answers with.
#[derive(Default, Serialize, JsonSchema)]
struct ToolResult {
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<Value>,
}

fn blocks(blocks: impl IntoIterator<Item = Value>) -> ToolResult {
    let blocks = blocks.into_iter().collect();
    ToolResult {
        blocks,
        ..ToolResult::default()
    }
}

#[derive(Deserialize, JsonSchema)]
struct SleepParams {
    ms: u64,
}

struct Test;

#[plugin(name = "test")]
impl Test {
    /// Answers with a text.
    #[method(scope = "test:use", tool(category = "meta"))]
    async fn simple_text(&self, _ctx: &CallCtx) -> Result<ToolResult, CallError> {
        let text = "This is a simple text response for testing.".to_owned();
        Ok(ToolResult {
            text,
            ..ToolResult::default()
        })
    }

    /// Answers with an image.
    #[method(scope = "test:use", tool(category = "meta"))]
    async fn image_content(&self, _ctx: &CallCtx) -> Result<ToolResult, CallError> {
        Ok(blocks([
            json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" }),
        ]))
    }

    /// Answers with a sound.
    #[method(scope = "test:use", tool(category = "meta"))]
    async fn audio_content(&self, _ctx: &CallCtx) -> Result<ToolResult, CallError> {
        Ok(blocks([
            json!({ "type": "audio", "data": AUDIO, "mimeType": "audio/wav" }),
        ]))
    }

    /// Answers with a resource.
    #[method(scope = "test:use", tool(category = "meta"))]
    async fn embedded_resource(&self, _ctx: &CallCtx) -> Result<ToolResult, CallError> {
        Ok(blocks([resource(
            "text/plain",
            "This is an embedded resource content.",
        )]))
    }

    /// Answers with several things.
    #[method(scope = "test:use", tool(category = "meta"))]
    async fn multiple_content_types(&self, _ctx: &CallCtx) -> Result<ToolResult, CallError> {
        let image = json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" });
        let blocks = vec![
            image,
            resource("application/json", "{\"test\":\"data\",\"value\":123}"),
        ];
        let text = "Multiple content types test:".to_owned();
        Ok(ToolResult { text, blocks })
    }

    /// Fails.
    #[method(scope = "test:use", tool(category = "meta"))]
    async fn error_handling(&self, _ctx: &CallCtx) -> Result<ToolResult, CallError> {
        let message = "This tool intentionally returns an error for testing";
        Err(CallError::plugin("test.failed", message))
    }

    /// Tells how far it is.
    #[method(scope = "test:use", tool(category = "meta"))]
    async fn tool_with_progress(&self, ctx: &CallCtx) -> Result<ToolResult, CallError> {
        for share in [0.0, 50.0, 100.0] {
            ctx.progress(format!("Completed step {share} of 100"), Some(share))
                .await?;
        }
        Ok(ToolResult {
            text: "done".to_owned(),
            ..ToolResult::default()
        })
    }

    /// Has nothing to log to a client.
    #[method(scope = "test:use", tool(category = "meta"))]
    async fn logging_tool(&self, _ctx: &CallCtx) -> Result<ToolResult, CallError> {
        Ok(ToolResult::default())
    }

    /// Takes its time.
    #[method(scope = "test:use", tool(category = "meta"), timeout_ms = 600_000)]
    async fn sleep(&self, ctx: &CallCtx, p: SleepParams) -> Result<ToolResult, CallError> {
        ctx.progress("asleep", None).await?;
        tokio::time::sleep(Duration::from_millis(p.ms)).await;
        Ok(ToolResult::default())
    }
}

fn resource(kind: &str, text: &str) -> Value {
    let resource = json!({ "uri": "test://embedded-resource", "mimeType": kind, "text": text });
    json!({ "type": "resource", "resource": resource })
}

pub(super) struct TestPlugin;

impl Plugin for TestPlugin {
    fn name(&self) -> &'static str {
        "test"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new().methods(Arc::new(Test).plugin_methods()?)) })
    }
}

/// A vault with two notes.
struct Vault;

#[derive(Serialize, JsonSchema)]
struct Notes {
    notes: Vec<Note>,
}

#[derive(Serialize, JsonSchema)]
struct Note {
    path: &'static str,
    title: &'static str,
}

#[derive(Deserialize, JsonSchema)]
struct ReadParams {
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct Text {
    text: &'static str,
}

#[plugin(name = "vault")]
impl Vault {
    /// Lists the notes.
    #[method(scope = "vault:read", tool(category = "vault"))]
    async fn list(&self, _ctx: &CallCtx, _p: NoParams) -> Result<Notes, CallError> {
        let note = |path, title| Note { path, title };
        Ok(Notes {
            notes: vec![note("b c.md", "Second"), note("a.md", "First")],
        })
    }

    /// Reads one.
    #[method(scope = "vault:read", tool(category = "vault"))]
    async fn read(&self, _ctx: &CallCtx, p: ReadParams) -> Result<Text, CallError> {
        match p.path.as_str() {
            "a.md" => Ok(Text { text: "# First\n" }),
            "b c.md" => Ok(Text { text: "# Second\n" }),
            _ => Err(CallError::new(ErrorCode::NotFound, "there is no such note")),
        }
    }
}

pub(super) struct VaultPlugin;

impl Plugin for VaultPlugin {
    fn name(&self) -> &'static str {
        "vault"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new().methods(Arc::new(Vault).plugin_methods()?)) })
    }
}
