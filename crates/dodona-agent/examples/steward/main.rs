//! A plugin with a hook of every kind, at work: `cargo run -p dodona-agent --example steward`.
//!
//! `plugin` is the plugin, `hooks` its hooks. Without an agent only those around tools and those of
//! the server are fired; `tests/agent/steward.rs` shows all of them.

mod hooks;
mod plugin;

use dodona_proto::CallError;
use dodona_testkit::TestHub;
use serde_json::json;

use plugin::StewardPlugin;

#[tokio::main]
async fn main() -> Result<(), CallError> {
    let hub = TestHub::builder().plugin(|| StewardPlugin).start().await;
    for text in ["write to ann@example.org today", "archive/1999.md"] {
        let params = json!({ "text": text });
        match hub.call("alice", "echo.say", params).await {
            Ok(said) => println!("echo.say {text:?}: {said}"),
            Err(error) => println!("echo.say {text:?}: {error}"),
        }
    }
    let diary = hub.call("alice", "steward.diary", json!({})).await?;
    println!("steward.diary: {diary}");
    println!("\nWhat the hooks did:");
    for run in hub.hooks().recent(10) {
        let (name, edit) = (run.name.unwrap_or_default(), run.edit.unwrap_or_default());
        println!("{} {name}: {edit}", run.hook);
    }
    hub.stop().await;
    Ok(())
}
