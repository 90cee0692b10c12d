//! The methods for people who write rules: tests, explanations, backtests, a check-up.

mod again;
mod backtest;
mod changed;
mod doctor;
mod explain;
mod feed;
mod report;
mod test;

use std::collections::HashMap;
use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError, Emitter, ErrorCode, EventHistory, NoParams, plugin};
use dodona_proto::{PluginName, UserId};
use dodona_script::Engine;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::compile::CompiledRule;
use crate::live::Live;
use crate::load::{ProjectRules, RuleSet};
use crate::replay::Setup;
use crate::schema::rule_schema;

use again::{Again, AgainParams};
use backtest::BacktestParams;
use doctor::CheckUp;
use explain::{ExplainParams, Explained};
use report::Backtest;
use test::{TestParams, Tests};

/// How many virtual machines for scripts are kept.
const MACHINES: usize = 2;

/// What the methods share.
pub(crate) struct Workbench {
    live: Arc<Live>,
    history: Arc<dyn EventHistory>,
    scripts: Arc<Engine>,
}

/// The form of a rule's file.
#[derive(Serialize, JsonSchema)]
struct RuleSchema {
    /// A JSON Schema.
    schema: Value,
}

#[plugin(name = "rules")]
impl Workbench {
    /// Runs the tests that rules bring with them: of all rules in use here, of one, or of a text.
    #[method(scope = "rules:read")]
    async fn test(&self, ctx: &CallCtx, p: TestParams) -> Result<Tests, CallError> {
        test::run(self, ctx, p).await
    }

    /// Tells why a rule fired or did not: the value of every term of its condition, and what kept it
    /// from acting. The rule is asked as it is now, about what the journal has.
    #[method(scope = "rules:read")]
    async fn explain(&self, ctx: &CallCtx, p: ExplainParams) -> Result<Explained, CallError> {
        explain::explain(self, ctx, p).await
    }

    /// Asks rules again about everything that the journal has, oldest first, with the state that they
    /// set themselves, and tells what would have fired. Nothing is changed or delivered.
    #[method(scope = "rules:read", timeout_ms = 3_600_000)]
    async fn backtest(
        &self,
        ctx: &CallCtx,
        p: BacktestParams,
        out: Emitter<Backtest>,
    ) -> Result<(), CallError> {
        out.send(backtest::run(self, ctx, p).await?).await
    }

    /// Asks the rules of now about a query that was, and names the first thing that they would not do
    /// as they did. Nothing is changed or delivered.
    #[method(scope = "rules:read", timeout_ms = 600_000)]
    async fn again(&self, ctx: &CallCtx, p: AgainParams) -> Result<Again, CallError> {
        again::run(self, ctx, p).await
    }

    /// Names rules that are broken, never ran, can never fire, fail, or whose tests do not pass.
    #[method(scope = "rules:read")]
    async fn doctor(&self, ctx: &CallCtx, _p: NoParams) -> Result<CheckUp, CallError> {
        doctor::check(self, ctx).await
    }

    /// The JSON Schema of a rule's file, for editors.
    #[method(scope = "rules:read")]
    async fn schema(&self, _ctx: &CallCtx, _p: NoParams) -> Result<RuleSchema, CallError> {
        Ok(RuleSchema {
            schema: rule_schema(),
        })
    }
}

impl Workbench {
    pub(crate) fn new(live: Arc<Live>, history: Arc<dyn EventHistory>) -> Self {
        Self {
            live,
            history,
            scripts: Arc::new(Engine::new(MACHINES)),
        }
    }

    /// The rules of the call's project, as their files are now.
    async fn rules(&self, ctx: &CallCtx) -> ProjectRules {
        let project = ctx.project.as_ref().map(|project| project.id.clone());
        self.live.book.look(project.clone()).await;
        self.live.book.of(project.as_ref()).await
    }

    /// What surrounds rules that are asked again: settings as they are now.
    fn surroundings(&self, user: &UserId, project: &ProjectRules, rules: &RuleSet) -> Around {
        let plugins = rules.rules().iter().map(|rule| &rule.key.plugin);
        let settings = plugins.map(|plugin| {
            let settings = self.live.host.settings(plugin, user).unwrap_or_default();
            (plugin.clone(), Arc::new(Value::Object(settings)))
        });
        Around {
            settings: settings.collect(),
            user_settings: self.live.user_settings(user, project),
            project_settings: Arc::clone(&project.settings),
        }
    }
}

/// Settings, as they are now.
#[derive(Clone)]
struct Around {
    settings: HashMap<PluginName, Arc<Value>>,
    user_settings: Arc<Value>,
    project_settings: Arc<Value>,
}

impl Around {
    fn setup<'r>(
        &self,
        rules: &'r RuleSet,
        scripts: &'r Engine,
        is_off: &'r (dyn Fn(&CompiledRule) -> bool + Send + Sync),
    ) -> Setup<'r> {
        Setup {
            rules,
            scripts,
            settings: self.settings.clone(),
            user_settings: Arc::clone(&self.user_settings),
            project_settings: Arc::clone(&self.project_settings),
            is_off,
        }
    }
}

/// Runs what may block its thread, such as scripts.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CallError::new(ErrorCode::Internal, "asking rules panicked").log(error))
}
