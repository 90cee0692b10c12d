//! A hub with rules, an agent, a model behind a real socket, and tools that do what tools do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dodona_agent::{AgentOptions, AgentPlugin};
use dodona_hub::{CallStream, HubConfig, HubPaths, PluginHub, Request};
use dodona_llm::{ModelConfig, Models, Provider};
use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use dodona_proto::{Event, HubStreamItem, ItemBody, Project};
use dodona_rules::{RulesOptions, RulesPlugin, load};
use dodona_testkit::model_server::{ModelServer, Reply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest that a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

struct Tools;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct List {
    count: u32,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    results: Vec<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Said {
    text: String,
}

#[plugin(name = "tools")]
impl Tools {
    /// Says it back.
    #[method(scope = "tools:use", tool(category = "meta"))]
    async fn echo(&self, _ctx: &CallCtx, p: Echo) -> Result<Said, CallError> {
        Ok(Said { text: p.text })
    }

    /// Finds so many.
    #[method(scope = "tools:use", tool(category = "meta"))]
    async fn list(&self, _ctx: &CallCtx, p: List) -> Result<Found, CallError> {
        Ok(Found {
            results: (0..p.count).collect(),
        })
    }

    /// Never works.
    #[method(scope = "tools:use", tool(category = "meta"))]
    async fn fail(&self, _ctx: &CallCtx, _p: Nothing) -> Result<Said, CallError> {
        Err(CallError::plugin("tools.broken", "the tool is broken"))
    }

    /// Never ends.
    #[method(scope = "tools:use", tool(category = "meta"), timeout_ms = 50)]
    async fn hang(&self, _ctx: &CallCtx, _p: Nothing) -> Result<Said, CallError> {
        std::future::pending().await
    }
}

struct ToolsPlugin;

impl Plugin for ToolsPlugin {
    fn name(&self) -> &'static str {
        "tools"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new().methods(Arc::new(Tools).plugin_methods()?)) })
    }
}

/// A server with a project, before and after a restart.
pub(crate) struct Rig {
    pub(crate) server: ModelServer,
    folder: TempDir,
    config: HubConfig,
    options: AgentOptions,
    hub: PluginHub,
    project: Project,
}

/// What an answer came to.
pub(crate) struct Answer {
    pub(crate) items: Vec<HubStreamItem>,
}

impl Rig {
    /// With these rules of the user, each a name and a text.
    pub(crate) async fn with(rules: &[(&str, &str)]) -> Self {
        Self::set_up(HubConfig::default(), rules).await
    }

    pub(crate) async fn set_up(config: HubConfig, rules: &[(&str, &str)]) -> Self {
        Self::set_up_with(config, rules, None, |_| ()).await
    }

    /// With the rules that come with the program, and an agent of these options.
    pub(crate) async fn with_options(change: impl FnOnce(&mut AgentOptions)) -> Self {
        Self::set_up_with(HubConfig::default(), &[], None, change).await
    }

    /// As [`with_options`](Self::with_options), with a model whose context window is known.
    pub(crate) async fn with_window(window: u32, change: impl FnOnce(&mut AgentOptions)) -> Self {
        Self::set_up_with(HubConfig::default(), &[], Some(window), change).await
    }

    async fn set_up_with(
        config: HubConfig,
        rules: &[(&str, &str)],
        window: Option<u32>,
        change: impl FnOnce(&mut AgentOptions),
    ) -> Self {
        let server = ModelServer::strict().await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("orchard")).unwrap();
        let mut options = AgentOptions {
            models: models(&server.url(), window),
            preload: 0,
            ..AgentOptions::default()
        };
        change(&mut options);
        for (name, text) in rules {
            put(&folder.path().join("config/rules"), name, text);
        }
        let (hub, project) = start(&folder, &config, &options).await;
        Self {
            server,
            folder,
            config,
            options,
            hub,
            project,
        }
    }

    /// As a new process would find it.
    pub(crate) async fn restart(self) -> Self {
        self.hub.stop(Duration::from_secs(5)).await;
        let (hub, project) = start(&self.folder, &self.config, &self.options).await;
        Self {
            hub,
            project,
            ..self
        }
    }

    pub(crate) fn hub(&self) -> &PluginHub {
        &self.hub
    }

    pub(crate) fn config_dir(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// The project's root.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("orchard")
    }

    /// Puts a rule of the user in its place, whole.
    pub(crate) fn put(&self, name: &str, text: &str) {
        put(&self.config_dir().join("rules"), name, text);
    }

    /// Puts a rule of the project in its place, whole. It counts once the project is trusted.
    pub(crate) fn put_in_project(&self, name: &str, text: &str) {
        put(&self.root().join(".dodona/rules"), name, text);
    }

    /// Trusts the project as it is now.
    pub(crate) async fn trust(&self, follow: &str) {
        let shown = self.call("hub.trust", json!({})).await.unwrap();
        let params = json!({ "hash": shown["hash"], "follow": follow });
        self.call("hub.trust_accept", params).await.unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.config_dir().join("rules").join(name)).unwrap();
    }

    /// Has the files looked at.
    pub(crate) async fn reload(&self) {
        self.call("rules.reload", json!({})).await.unwrap();
    }

    pub(crate) fn request(&self, user: &str, method: &str, params: Value) -> Request {
        let request = Request::new(dodona_testkit::principal(user), method, params);
        Request {
            project: Some(self.project.id.clone()),
            ..request
        }
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.hub.call(self.request("alice", method, params)).await
    }

    pub(crate) async fn open(&self, method: &str, params: Value) -> CallStream {
        let request = self.request("alice", method, params);
        self.hub.open(request).await.unwrap()
    }

    pub(crate) async fn echo(&self, text: &str) -> Result<Value, CallError> {
        self.call("tools.echo", json!({ "text": text })).await
    }

    /// Asks, and lets the model say these.
    pub(crate) async fn ask(&self, replies: impl IntoIterator<Item = Reply>) -> Answer {
        for reply in replies {
            self.server.reply(reply);
        }
        let stream = self.open("agent.chat", json!({ "message": "Go" })).await;
        Answer {
            items: stream.collect().await.unwrap(),
        }
    }

    /// What the model was sent in each request, as one text.
    pub(crate) fn sent(&self) -> Vec<String> {
        let requests = self.server.requests().into_iter();
        requests
            .map(|request| request.body["messages"].to_string())
            .collect()
    }

    /// What rules did, the oldest first, but for those that come with the program.
    pub(crate) async fn log(&self) -> Vec<Value> {
        let found = self.call("rules.log", json!({ "limit": 1000 })).await;
        let mut executions = found.unwrap()["executions"].as_array().unwrap().clone();
        let bundled: Vec<String> = (load::bundled().into_iter())
            .map(|loaded| loaded.rule.unwrap().label.clone())
            .collect();
        executions.retain(|one| bundled.iter().all(|rule| one["rule"] != **rule));
        executions.reverse();
        executions
    }

    /// How often a rule of the user fired.
    pub(crate) async fn fired(&self, id: &str) -> usize {
        let rule = format!("rules/{id}");
        let log = self.log().await;
        let fired = log
            .iter()
            .filter(|one| one["rule"] == *rule && one["fired"] == true);
        fired.count()
    }

    /// A rule as it is listed.
    pub(crate) async fn listed(&self, rule: &str) -> Option<Value> {
        let found = self.call("rules.list", json!({})).await.unwrap();
        let mut rules = found["rules"].as_array().unwrap().iter();
        rules.find(|one| one["rule"] == rule).cloned()
    }

    /// What is wrong with files, each in a line.
    pub(crate) async fn problems(&self) -> Vec<String> {
        let found = self.call("rules.check", json!({})).await.unwrap();
        let problems: Vec<dodona_rules::Problem> =
            serde_json::from_value(found["problems"].clone()).unwrap();
        problems.iter().map(ToString::to_string).collect()
    }

    /// The events of the journal whose types begin so, oldest first.
    pub(crate) async fn events(&self, prefix: &str) -> Vec<Event> {
        let journal = self.hub.journal();
        journal.flush().await.unwrap();
        journal.recent_events(prefix, 10_000).await.unwrap()
    }
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

    /// How each tool call ended.
    pub(crate) fn endings(&self) -> Vec<&str> {
        let results = self.data("ToolResult").into_iter();
        results
            .map(|result| result["ending"].as_str().unwrap())
            .collect()
    }
}

/// Puts a file in its place in one step, as an editor does.
pub(crate) fn put(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "{what}: still not so");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A rule with an expression and one action.
pub(crate) fn rule(id: &str, trigger: &str, condition: &str, action: &str) -> String {
    let is_gate = ["\"deny\"", "\"require_approval\""]
        .iter()
        .any(|kind| action.contains(kind));
    // Most tests call tools outside of a query.
    let surfaces = if trigger.starts_with("on_tool") && !is_gate {
        "surfaces = [\"cli\", \"rpc\", \"web\", \"mcp\", \"internal\"]\n"
    } else {
        ""
    };
    format!(
        "[rule]\nid = \"{id}\"\ntrigger = \"{trigger}\"\n{surfaces}\
         [condition]\nexpression = '''{condition}'''\n[action]\n{action}\n"
    )
}

/// One that tells the model something.
pub(crate) fn notice(id: &str, trigger: &str, condition: &str, message: &str) -> String {
    let action = format!("type = \"notify_self\"\nmessage = '''{message}'''");
    rule(id, trigger, condition, &action)
}

pub(crate) fn calls_echo(id: &str, text: &str) -> Reply {
    let arguments = json!({ "text": text }).to_string();
    Reply::stream().tool_call(id, "tools_echo", &[&arguments])
}

pub(crate) fn calls_fail(id: &str) -> Reply {
    Reply::stream().tool_call(id, "tools_fail", &["{}"])
}

fn models(url: &str, window: Option<u32>) -> Models {
    let mut config = ModelConfig::new(Provider::OpenAi, "main-1");
    config.context_window = window;
    config.base_url = Some(url.to_owned());
    config.key_env = Some("KEY".to_owned());
    config.retries = 0;
    let configs = BTreeMap::from([("main".to_owned(), config)]);
    let environment = Arc::new(|_: &str| Some("secret".to_owned()));
    let (models, problems) = Models::from_config(&configs, Some("main"), &(environment as _));
    assert_eq!(problems, []);
    models
}

async fn start(
    folder: &TempDir,
    config: &HubConfig,
    options: &AgentOptions,
) -> (PluginHub, Project) {
    let home = folder.path().join("config");
    let rules = RulesOptions {
        rules: Some(home.join("rules")),
        config: Some(home.join("config.toml")),
    };
    let plugins: Vec<Arc<dyn Plugin>> = vec![
        Arc::new(AgentPlugin::new(options.clone())),
        Arc::new(RulesPlugin::new(rules)),
        Arc::new(ToolsPlugin),
    ];
    let paths = HubPaths {
        data: folder.path().join("data"),
        config: Some(home),
    };
    let hub = PluginHub::start(paths, config.clone(), plugins)
        .await
        .unwrap();
    let register = Request::new(
        dodona_testkit::principal("alice"),
        "hub.register_project",
        json!({ "root": folder.path().join("orchard") }),
    );
    let project = hub.call(register).await.unwrap();
    (hub, serde_json::from_value(project).unwrap())
}
