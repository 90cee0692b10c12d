//! A conversation with a model behind a real socket, and tools that do what tools do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_agent::AgentOptions;
use dodona_hub::{CallStream, HubConfig, PluginHub, Request};
use dodona_llm::{ModelConfig, Models, Provider};
use dodona_plugin::activation::Activating;
use dodona_plugin::hooks::Hooks;
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use dodona_proto::{DoneStatus, Event, HubStreamItem, ItemBody, Project};
use dodona_testkit::model_server::ModelServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Tools of every temper.
struct Kit;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Big {
    /// How many entries.
    #[schemars(range(min = 1, max = 100000))]
    entries: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Said {
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Entries {
    entries: Vec<String>,
}

#[plugin(name = "kit")]
impl Kit {
    /// Says it back.
    #[method(scope = "kit:use", tool(category = "meta", agents = ["*"]))]
    async fn echo(&self, _ctx: &CallCtx, p: Echo) -> Result<Said, CallError> {
        Ok(Said { text: p.text })
    }

    /// Says a lot.
    #[method(scope = "kit:use", tool(category = "meta", agents = ["*"]))]
    async fn big(&self, _ctx: &CallCtx, p: Big) -> Result<Entries, CallError> {
        let entries = (0..p.entries).map(|n| format!("entry number {n} of many"));
        Ok(Entries {
            entries: entries.collect(),
        })
    }

    /// Is for the main agent.
    #[method(scope = "kit:use", tool(category = "meta"))]
    async fn main_only(&self, _ctx: &CallCtx, p: Echo) -> Result<Said, CallError> {
        Ok(Said { text: p.text })
    }

    /// Never works.
    #[method(scope = "kit:use", tool(category = "meta", agents = ["*"]))]
    async fn fail(&self, _ctx: &CallCtx, _p: Nothing) -> Result<Said, CallError> {
        Err(CallError::plugin("kit.broken", "the tool is broken"))
    }

    /// Never ends.
    #[method(scope = "kit:use", tool(category = "meta", agents = ["*"]), timeout_ms = 50)]
    async fn hang(&self, _ctx: &CallCtx, _p: Nothing) -> Result<Said, CallError> {
        std::future::pending().await
    }

    /// Waits long.
    #[method(scope = "kit:use", tool(category = "meta", agents = ["*"]))]
    async fn wait(&self, _ctx: &CallCtx, _p: Nothing) -> Result<Said, CallError> {
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok(Said {
            text: String::new(),
        })
    }

    /// Loses its head.
    #[method(scope = "kit:use", tool(category = "meta", agents = ["*"]))]
    async fn panic(&self, _ctx: &CallCtx, _p: Nothing) -> Result<Said, CallError> {
        panic!("a tool that panics")
    }
}

struct KitPlugin;

impl Plugin for KitPlugin {
    fn name(&self) -> &'static str {
        "kit"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new().methods(Arc::new(Kit).plugin_methods()?)) })
    }
}

/// A project, an agent and a model that says what a test wants.
pub(crate) struct Talk {
    pub(crate) server: ModelServer,
    pub(crate) folder: TempDir,
    options: AgentOptions,
    config: HubConfig,
    plugins: Vec<Arc<dyn Plugin>>,
    hub: PluginHub,
    project: Project,
}

/// What a test wants otherwise than usual.
pub(crate) struct Setup {
    pub(crate) provider: Provider,
    /// Changes a model of this name: `main` or `other`.
    pub(crate) model: fn(&str, &mut ModelConfig),
    pub(crate) config: HubConfig,
    /// Plugins beside the usual ones.
    pub(crate) plugins: Vec<Arc<dyn Plugin>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            provider: Provider::OpenAi,
            model: |_, _| {},
            config: HubConfig::default(),
            plugins: Vec::new(),
        }
    }
}

/// What an answer came to.
pub(crate) struct Answer {
    pub(crate) items: Vec<HubStreamItem>,
}

impl Talk {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut AgentOptions)) -> Self {
        Self::of(Provider::OpenAi, change).await
    }

    pub(crate) async fn of(provider: Provider, change: impl FnOnce(&mut AgentOptions)) -> Self {
        let setup = Setup {
            provider,
            ..Setup::default()
        };
        Self::set_up(setup, change).await
    }

    pub(crate) async fn set_up(setup: Setup, change: impl FnOnce(&mut AgentOptions)) -> Self {
        Self::set_up_in(setup, |_, options| change(options)).await
    }

    /// The same where the options name something in the test's folder.
    pub(crate) async fn set_up_in(
        setup: Setup,
        change: impl FnOnce(&Path, &mut AgentOptions),
    ) -> Self {
        let server = ModelServer::strict().await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("orchard")).unwrap();
        let mut options = AgentOptions {
            models: models(&setup, &server.url()),
            prompts: Some(folder.path().join("prompts")),
            ..AgentOptions::default()
        };
        change(folder.path(), &mut options);
        let (config, plugins) = (setup.config, setup.plugins);
        let (hub, project) = start(&folder, &options, &config, &plugins).await;
        Self {
            server,
            folder,
            options,
            config,
            plugins,
            hub,
            project,
        }
    }

    pub(crate) fn prompts(&self) -> PathBuf {
        self.folder.path().join("prompts")
    }

    pub(crate) async fn open(&self, method: &str, params: Value) -> CallStream {
        self.hub.open(self.request(method, params)).await.unwrap()
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.hub.call(self.request(method, params)).await
    }

    /// The same by somebody else, in a project of his own.
    pub(crate) async fn call_as(
        &self,
        user: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, CallError> {
        let root = self.folder.path().join(user);
        std::fs::create_dir_all(&root).unwrap();
        let by =
            |method: &str, params| Request::new(dodona_testkit::principal(user), method, params);
        let register = by("hub.register_project", json!({ "root": root }));
        let project: Project =
            serde_json::from_value(self.hub.call(register).await.unwrap()).unwrap();
        let request = Request {
            project: Some(project.id),
            ..by(method, params)
        };
        self.hub.call(request).await
    }

    fn request(&self, method: &str, params: Value) -> Request {
        let request = Request::new(dodona_testkit::principal("alice"), method, params);
        Request {
            project: Some(self.project.id.clone()),
            ..request
        }
    }

    pub(crate) async fn ask(&self, message: &str) -> Answer {
        self.ask_with(json!({ "message": message })).await
    }

    pub(crate) async fn ask_with(&self, params: Value) -> Answer {
        let stream = self.open("agent.chat", params).await;
        Answer {
            items: stream.collect().await.unwrap(),
        }
    }

    /// How the latest query ended: its state and the reason.
    pub(crate) async fn last_query(&self) -> (String, Option<String>) {
        let found = self.call("agent.queries", json!({})).await.unwrap();
        let query = &found["queries"][0];
        let reason = query["reason"].as_str().map(str::to_owned);
        (query["state"].as_str().unwrap().to_owned(), reason)
    }

    /// The messages of the newest request.
    pub(crate) fn sent(&self) -> Vec<Value> {
        let request = self.server.last_request();
        request.body["messages"].as_array().unwrap().clone()
    }

    /// The events of the journal whose types begin so, oldest first.
    pub(crate) async fn events(&self, prefix: &str) -> Vec<Event> {
        let journal = self.hub.journal();
        journal.flush().await.unwrap();
        journal.recent_events(prefix, 1000).await.unwrap()
    }

    /// The hooks of all its plugins.
    pub(crate) fn hooks(&self) -> Arc<Hooks> {
        self.hub.hooks()
    }

    /// Where the project is.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("orchard")
    }

    /// As a new process would find it that followed one which was killed: nothing is said to the
    /// plugins of the old one.
    pub(crate) async fn kill(self) -> Self {
        let data = self.folder.path().join("data");
        let copy = tempfile::tempdir().unwrap();
        copy_tree(&data, &copy.path().join("data"));
        self.hub.stop(Duration::from_secs(5)).await;
        std::fs::remove_dir_all(&data).unwrap();
        copy_tree(&copy.path().join("data"), &data);
        let (hub, project) = start(&self.folder, &self.options, &self.config, &self.plugins).await;
        Self {
            hub,
            project,
            ..self
        }
    }

    /// As a new process would find it.
    pub(crate) async fn restart(self) -> Self {
        self.restart_after(|_| {}).await
    }

    /// The same after something was changed while no process ran.
    pub(crate) async fn restart_after(self, change: impl FnOnce(&Self)) -> Self {
        self.hub.stop(Duration::from_secs(5)).await;
        change(&self);
        let (hub, project) = start(&self.folder, &self.options, &self.config, &self.plugins).await;
        Self {
            hub,
            project,
            ..self
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_tree(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Two models at one server: `main` and `other`.
fn models(setup: &Setup, url: &str) -> Models {
    let model = |name: &str| {
        let mut config = ModelConfig::new(setup.provider, name);
        config.base_url = Some(url.to_owned());
        config.key_env = Some("KEY".to_owned());
        config.retries = 0;
        config.price = Some(dodona_llm::Price {
            input: 1.0,
            output: 10.0,
            cached_input: None,
            cache_write: None,
        });
        let name = name.split('-').next().unwrap();
        (setup.model)(name, &mut config);
        (name.to_owned(), config)
    };
    let configs = BTreeMap::from([model("main-1"), model("other-1")]);
    let environment = Arc::new(|_: &str| Some("secret".to_owned()));
    let (models, problems) = Models::from_config(&configs, Some("main"), &(environment as _));
    assert_eq!(problems, []);
    models
}

async fn start(
    folder: &TempDir,
    options: &AgentOptions,
    config: &HubConfig,
    more: &[Arc<dyn Plugin>],
) -> (PluginHub, Project) {
    let mut plugins = dodona_knowledge::plugins(dodona_knowledge::Options::default());
    plugins.extend(dodona_agent::plugins(options.clone()));
    plugins.push(Arc::new(KitPlugin));
    plugins.extend(more.iter().cloned());
    let hub = PluginHub::start(&folder.path().join("data"), config.clone(), plugins)
        .await
        .unwrap();
    let root = folder.path().join("orchard");
    let register = Request::new(
        dodona_testkit::principal("alice"),
        "hub.register_project",
        json!({ "root": root }),
    );
    let project = hub.call(register).await.unwrap();
    (hub, serde_json::from_value(project).unwrap())
}

impl Answer {
    /// The agent's own data items of one content type.
    pub(crate) fn data(&self, wanted: &str) -> Vec<&Value> {
        let own = self.items.iter().filter(|item| item.call_id.depth() == 0);
        own.filter_map(|item| match &item.body {
            ItemBody::Data { content_type, data } if content_type == wanted => Some(data),
            _ => None,
        })
        .collect()
    }

    pub(crate) fn response(&self) -> &Value {
        let responses = self.data("AgentResponse");
        assert_eq!(responses.len(), 1, "{:#?}", self.items);
        responses[0]
    }

    pub(crate) fn text(&self) -> &str {
        self.response()["text"].as_str().unwrap()
    }

    /// The text as it came, piece by piece.
    pub(crate) fn pieces(&self) -> Vec<&str> {
        let pieces = self.data("TextDelta");
        pieces
            .iter()
            .map(|piece| piece["text"].as_str().unwrap())
            .collect()
    }

    /// How each tool call ended, in the order of the calls. Results arrive in the order of ending.
    pub(crate) fn endings(&self) -> Vec<&str> {
        let results = self.data("ToolResult");
        let calls = self.data("ToolCall");
        let mut open: Vec<&&Value> = results.iter().collect();
        let ending = |call: &&Value| {
            let at = open.iter().position(|result| result["id"] == call["id"])?;
            open.remove(at)["ending"].as_str()
        };
        calls.iter().filter_map(ending).collect()
    }

    pub(crate) fn status(&self) -> DoneStatus {
        match &self.items.last().unwrap().body {
            ItemBody::Done { status, .. } => *status,
            other => panic!("{other:?} is no terminal"),
        }
    }

    /// What went wrong.
    pub(crate) fn error(&self) -> &str {
        let mut errors = self.items.iter().filter_map(|item| match &item.body {
            ItemBody::Error { error, .. } if item.call_id.depth() == 0 => Some(error.as_str()),
            _ => None,
        });
        errors.next_back().unwrap_or_default()
    }
}
