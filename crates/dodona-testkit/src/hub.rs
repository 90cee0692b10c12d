//! A hub in this process.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::echo::EchoPlugin;
use dodona_hub::{CallStream, HubConfig, HubPaths, Limit, PluginHub, Request, StartError};
use dodona_plugin::Plugin;
use dodona_proto::{CallError, Principal, Scopes, Surface, UserId};
use serde_json::Value;
use tempfile::TempDir;

/// How long a hub that is stopped waits for its calls.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes a plugin anew for each start of the hub, as a new process would.
type MakePlugin = Arc<dyn Fn() -> Arc<dyn Plugin> + Send + Sync>;

/// Somebody who may do everything.
///
/// # Panics
///
/// If the name is not one a user can have.
pub fn principal(user: &str) -> Arc<Principal> {
    Arc::new(Principal {
        user: UserId::new(user).expect("a user's name"),
        scopes: Scopes::all(),
        surface: Surface::Internal,
    })
}

/// A hub before its start.
#[derive(Clone)]
pub struct HubBuilder {
    config: HubConfig,
    plugins: Vec<MakePlugin>,
}

impl HubBuilder {
    fn new() -> Self {
        let mut config = HubConfig::default();
        // Tests call as fast as they can; those about limits set their own.
        config.limits.user = Limit {
            per_second: 0,
            burst: 0,
            concurrent: 0,
        };
        Self {
            config,
            plugins: vec![Arc::new(|| Arc::new(EchoPlugin::default()))],
        }
    }

    /// Changes the settings.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut HubConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Adds a plugin beside `echo`. The function is called at each start.
    #[must_use]
    pub fn plugin<P: Plugin + 'static>(
        mut self,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        self.plugins.push(Arc::new(move || Arc::new(make())));
        self
    }

    /// Starts it on a temporary home, which is removed with the hub.
    ///
    /// # Panics
    ///
    /// If it cannot start.
    pub async fn start(self) -> TestHub {
        let home = tempfile::tempdir().expect("a temporary directory");
        let path = home.path().to_owned();
        let started = self.start_in(path, Some(home)).await;
        started.expect("a hub starts on an empty directory")
    }

    /// Starts it on a home that stays.
    pub async fn start_at(self, home: &Path) -> Result<TestHub, StartError> {
        self.start_in(home.to_owned(), None).await
    }

    async fn start_in(self, home: PathBuf, temp: Option<TempDir>) -> Result<TestHub, StartError> {
        let plugins = self.plugins.iter().map(|make| make());
        let paths = HubPaths {
            data: data_dir(&home),
            config: Some(config_dir(&home)),
        };
        let hub = PluginHub::start(paths, self.config.clone(), plugins).await?;
        Ok(TestHub {
            hub,
            home,
            temp,
            builder: self,
        })
    }
}

fn data_dir(home: &Path) -> PathBuf {
    home.join("data")
}

fn config_dir(home: &Path) -> PathBuf {
    home.join("config")
}

/// A hub with the plugin `echo` and without limits on users. Derefs to [`PluginHub`].
pub struct TestHub {
    hub: PluginHub,
    home: PathBuf,
    temp: Option<TempDir>,
    builder: HubBuilder,
}

impl TestHub {
    /// Starts a hub on a temporary home.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// A hub with more in it.
    pub fn builder() -> HubBuilder {
        HubBuilder::new()
    }

    /// Its home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where its databases are.
    pub fn data_dir(&self) -> PathBuf {
        data_dir(&self.home)
    }

    /// Where its roster and its plugins' directories are, once somebody makes it.
    pub fn config_dir(&self) -> PathBuf {
        config_dir(&self.home)
    }

    /// Calls a method on a user's behalf.
    pub async fn call(&self, user: &str, method: &str, params: Value) -> Result<Value, CallError> {
        self.hub
            .call(Request::new(principal(user), method, params))
            .await
    }

    /// Opens a method's stream on a user's behalf.
    pub async fn open(
        &self,
        user: &str,
        method: &str,
        params: Value,
    ) -> Result<CallStream, CallError> {
        self.hub
            .open(Request::new(principal(user), method, params))
            .await
    }

    /// Stops it; a temporary home is gone afterwards.
    pub async fn stop(self) {
        self.hub.stop(PATIENCE).await;
    }

    /// Stops it and starts another one on the same home.
    ///
    /// # Panics
    ///
    /// If that one cannot start.
    pub async fn restart(self) -> Self {
        self.hub.stop(PATIENCE).await;
        let Self {
            hub,
            home,
            temp,
            builder,
        } = self;
        drop(hub);
        let started = builder.start_in(home, temp).await;
        started.expect("a hub starts where one was stopped")
    }
}

impl Deref for TestHub {
    type Target = PluginHub;

    fn deref(&self) -> &PluginHub {
        &self.hub
    }
}
