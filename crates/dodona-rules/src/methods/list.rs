//! `rules.list`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuleMethods;
use crate::compile::CompiledRule;
use crate::format::Trigger;
use crate::identity::Scope;
use crate::load::{Inactive, LoadedRules};
use crate::log::Liveness;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListParams {
    /// Only rules with this trigger.
    trigger: Option<Trigger>,
}

/// The list of active rules.
#[derive(Serialize, JsonSchema)]
pub(super) struct Rules {
    /// In order of evaluation.
    rules: Vec<RuleSummary>,
    /// Number of files with an error. Their last valid version is in force, if there is one.
    broken: usize,
}

/// A rule in a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct RuleSummary {
    /// The rule, as `plugin/id`.
    rule: String,
    /// Name for display; the id by default.
    name: String,
    /// Purpose of the rule.
    description: String,
    /// The trigger of the rule.
    trigger: Trigger,
    /// From 1 to 1000. Rules with a higher priority are evaluated first.
    priority: u16,
    /// Whether it is evaluated: its file enables it, you did not disable it, and it is trusted.
    enabled: bool,
    /// Whether you disabled the rule.
    switched_off: bool,
    /// Whether the rule is a core rule, which cannot be disabled.
    core: bool,
    /// Why it is not evaluated although it is enabled.
    inactive: Option<Inactive>,
    /// Whether its file has an error, so that an earlier valid version is in force.
    outdated: bool,
    /// Where the rule comes from.
    scope: Scope,
    /// The file of the rule.
    path: String,
    /// Semantic version of the rule.
    version: String,
    /// Number of evaluations, firings and failures.
    liveness: Liveness,
}

impl RuleSummary {
    pub(super) fn new(
        loaded: &LoadedRules,
        rule: &CompiledRule,
        switched_off: bool,
        liveness: Liveness,
    ) -> Self {
        let inactive = loaded.rules.inactive(rule);
        let mut errors = loaded.problems.iter().filter(|problem| problem.is_error());
        let switched_off = switched_off && !rule.is_core;
        Self {
            rule: rule.label.clone(),
            name: rule.rule.name.clone(),
            description: rule.rule.description.clone(),
            trigger: rule.rule.trigger,
            priority: rule.rule.priority,
            enabled: rule.rule.enabled && !switched_off && inactive.is_none(),
            inactive,
            outdated: errors.any(|problem| problem.fault.path == rule.origin.path),
            switched_off,
            core: rule.is_core,
            scope: rule.origin.scope.clone(),
            path: rule.origin.path.clone(),
            version: rule.rule.version.to_string(),
            liveness,
        }
    }
}

pub(super) async fn list(
    methods: &RuleMethods,
    ctx: &CallCtx,
    p: ListParams,
) -> Result<Rules, CallError> {
    let engine = &methods.engine;
    let rules = methods.rules(ctx).await;
    let off = engine.host.disabled(&ctx.principal.user);
    let mut alive = engine.log.liveness(ctx).await?;
    let asked = rules.loaded.rules.rules().iter();
    let listed = asked
        .filter(|rule| p.trigger.is_none_or(|trigger| rule.rule.trigger == trigger))
        .map(|rule| {
            let liveness = alive.remove(&rule.label).unwrap_or_default();
            RuleSummary::new(&rules.loaded, rule, off.contains(&rule.label), liveness)
        });
    let problems = rules.loaded.problems.iter();
    let mut broken: Vec<&str> = problems
        .filter(|problem| problem.is_error())
        .map(|problem| problem.fault.path.as_str())
        .collect();
    broken.sort_unstable();
    broken.dedup();
    Ok(Rules {
        rules: listed.collect(),
        broken: broken.len(),
    })
}
