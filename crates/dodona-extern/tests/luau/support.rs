//! A hub with plugins that are written into its home.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_extern::luau::LuauLoader;
use dodona_hub::PluginHub;
use dodona_plugin::Loaders;
use dodona_proto::{PluginState, PluginStatus};
use dodona_testkit::{HubBuilder, TestHub};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home before there is a hub.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a plugin that uses nothing.
    pub(crate) fn plugin(&self, name: &str, script: &str) {
        self.plugin_with(name, "", script);
    }

    /// Writes a plugin, with more in its manifest.
    pub(crate) fn plugin_with(&self, name: &str, more: &str, script: &str) {
        let manifest = format!(
            "[plugin]\nid = \"{name}\"\nversion = \"0.1.0\"\n{more}\n[script]\nmain = \"main.luau\"\n"
        );
        let dir = self.dir(name);
        fs::create_dir_all(&dir).unwrap();
        write(&dir.join("manifest.toml"), &manifest);
        write(&dir.join("main.luau"), script);
    }

    /// Writes a plugin that uses capabilities and is granted them.
    pub(crate) fn granted(&self, name: &str, uses: &[&str], script: &str) {
        let uses = format!("{uses:?}");
        self.plugin_with(name, &format!("[capabilities]\nuses = {uses}\n"), script);
        let entry = format!(
            "[plugin.{name}]\nenabled = true\nmodule = \"dir:plugins/{name}\"\ncapabilities = {uses}\n"
        );
        let path = self.0.path().join("config/plugins.toml");
        let roster = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, roster + &entry).unwrap();
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.0.path().join("config/plugins").join(name)
    }

    pub(crate) fn script(&self, name: &str, script: &str) {
        write(&self.dir(name).join("main.luau"), script);
    }

    pub(crate) async fn start(&self) -> TestHub {
        self.start_with(TestHub::builder()).await
    }

    pub(crate) async fn start_with(&self, builder: HubBuilder) -> TestHub {
        let builder = builder.config(|config| {
            config.loaders = Loaders::new().with(Arc::new(LuauLoader::new()));
        });
        builder.start_at(self.0.path()).await.unwrap()
    }
}

/// In one step, so that nobody reads half of it.
fn write(path: &Path, text: &str) {
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, path).unwrap();
}

pub(crate) fn status(hub: &PluginHub, name: &str) -> PluginStatus {
    let found = hub.plugins().into_iter().find(|s| s.name.as_str() == name);
    found.unwrap_or_else(|| panic!("there is no `{name}`"))
}

/// It is active, and nothing is said about it.
#[track_caller]
pub(crate) fn assert_active(hub: &PluginHub, name: &str) {
    let status = status(hub, name);
    assert_eq!(status.state, PluginState::Active, "{:?}", status.reason);
    assert_eq!(status.reason, None);
}

/// It failed, with these words.
#[track_caller]
pub(crate) fn assert_failed(hub: &PluginHub, name: &str, words: &str) {
    let status = status(hub, name);
    let reason = status.reason.unwrap_or_default();
    assert_eq!(status.state, PluginState::Failed, "{reason}");
    assert!(reason.contains(words), "{reason}");
}

/// Calls as ada.
pub(crate) async fn ask(hub: &TestHub, method: &str, params: Value) -> Result<Value, String> {
    let answer = tokio::time::timeout(Duration::from_secs(60), hub.call("ada", method, params));
    let answer = answer.await.expect("it ends in a minute");
    answer.map_err(|error| format!("{}: {error}", error.code))
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
