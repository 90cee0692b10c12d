//! A project on a hub of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{CallStream, Hub, HubConfig, Request};
use dodona_knowledge::Options;
use dodona_llm::Embedder;
use dodona_proto::{CallError, Principal, Project, ProjectId, Scopes, Surface, UserId};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct TestProject {
    folder: TempDir,
    hub: Hub,
    id: ProjectId,
    embedder: Option<Arc<Embedder>>,
}

fn alice() -> Arc<Principal> {
    let user = UserId::new("alice").unwrap();
    Arc::new(Principal {
        user,
        scopes: Scopes::all(),
        surface: Surface::Internal,
    })
}

impl TestProject {
    pub(crate) async fn with(files: &[(&str, &str)]) -> Self {
        Self::with_embedder(files, None).await
    }

    pub(crate) async fn with_embedder(
        files: &[(&str, &str)],
        embedder: Option<Arc<Embedder>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        let (hub, id) = start(&folder, embedder.clone()).await;
        let project = Self {
            folder,
            hub,
            id,
            embedder,
        };
        files
            .iter()
            .for_each(|(path, text)| project.write(path, text));
        project
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.root().join(path)).unwrap();
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let request = Request::new(alice(), method, params);
        self.hub
            .call(Request {
                project: Some(self.id.clone()),
                ..request
            })
            .await
    }

    pub(crate) async fn open(&self, method: &str, params: Value) -> CallStream {
        let request = Request::new(alice(), method, params);
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

    pub(crate) async fn restart(self) -> Self {
        self.hub.stop(Duration::from_secs(5)).await;
        let (hub, id) = start(&self.folder, self.embedder.clone()).await;
        Self { hub, id, ..self }
    }
}

/// The folder with the notes is what a file in the project names, if there is one.
fn options(embedder: Option<Arc<Embedder>>) -> Options {
    let named = |root: &Path| std::fs::read_to_string(root.join(".vault-root")).ok();
    Options {
        vault_root: Arc::new(move |root| Ok(named(root))),
        embedder,
    }
}

async fn start(folder: &TempDir, embedder: Option<Arc<Embedder>>) -> (Hub, ProjectId) {
    let hub = Hub::start(
        &folder.path().join("data"),
        HubConfig::default(),
        dodona_knowledge::plugins(options(embedder)),
    )
    .await
    .unwrap();
    let root = folder.path().join("project");
    let registered = hub
        .call(Request::new(
            alice(),
            "hub.register_project",
            json!({ "root": root }),
        ))
        .await
        .unwrap();
    let project: Project = serde_json::from_value(registered).unwrap();
    (hub, project.id)
}
