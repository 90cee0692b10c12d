//! `rules.list`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuleMethods;
use crate::compile::CompiledRule;
use crate::format::Trigger;
use crate::identity::Scope;
use crate::load::{Inactive, Library};
use crate::log::Liveness;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListParams {
    /// Only those of this trigger.
    trigger: Option<Trigger>,
}

/// The rules.
#[derive(Serialize, JsonSchema)]
pub(super) struct Rules {
    /// In the order in which they are asked.
    rules: Vec<RuleSummary>,
    /// How many files have an error, and so no rule or an old one.
    broken: usize,
}

/// A rule in a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct RuleSummary {
    /// Its name everywhere, `plugin/id`.
    rule: String,
    /// For people.
    name: String,
    /// What it is for.
    description: String,
    /// When it is asked.
    trigger: Trigger,
    /// From 1 to 1000; higher is asked earlier.
    priority: u16,
    /// Whether it is evaluated: its file enables it, you did not disable it, and it is trusted.
    enabled: bool,
    /// Whether you switched it off.
    switched_off: bool,
    /// Whether nobody can switch it off.
    core: bool,
    /// Why it is not evaluated although it is enabled.
    inactive: Option<Inactive>,
    /// Whether its file has an error, so that an earlier valid version is in force.
    outdated: bool,
    /// Where it comes from.
    scope: Scope,
    /// Its file.
    path: String,
    /// Semantic.
    version: String,
    /// How often it was asked, fired and failed.
    liveness: Liveness,
}

impl RuleSummary {
    pub(super) fn new(
        library: &Library,
        rule: &CompiledRule,
        switched_off: bool,
        liveness: Liveness,
    ) -> Self {
        let inactive = library.rules.inactive(rule);
        let mut errors = library.problems.iter().filter(|problem| problem.is_error());
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
    let live = &methods.live;
    let rules = methods.rules(ctx).await;
    let off = live.host.disabled(&ctx.principal.user);
    let mut alive = live.log.liveness(ctx).await?;
    let asked = rules.library.rules.rules().iter();
    let listed = asked
        .filter(|rule| p.trigger.is_none_or(|trigger| rule.rule.trigger == trigger))
        .map(|rule| {
            let liveness = alive.remove(&rule.label).unwrap_or_default();
            RuleSummary::new(&rules.library, rule, off.contains(&rule.label), liveness)
        });
    let problems = rules.library.problems.iter();
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
