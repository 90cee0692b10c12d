//! A home with a configuration directory, and plugins that can be told what to be.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{HubConfig, HubPaths, Module, PluginHub, Request};
use dodona_plugin::activation::Activating;
use dodona_plugin::{
    ActivationError, BoxFuture, CallError, Contribution, Plugin, PluginContext, Settings,
};
use dodona_proto::{PluginState, PluginStatus};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{root, soon};

/// A folder with `config` and `data` in it.
pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("config")).unwrap();
        Self { folder }
    }

    /// One with this roster.
    pub(crate) fn with_roster(text: &str) -> Self {
        let home = Self::new();
        home.write("plugins.toml", text);
        home
    }

    pub(crate) fn config(&self, file: &str) -> PathBuf {
        self.folder.path().join("config").join(file)
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.config(file)).unwrap()
    }

    /// Writes a file of the configuration.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.config(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A directory of a plugin that asks for nothing.
    pub(crate) fn plugin_dir(&self, name: &str, more: &str) {
        let manifest = format!("[plugin]\nid = \"{name}\"\nversion = \"0.1.0\"\n{more}");
        self.write(&format!("plugins/{name}/manifest.toml"), &manifest);
    }

    pub(crate) fn paths(&self) -> HubPaths {
        HubPaths {
            data: self.folder.path().join("data"),
            config: Some(self.folder.path().join("config")),
        }
    }

    pub(crate) async fn start<M: Into<Module>>(&self, modules: Vec<M>) -> PluginHub {
        self.start_with(HubConfig::default(), modules).await
    }

    pub(crate) async fn start_with<M: Into<Module>>(
        &self,
        config: HubConfig,
        modules: Vec<M>,
    ) -> PluginHub {
        PluginHub::start(self.paths(), config, modules)
            .await
            .unwrap()
    }
}

pub(crate) async fn stop(hub: PluginHub) {
    soon(hub.stop(Duration::from_secs(5))).await;
}

/// Asks as somebody who may do everything.
pub(crate) async fn ask(hub: &PluginHub, method: &str, params: Value) -> Result<Value, CallError> {
    soon(hub.call(Request::new(root(), method, params))).await
}

pub(crate) fn status(hub: &PluginHub, name: &str) -> PluginStatus {
    let found = hub.plugins().into_iter().find(|s| s.name.as_str() == name);
    found.unwrap_or_else(|| panic!("there is no `{name}`"))
}

/// The plugin is in this state, and its reason has these words.
#[track_caller]
pub(crate) fn assert_status(hub: &PluginHub, name: &str, state: PluginState, words: &str) {
    let status = status(hub, name);
    let reason = status.reason.unwrap_or_default();
    assert_eq!(status.state, state, "{name}: {reason}");
    assert!(reason.contains(words), "{name}: {reason}");
    assert_eq!(hub.is_active(name), state == PluginState::Active);
}

type Make = dyn Fn(PluginContext) -> Result<Contribution, ActivationError> + Send + Sync;

/// A plugin made of what a test needs.
pub(crate) struct Made {
    name: &'static str,
    version: &'static str,
    dependencies: &'static [&'static str],
    settings: Settings,
    make: Box<Make>,
    deactivate: Box<dyn Fn() + Send + Sync>,
}

impl Made {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            version: "1.0.0",
            dependencies: &[],
            settings: Settings::new(),
            make: Box::new(|_| Ok(Contribution::new())),
            deactivate: Box::new(|| {}),
        }
    }

    pub(crate) fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    pub(crate) fn needs(mut self, dependencies: &'static [&'static str]) -> Self {
        self.dependencies = dependencies;
        self
    }

    pub(crate) fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    pub(crate) fn activate(
        mut self,
        make: impl Fn(PluginContext) -> Result<Contribution, ActivationError> + Send + Sync + 'static,
    ) -> Self {
        self.make = Box::new(make);
        self
    }

    pub(crate) fn deactivate(mut self, work: impl Fn() + Send + Sync + 'static) -> Self {
        self.deactivate = Box::new(work);
        self
    }

    pub(crate) fn done(self) -> Arc<dyn Plugin> {
        Arc::new(self)
    }
}

impl Plugin for Made {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> &str {
        self.version
    }

    fn dependencies(&self) -> &[&str] {
        self.dependencies
    }

    fn settings(&self) -> Settings {
        self.settings.clone()
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { (self.make)(ctx) })
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { (self.deactivate)() })
    }
}
