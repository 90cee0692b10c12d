//! A hub with servers mounted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_extern::GuardCommand;
use dodona_extern::mcp::McpLoader;
use dodona_hub::Approvers;
use dodona_testkit::{HubBuilder, TestHub};
use serde_json::{Value, json};

/// How long anything may take that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A file of this folder's neighbour.
pub(crate) fn server(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/servers")
        .join(file)
}

/// The command of a server in Python.
pub(crate) fn python(file: &str, args: &str) -> String {
    format!("python3 -I {} {args}", server(file).display())
}

/// The command of the server that starts in no time.
pub(crate) fn small() -> String {
    format!("{} serve", env!("CARGO_BIN_EXE_dodona-guard"))
}

/// What makes servers of a roster.
pub(crate) fn loader() -> Arc<McpLoader> {
    let guard = env!("CARGO_BIN_EXE_dodona-guard");
    Arc::new(McpLoader::new(GuardCommand::new(guard, ["guard".into()])))
}

/// A hub that knows MCP servers, and none yet.
pub(crate) async fn hub() -> TestHub {
    builder().start().await
}

/// The same before its start.
pub(crate) fn builder() -> HubBuilder {
    TestHub::builder().config(|config| {
        config.loaders = config.loaders.clone().with(loader());
        config.approvals.approvers = Approvers::None;
        config.activation_timeout = 3 * PATIENCE;
    })
}

/// Mounts servers by writing the roster, each with the text of its settings.
pub(crate) async fn mount(hub: &TestHub, servers: &[(&str, &str, &str)]) {
    let config = hub.config_dir();
    std::fs::create_dir_all(config.join("plugins")).unwrap();
    let mut roster = String::new();
    for (name, module, settings) in servers {
        let module = json!(format!("mcp:{module}"));
        roster += &format!("[plugin.{name}]\nenabled = true\nmodule = {module}\n");
        std::fs::write(config.join(format!("plugins/{name}.toml")), settings).unwrap();
    }
    std::fs::write(config.join("plugins.toml"), roster).unwrap();
    hub.call("ada", "plugins.reload", json!({})).await.unwrap();
}

/// A hub with the well-behaved server mounted as `good`.
pub(crate) async fn with_good(settings: &str) -> TestHub {
    let hub = hub().await;
    mount(&hub, &[("good", &python("good.py", ""), settings)]).await;
    let told = hub
        .call("ada", "plugins.info", json!({"plugin": "good"}))
        .await
        .unwrap();
    assert_eq!(told["state"], "active", "{told}");
    hub
}

/// The text of a tool's result.
pub(crate) async fn text(hub: &TestHub, method: &str, params: Value) -> String {
    let result = hub.call("ada", method, params).await.unwrap();
    result["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned()
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(
            std::time::Instant::now() < deadline,
            "{what} did not happen"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// The lines of a server's log, as `part: text`.
pub(crate) async fn log(hub: &TestHub, plugin: &str) -> Vec<String> {
    let told = hub
        .call("ada", "plugins.logs", json!({"plugin": plugin}))
        .await
        .unwrap();
    let lines = told["lines"].as_array().unwrap();
    let line = |line: &Value| {
        format!(
            "{}: {}",
            line["part"].as_str().unwrap(),
            line["text"].as_str().unwrap()
        )
    };
    lines.iter().map(line).collect()
}
