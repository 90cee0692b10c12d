//! The methods of the plugin, one file each.

mod check;
mod executions;
mod lines;
mod list;
mod reload;
mod settings;
mod show;
mod toggle;

use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError, ErrorCode, NoParams, plugin};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::compile::CompiledRule;
use crate::engine::RuleEngine;
use crate::identity::RuleKey;
use crate::load::ProjectRules;

use check::{CheckParams, Checked};
use executions::{Executions, LogParams};
use lines::{LogLines, LogLinesParams};
use list::{ListParams, Rules};
use reload::Reloaded;
use settings::SettingsResult;
use show::RuleShown;
use toggle::Toggled;

/// Implements the methods that list and control rules.
pub(crate) struct RuleMethods {
    engine: Arc<RuleEngine>,
}

#[derive(Deserialize, JsonSchema)]
struct RuleParams {
    /// The rule: `plugin/id`, or `id` for a rule that belongs to no plugin.
    #[schemars(length(min = 1, max = 256))]
    rule: String,
}

#[plugin(name = "rules")]
impl RuleMethods {
    /// List the active rules in order of evaluation, with trigger, status and counts.
    #[method(scope = "rules:read")]
    async fn list(&self, ctx: &CallCtx, p: ListParams) -> Result<Rules, CallError> {
        list::list(self, ctx, p).await
    }

    /// Show a rule: condition, actions, limits, tests, status and counts.
    #[method(scope = "rules:read")]
    async fn show(&self, ctx: &CallCtx, p: RuleParams) -> Result<RuleShown, CallError> {
        show::show(self, ctx, &p.rule).await
    }

    /// Check all rule files, or the text of one rule (`text`), and list the problems with file, line and column.
    #[method(scope = "rules:read")]
    async fn check(&self, ctx: &CallCtx, p: CheckParams) -> Result<Checked, CallError> {
        check::check(self, ctx, p).await
    }

    /// Enable a rule that you disabled.
    #[method(scope = "rules:write", mutates)]
    async fn enable(&self, ctx: &CallCtx, p: RuleParams) -> Result<Toggled, CallError> {
        toggle::enable(self, ctx, &p.rule).await
    }

    /// Disable a rule for you, at once and until you enable it again. A core rule cannot be disabled.
    #[method(scope = "rules:write", mutates)]
    async fn disable(&self, ctx: &CallCtx, p: RuleParams) -> Result<Toggled, CallError> {
        toggle::disable(self, ctx, &p.rule).await
    }

    /// List the executions of your rules, newest first: rules that fired or failed, with their decisions.
    #[method(scope = "rules:read")]
    async fn log(&self, ctx: &CallCtx, p: LogParams) -> Result<Executions, CallError> {
        executions::list(self, ctx, p).await
    }

    /// List the lines that rules wrote for you with the action `log`, oldest first, with time, level, rule and
    /// message.
    #[method(scope = "rules:read")]
    async fn log_lines(&self, ctx: &CallCtx, p: LogLinesParams) -> Result<LogLines, CallError> {
        lines::list(self, ctx, p).await
    }

    /// Show the settings that rules can read as `context.user.settings` and
    /// `context.project.settings`.
    #[method(scope = "rules:read")]
    async fn settings(&self, ctx: &CallCtx, _p: NoParams) -> Result<SettingsResult, CallError> {
        Ok(settings::show(self, ctx).await)
    }

    /// Scan the rule files for changes now. The server does this several times per second by itself.
    #[method(scope = "rules:write", mutates)]
    async fn reload(&self, ctx: &CallCtx, _p: NoParams) -> Result<Reloaded, CallError> {
        reload::reload(self, ctx).await
    }
}

impl RuleMethods {
    pub(crate) fn new(engine: Arc<RuleEngine>) -> Self {
        Self { engine }
    }

    /// The rules of the call's project, after a scan of their files.
    async fn rules(&self, ctx: &CallCtx) -> ProjectRules {
        let project = ctx.project.as_ref().map(|project| project.id.clone());
        self.engine.store.scan(project.clone()).await;
        self.engine.store.rules_of(project.as_ref()).await
    }

    async fn rule(&self, ctx: &CallCtx, name: &str) -> Result<Arc<CompiledRule>, CallError> {
        let rules = self.rules(ctx).await;
        find(&rules, name)
    }
}

/// Fails for a rule that is not trusted: such a rule is not evaluated, not even for an explanation.
pub(crate) fn must_be_active(rules: &ProjectRules, rule: &CompiledRule) -> Result<(), CallError> {
    let Some(why) = rules.loaded.rules.inactive(rule) else {
        return Ok(());
    };
    let message = format!("rule `{}` is inactive: {why}", rule.label);
    let error = CallError::new(ErrorCode::InvalidRequest, message);
    Err(error.hint("review it with `dodona trust show`, then run `dodona trust accept`"))
}

pub(crate) fn find(rules: &ProjectRules, name: &str) -> Result<Arc<CompiledRule>, CallError> {
    let invalid = |why: String| CallError::new(ErrorCode::InvalidParams, why);
    let key: RuleKey = name
        .parse()
        .map_err(|error: crate::NoRuleKey| invalid(error.to_string()))?;
    let set = &rules.loaded.rules;
    if let Some(rule) = set.get(&key) {
        return Ok(Arc::clone(rule));
    }
    let labels = set.rules().iter().map(|rule| rule.label.as_str());
    let near = dodona_plugin::reading::nearest(&key.to_string(), labels);
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "run `dodona rules list` to list all rules, and `dodona rules check` to find broken files"
            .to_owned(),
    };
    let message = format!("rule `{key}` not found");
    Err(CallError::new(ErrorCode::NotFound, message).hint(hint))
}
