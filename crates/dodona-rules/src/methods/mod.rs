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
use crate::identity::RuleKey;
use crate::live::Live;
use crate::load::ProjectRules;

use check::{CheckParams, Checked};
use executions::{Executions, LogParams};
use lines::{LogLines, LogLinesParams};
use list::{ListParams, Rules};
use reload::Reloaded;
use settings::SettingsResult;
use show::RuleShown;
use toggle::Toggled;

/// What the methods share.
pub(crate) struct RuleMethods {
    live: Arc<Live>,
}

#[derive(Deserialize, JsonSchema)]
struct RuleParams {
    /// Which rule: `plugin/id`, or `id` alone of a rule that belongs to no plugin.
    #[schemars(length(min = 1, max = 256))]
    rule: String,
}

#[plugin(name = "rules")]
impl RuleMethods {
    /// Lists the rules that are in use here, in the order in which they are asked.
    #[method(scope = "rules:read")]
    async fn list(&self, ctx: &CallCtx, p: ListParams) -> Result<Rules, CallError> {
        list::list(self, ctx, p).await
    }

    /// Shows everything about a rule.
    #[method(scope = "rules:read")]
    async fn show(&self, ctx: &CallCtx, p: RuleParams) -> Result<RuleShown, CallError> {
        show::show(self, ctx, &p.rule).await
    }

    /// Tells what is wrong with the rules' files, or with a text that might be one.
    #[method(scope = "rules:read")]
    async fn check(&self, ctx: &CallCtx, p: CheckParams) -> Result<Checked, CallError> {
        check::check(self, ctx, p).await
    }

    /// Switches a rule on again that you have switched off.
    #[method(scope = "rules:write", mutates)]
    async fn enable(&self, ctx: &CallCtx, p: RuleParams) -> Result<Toggled, CallError> {
        toggle::enable(self, ctx, &p.rule).await
    }

    /// Switches a rule off for you, at once and for good. A core rule stays on.
    #[method(scope = "rules:write", mutates)]
    async fn disable(&self, ctx: &CallCtx, p: RuleParams) -> Result<Toggled, CallError> {
        toggle::disable(self, ctx, &p.rule).await
    }

    /// Lists what your rules did, the newest first: those that fired and those that failed.
    #[method(scope = "rules:read")]
    async fn log(&self, ctx: &CallCtx, p: LogParams) -> Result<Executions, CallError> {
        executions::list(self, ctx, p).await
    }

    /// List the lines that rules logged for you with the action `log`, the oldest first: time, level,
    /// rule and message.
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

    /// Looks at all files now. Without this they are looked at several times a second.
    #[method(scope = "rules:write", mutates)]
    async fn reload(&self, ctx: &CallCtx, _p: NoParams) -> Result<Reloaded, CallError> {
        reload::reload(self, ctx).await
    }
}

impl RuleMethods {
    pub(crate) fn new(live: Arc<Live>) -> Self {
        Self { live }
    }

    /// The rules of the call's project, as their files are now.
    async fn rules(&self, ctx: &CallCtx) -> ProjectRules {
        let project = ctx.project.as_ref().map(|project| project.id.clone());
        self.live.book.look(project.clone()).await;
        self.live.book.of(project.as_ref()).await
    }

    /// A rule by its name.
    async fn rule(&self, ctx: &CallCtx, name: &str) -> Result<Arc<CompiledRule>, CallError> {
        let rules = self.rules(ctx).await;
        find(&rules, name)
    }
}

/// Refuses to evaluate a rule that is not trusted, also where nothing would come of it.
pub(crate) fn must_be_active(rules: &ProjectRules, rule: &CompiledRule) -> Result<(), CallError> {
    let Some(why) = rules.library.rules.inactive(rule) else {
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
    let set = &rules.library.rules;
    if let Some(rule) = set.get(&key) {
        return Ok(Arc::clone(rule));
    }
    let labels = set.rules().iter().map(|rule| rule.label.as_str());
    let near = dodona_plugin::reading::nearest(&key.to_string(), labels);
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`dodona rules list` shows them all; one whose file is broken is in `dodona rules check`"
            .to_owned(),
    };
    let message = format!("there is no rule `{key}`");
    Err(CallError::new(ErrorCode::NotFound, message).hint(hint))
}
