//! A project on a hub of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{CallStream, HubConfig, Limit, PluginHub, Request};
use dodona_knowledge::{FileAccess, Options, WebOptions};
use dodona_llm::Embedder;
use dodona_plugin::Plugin;
use dodona_plugin::http::HttpClient;
use dodona_proto::{CallError, Principal, Project, ProjectId, Scopes, Surface, UserId};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct TestProject {
    place: PathBuf,
    /// Removed with this, unless somebody else has it.
    _folder: Option<TempDir>,
    hub: PluginHub,
    id: ProjectId,
    setup: Setup,
}

/// What a project's hub has.
#[derive(Clone, Default)]
pub(crate) struct Setup {
    pub(crate) embedder: Option<Arc<Embedder>>,
    /// What its agents may do without asking.
    pub(crate) unattended: &'static [&'static str],
    /// What of the web may be asked.
    pub(crate) web: WebOptions,
    /// Hosts that may be asked although they are not public.
    pub(crate) allow_hosts: Vec<String>,
    /// More plugins.
    pub(crate) plugins: Vec<Arc<dyn Plugin>>,
}

fn alice(surface: Surface) -> Arc<Principal> {
    let user = UserId::new("alice").unwrap();
    Arc::new(Principal {
        user,
        scopes: Scopes::all(),
        surface,
    })
}

impl TestProject {
    pub(crate) async fn with(files: &[(&str, &str)]) -> Self {
        Self::with_setup(files, Setup::default()).await
    }

    pub(crate) async fn with_setup(files: &[(&str, &str)], setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        let place = folder.path().to_owned();
        let project = Self::at(place, Some(folder), setup).await;
        files
            .iter()
            .for_each(|(path, text)| project.write(path, text));
        project
    }

    /// On a folder that stays, with the project in `project`.
    pub(crate) async fn at(place: PathBuf, folder: Option<TempDir>, setup: Setup) -> Self {
        let (hub, id) = start(&place, &setup).await;
        Self {
            place,
            _folder: folder,
            hub,
            id,
            setup,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.place.join("project")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.root().join(path)).unwrap();
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.call_from(Surface::Internal, method, params).await
    }

    pub(crate) async fn call_from(
        &self,
        surface: Surface,
        method: &str,
        params: Value,
    ) -> Result<Value, CallError> {
        let request = Request::new(alice(surface), method, params);
        self.hub
            .call(Request {
                project: Some(self.id.clone()),
                ..request
            })
            .await
    }

    /// As another user, about no project.
    pub(crate) async fn call_as(
        &self,
        user: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, CallError> {
        let principal = Arc::new(Principal {
            user: UserId::new(user).unwrap(),
            ..Principal::clone(&alice(Surface::Internal))
        });
        self.hub.call(Request::new(principal, method, params)).await
    }

    pub(crate) async fn open(&self, method: &str, params: Value) -> CallStream {
        let request = Request::new(alice(Surface::Internal), method, params);
        let request = Request {
            project: Some(self.id.clone()),
            ..request
        };
        self.hub.open(request).await.unwrap()
    }

    /// Looks at the disk now, whenever it was looked at last.
    pub(crate) async fn index(&self) -> Value {
        self.call("search.index", json!({})).await.unwrap()
    }

    /// The places that a search names, best first.
    pub(crate) async fn find(&self, query: &str) -> Vec<String> {
        let found = self
            .call("search.query", json!({ "query": query }))
            .await
            .unwrap();
        let place = |passage: &Value| {
            let source = &passage["source"];
            format!(
                "{}:{}-{}",
                source["path"].as_str().unwrap(),
                source["line_start"],
                source["line_end"]
            )
        };
        found["passages"]
            .as_array()
            .unwrap()
            .iter()
            .map(place)
            .collect()
    }

    /// Throws the index away; nobody has it open then.
    pub(crate) fn forget_index(&self) {
        let indexes = self.place.join("data/plugins/search/indexes");
        std::fs::remove_dir_all(indexes).unwrap();
    }

    pub(crate) async fn restart(self) -> Self {
        self.hub.stop(Duration::from_secs(5)).await;
        let (hub, id) = start(&self.place, &self.setup).await;
        Self { hub, id, ..self }
    }

    pub(crate) async fn stop(self) {
        self.hub.stop(Duration::from_secs(5)).await;
    }
}

/// The folder with the notes is what a file in the project names, if there is one.
fn options(embedder: Option<Arc<Embedder>>, web: WebOptions) -> Options {
    let named = |root: &Path| std::fs::read_to_string(root.join(".vault-root")).ok();
    Options {
        vault_root: Arc::new(move |root| Ok(named(root))),
        embedder,
        web,
        files: FileAccess::default(),
    }
}

async fn start(place: &Path, setup: &Setup) -> (PluginHub, ProjectId) {
    let mut config = HubConfig {
        http: HttpClient::new(&setup.allow_hosts),
        ..HubConfig::default()
    };
    config.limits.user = Limit {
        per_second: 0,
        burst: 0,
        concurrent: 0,
    };
    let unattended = setup.unattended.iter().map(|name| name.parse().unwrap());
    config.approvals.unattended = unattended.collect();
    let mut plugins = dodona_knowledge::plugins(options(setup.embedder.clone(), setup.web.clone()));
    plugins.extend(setup.plugins.iter().cloned());
    let hub = PluginHub::start(&place.join("data"), config, plugins)
        .await
        .unwrap();
    let root = place.join("project");
    let registered = hub
        .call(Request::new(
            alice(Surface::Internal),
            "hub.register_project",
            json!({ "root": root }),
        ))
        .await
        .unwrap();
    let project: Project = serde_json::from_value(registered).unwrap();
    (hub, project.id)
}
