//! A hub with plugins in Python that are written into its home.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_extern::GuardCommand;
use dodona_extern::luau::LuauLoader;
use dodona_extern::process::ProcessLoader;
use dodona_hub::PluginHub;
use dodona_plugin::Loaders;
use dodona_proto::{PluginState, PluginStatus};
use dodona_testkit::{HubBuilder, TestHub};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A home before there is a hub.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a plugin that is granted what it uses. `declares` stands below `[process]`.
    pub(crate) fn plugin(&self, name: &str, uses: &[&str], declares: &str, program: &str) {
        let uses = format!("{uses:?}");
        let manifest = format!(
            "[plugin]\nid = \"{name}\"\nversion = \"0.1.0\"\n\
             [capabilities]\nuses = {uses}\n\
             [settings.colour]\ntype = \"string\"\ndefault = \"red\"\n\
             [process]\ncommand = \"python3\"\nargs = [\"main.py\"]\nprotocol = \"dodona\"\n{declares}\n"
        );
        let dir = self.dir(name);
        fs::create_dir_all(&dir).unwrap();
        write(&dir.join("manifest.toml"), &manifest);
        fs::write(dir.join("plugin.py"), include_str!("plugin.py")).unwrap();
        self.program(name, program);
        let entry = format!(
            "[plugin.{name}]\nenabled = true\nmodule = \"dir:plugins/{name}\"\ncapabilities = {uses}\n"
        );
        let path = self.0.path().join("config/plugins.toml");
        let roster = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, roster + &entry).unwrap();
    }

    pub(crate) fn program(&self, name: &str, program: &str) {
        write(
            &self.dir(name).join("main.py"),
            &format!("from plugin import *\n{program}"),
        );
    }

    /// Writes a tool that gates can be asked about.
    pub(crate) fn target(&self) {
        let dir = self.dir("target");
        fs::create_dir_all(&dir).unwrap();
        let manifest =
            "[plugin]\nid = \"target\"\nversion = \"0.1.0\"\n[script]\nmain = \"main.luau\"\n";
        fs::write(dir.join("manifest.toml"), manifest).unwrap();
        let script = "dodona.method { name = 'act', doc = 'Acts.', tool = true, read_only = true,
            params = { type = 'object', properties = { path = { type = 'string' } } },
            run = function(_, p) return { path = p.path } end }";
        fs::write(dir.join("main.luau"), script).unwrap();
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.0.path().join("config/plugins").join(name)
    }

    /// Sets something about a plugin.
    pub(crate) fn set(&self, name: &str, text: &str) {
        fs::write(self.dir(name).with_extension("toml"), text).unwrap();
    }

    pub(crate) async fn start(&self) -> TestHub {
        self.start_with(TestHub::builder()).await
    }

    pub(crate) async fn start_with(&self, builder: HubBuilder) -> TestHub {
        let builder = builder.config(|config| {
            let guard = env!("CARGO_BIN_EXE_dodona-guard");
            let guard = GuardCommand::new(guard, ["guard".into()]);
            config.loaders = Loaders::new()
                .with(Arc::new(LuauLoader::new()))
                .with(Arc::new(ProcessLoader::new(guard)));
        });
        builder.start_at(self.0.path()).await.unwrap()
    }
}

/// In one step, so that no reader finds half of it.
fn write(path: &Path, text: &str) {
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, path).unwrap();
}

pub(crate) fn status(hub: &PluginHub, name: &str) -> PluginStatus {
    let found = hub.plugins().into_iter().find(|s| s.name.as_str() == name);
    found.unwrap_or_else(|| panic!("there is no `{name}`"))
}

#[track_caller]
pub(crate) fn assert_active(hub: &PluginHub, name: &str) {
    let status = status(hub, name);
    assert_eq!(status.state, PluginState::Active, "{:?}", status.reason);
    assert_eq!(status.reason, None);
}

#[track_caller]
pub(crate) fn assert_failed(hub: &PluginHub, name: &str, words: &str) {
    let status = status(hub, name);
    let reason = status.reason.unwrap_or_default();
    assert_eq!(status.state, PluginState::Failed, "{reason}");
    assert!(reason.contains(words), "{reason}");
}

/// Calls as ada.
pub(crate) async fn ask(hub: &TestHub, method: &str, params: Value) -> Result<Value, String> {
    let answer = tokio::time::timeout(PATIENCE, hub.call("ada", method, params));
    let answer = answer.await.expect("it ends in a minute");
    answer.map_err(|error| format!("{}: {error}", error.code))
}

/// Calls until it is answered: a process that was ended is started again.
pub(crate) async fn ask_until(hub: &TestHub, method: &str, params: Value) -> Value {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        match ask(hub, method, params.clone()).await {
            Ok(answer) => return answer,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(pid: &Value) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// The lines of a plugin's log.
pub(crate) async fn log(hub: &TestHub, plugin: &str) -> Vec<String> {
    let read = ask(
        hub,
        "plugins.logs",
        json!({"plugin": plugin, "limit": 1000}),
    );
    let lines = read.await.unwrap()["lines"].take();
    let lines = lines.as_array().unwrap().iter();
    lines
        .map(|line| {
            let said = |field: &str| line[field].as_str().unwrap().to_owned();
            format!("{} {}: {}", said("level"), said("part"), said("text"))
        })
        .collect()
}
