//! Methods for rule authors: tests, explain, backtest, reevaluate, doctor.

mod backtest;
mod changed_rule;
mod doctor;
mod explain;
mod journal_feed;
mod reevaluate;
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
use crate::engine::RuleEngine;
use crate::load::{ProjectRules, RuleSet};
use crate::replay::Setup;
use crate::schema::rule_schema;

use backtest::BacktestParams;
use doctor::CheckUp;
use explain::{ExplainParams, Explained};
use reevaluate::{Again, AgainParams};
use report::Backtest;
use test::{TestParams, Tests};

/// Number of idle virtual machines for scripts that are kept for reuse.
const MACHINES: usize = 2;

/// Implements the analysis methods of the plugin.
pub(crate) struct RuleAnalysis {
    engine: Arc<RuleEngine>,
    history: Arc<dyn EventHistory>,
    scripts: Arc<Engine>,
}

/// The JSON Schema of a rule file.
#[derive(Serialize, JsonSchema)]
struct RuleSchema {
    /// The schema, as JSON Schema.
    schema: Value,
}

#[plugin(name = "rules")]
impl RuleAnalysis {
    /// Run the `[[tests]]` of rules: of all active rules, of one rule (`rule`), or of unsaved rule texts
    /// (`texts`). Returns each test with its result, and the rules that have no tests.
    #[method(scope = "rules:read")]
    async fn test(&self, ctx: &CallCtx, p: TestParams) -> Result<Tests, CallError> {
        test::run(self, ctx, p).await
    }

    /// Explain why a rule fired or did not fire at recorded events: the value of every term of its condition,
    /// and the limit that suppressed it. Evaluates the current version of the rule. Pass `event` or `query`
    /// to select events; the default is the latest one.
    #[method(scope = "rules:read")]
    async fn explain(&self, ctx: &CallCtx, p: ExplainParams) -> Result<Explained, CallError> {
        explain::explain(self, ctx, p).await
    }

    /// Run rules over the recorded history, oldest event first, and report which would have fired. State
    /// starts empty and is set by the rules themselves. Pass `rules` to compare changed rules with the active
    /// ones. Nothing is changed or delivered.
    #[method(scope = "rules:read", timeout_ms = 3_600_000)]
    async fn backtest(
        &self,
        ctx: &CallCtx,
        p: BacktestParams,
        out: Emitter<Backtest>,
    ) -> Result<(), CallError> {
        out.send(backtest::run(self, ctx, p).await?).await
    }

    /// Reevaluate a finished query with the current rules and report the first decision that differs from the
    /// recorded one. Nothing is changed or delivered.
    #[method(scope = "rules:read", timeout_ms = 600_000)]
    async fn again(&self, ctx: &CallCtx, p: AgainParams) -> Result<Again, CallError> {
        reevaluate::run(self, ctx, p).await
    }

    /// Check all rules and list the problems found: broken files, rules that fail, that can never fire, that
    /// were never evaluated, or whose tests fail.
    #[method(scope = "rules:read")]
    async fn doctor(&self, ctx: &CallCtx, _p: NoParams) -> Result<CheckUp, CallError> {
        doctor::check(self, ctx).await
    }

    /// Return the JSON Schema of a rule file, for completion and validation in an editor.
    #[method(scope = "rules:read")]
    async fn schema(&self, _ctx: &CallCtx, _p: NoParams) -> Result<RuleSchema, CallError> {
        Ok(RuleSchema {
            schema: rule_schema(),
        })
    }
}

impl RuleAnalysis {
    pub(crate) fn new(engine: Arc<RuleEngine>, history: Arc<dyn EventHistory>) -> Self {
        Self {
            engine,
            history,
            scripts: Arc::new(Engine::new(MACHINES)),
        }
    }

    /// The rules of the call's project, after a scan of their files.
    async fn rules(&self, ctx: &CallCtx) -> ProjectRules {
        let project = ctx.project.as_ref().map(|project| project.id.clone());
        self.engine.store.scan(project.clone()).await;
        self.engine.store.rules_of(project.as_ref()).await
    }

    /// The current settings, for rules that are evaluated again.
    fn surroundings(
        &self,
        user: &UserId,
        project: &ProjectRules,
        rules: &RuleSet,
    ) -> CurrentSettings {
        let plugins = rules.rules().iter().map(|rule| &rule.key.plugin);
        let settings = plugins.map(|plugin| {
            let settings = self.engine.host.settings(plugin, user).unwrap_or_default();
            (plugin.clone(), Arc::new(Value::Object(settings)))
        });
        CurrentSettings {
            settings: settings.collect(),
            user_settings: self.engine.user_settings(user, project),
            project_settings: Arc::clone(&project.settings),
        }
    }
}

/// The current settings of plugins, user and project.
#[derive(Clone)]
struct CurrentSettings {
    settings: HashMap<PluginName, Arc<Value>>,
    user_settings: Arc<Value>,
    project_settings: Arc<Value>,
}

impl CurrentSettings {
    fn setup<'r>(
        &self,
        rules: &'r RuleSet,
        scripts: &'r Engine,
        is_disabled: &'r (dyn Fn(&CompiledRule) -> bool + Send + Sync),
    ) -> Setup<'r> {
        Setup {
            rules,
            scripts,
            settings: self.settings.clone(),
            user_settings: Arc::clone(&self.user_settings),
            project_settings: Arc::clone(&self.project_settings),
            is_disabled,
        }
    }
}

/// Runs work that blocks, such as scripts, on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CallError::new(ErrorCode::Internal, "asking rules panicked").log(error))
}
