//! A process that asks an agent one question after the other, and prints whatever it was told.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use dodona_agent::{AgentOptions, AgentPlugin};
use dodona_hub::{CallStream, Request};
use dodona_llm::{ModelConfig, Models, Provider};
use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use dodona_proto::{ItemBody, Project};
use dodona_store::journal::StoredItem;
use dodona_testkit::{TestHub, fingerprint, principal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::script;

/// The variable that makes a process one that is to be killed.
const LIFE: &str = "DODONA_TEST_LIFE";

/// What a process is to do.
#[derive(Serialize, Deserialize)]
pub(super) struct Life {
    home: PathBuf,
    url: String,
    first: u64,
    questions: u64,
}

/// Tells a process what to do.
pub(super) fn describe(command: &mut Command, home: &Path, url: &str, first: u64, questions: u64) {
    let life = Life {
        home: home.to_owned(),
        url: url.to_owned(),
        first,
        questions,
    };
    command.env(LIFE, serde_json::to_string(&life).unwrap());
}

/// What this process is to do, if somebody has told it.
pub(super) fn described() -> Option<Life> {
    let text = std::env::var(LIFE).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

impl Life {
    pub(super) async fn run(self) {
        // The harness has begun a line.
        println!();
        let agent = Agent::start(&self.home, &self.url).await;
        say("ready");
        let end = self.first.saturating_add(self.questions);
        for number in self.first..end {
            say(&format!("asking {number}"));
            let mut stream = agent.ask(number).await;
            say(&format!("open {number} {}", stream.stream()));
            while let Some(items) = stream.next().await.unwrap() {
                for item in items {
                    let (seq, print) = (item.seq, fingerprint(&item));
                    say(&format!(
                        "item {number} {seq} {print:016x} {}",
                        label(&item)
                    ));
                }
            }
        }
        agent.hub.stop().await;
        say("finished");
    }
}

/// One write for one line, past every buffer: what is printed has been acknowledged.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let line = format!("life {line}\n");
    if out
        .write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        std::process::exit(4);
    }
}

/// What an item of the agent itself says, in a word.
fn label(item: &StoredItem) -> String {
    let item = item.to_item().unwrap();
    match &item.body {
        ItemBody::Data { content_type, data } if item.call_id.depth() == 0 => {
            let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
            format!("{content_type} {} {}", text("id"), text("ending"))
        }
        _ => "-".to_owned(),
    }
}

/// A hub with an agent and its tools.
pub(super) struct Agent {
    pub(super) hub: TestHub,
    project: Project,
}

impl Agent {
    pub(super) async fn start(home: &Path, url: &str) -> Self {
        let options = AgentOptions {
            models: models(url),
            token_budget: Some(4_000),
            ..AgentOptions::default()
        };
        let files = files(home);
        std::fs::create_dir_all(&files).unwrap();
        let hub = TestHub::builder()
            .plugin(move || AgentPlugin::new(options.clone()))
            .plugin(move || MarksPlugin {
                files: files.clone(),
            });
        let hub = hub.start_at(home).await.unwrap();
        let root = home.join("project");
        std::fs::create_dir_all(&root).unwrap();
        let project = hub
            .call("alice", "hub.register_project", json!({ "root": root }))
            .await
            .unwrap();
        let project = serde_json::from_value(project).unwrap();
        Self { hub, project }
    }

    fn request(&self, method: &str, params: Value) -> Request {
        Request {
            project: Some(self.project.id.clone()),
            ..Request::new(principal("alice"), method, params)
        }
    }

    pub(super) async fn ask(&self, number: u64) -> CallStream {
        let params = json!({ "message": script::question(number) });
        let request = self.request("agent.chat", params);
        (*self.hub).open(request).await.unwrap()
    }

    pub(super) async fn call(&self, method: &str, params: Value) -> Value {
        let request = self.request(method, params);
        (*self.hub).call(request).await.unwrap()
    }
}

fn models(url: &str) -> Models {
    let mut config = ModelConfig::new(Provider::OpenAi, "scripted-1");
    config.base_url = Some(url.to_owned());
    config.key_env = Some("KEY".to_owned());
    config.retries = 0;
    let configs = BTreeMap::from([("main".to_owned(), config)]);
    let environment = Arc::new(|_: &str| Some("secret".to_owned()));
    let (models, problems) = Models::from_config(&configs, Some("main"), &(environment as _));
    assert_eq!(problems, []);
    models
}

/// Where the tool `marks.write` writes.
pub(super) fn files(home: &Path) -> PathBuf {
    home.join("written")
}

/// Tools that print that they run, and one that writes files.
struct Marks {
    files: PathBuf,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Mark {
    /// What to say.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[plugin(name = "marks")]
impl Marks {
    /// Says that it runs.
    #[method(scope = "marks:use", tool(category = "meta"))]
    async fn mark(&self, _ctx: &CallCtx, p: Mark) -> Result<Mark, CallError> {
        if described().is_some() {
            say(&format!("ran {}", p.text));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok(p)
    }

    /// Write a file with this name, on another thread as the vault does.
    #[method(scope = "marks:use", tool(category = "meta"), mutates)]
    async fn write(&self, _ctx: &CallCtx, p: Mark) -> Result<Mark, CallError> {
        let (path, text) = (self.files.join(&p.text), p.text.clone());
        let work = move || std::fs::write(path, text).unwrap();
        tokio::task::spawn_blocking(work).await.unwrap();
        Ok(p)
    }

    /// Never works.
    #[method(scope = "marks:use", tool(category = "meta"))]
    async fn fail(&self, _ctx: &CallCtx, _p: Nothing) -> Result<Mark, CallError> {
        Err(CallError::plugin("marks.broken", "the tool is broken"))
    }
}

struct MarksPlugin {
    files: PathBuf,
}

impl Plugin for MarksPlugin {
    fn name(&self) -> &'static str {
        "marks"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        let marks = Arc::new(Marks {
            files: self.files.clone(),
        });
        Box::pin(async move { Ok(Contribution::new().methods(marks.plugin_methods()?)) })
    }
}
