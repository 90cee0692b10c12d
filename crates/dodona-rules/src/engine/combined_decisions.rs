//! The combined decisions of all rules about an event.

use dodona_proto::hook::Verdict;
use dodona_proto::{Effect, Notification, PluginEffect, ProjectId};

use crate::compile::CompiledRule;
use crate::evaluate::{Decision, Decisions, RuleResult};
use crate::format::OnError;
use crate::identity::Scope;

/// How many notifications the rules of a project may send at one event. The next ones are dropped,
/// so that a project cannot crowd out the notifications of the user's and core rules.
const PROJECT_NOTIFICATIONS: usize = 10;

/// The combined decisions of all rules about one event.
#[derive(Debug, Default)]
pub(crate) struct CombinedDecisions {
    /// Effects for the caller that fired the hook point to apply, each on behalf of the rule's plugin.
    pub(crate) effects: Vec<PluginEffect>,
    deny: Option<String>,
    ask: Option<String>,
    /// Notifications of the project's rules so far.
    project_notifications: usize,
}

impl CombinedDecisions {
    /// Denies the call without evaluating rules.
    pub(crate) fn denying(message: String) -> Self {
        Self {
            deny: Some(message),
            ..Self::default()
        }
    }

    /// Adds the decisions of a rule, in order of evaluation. The first `deny` and the first
    /// `require_approval` count. Notifications over the project's quota are dropped, and the result is
    /// marked accordingly.
    pub(crate) fn add(&mut self, project: Option<&ProjectId>, result: &mut RuleResult) {
        let rule = &result.rule;
        let mut over_quota = false;
        for decision in &result.outcome.decisions {
            match decision {
                Decision::Deny { message } => {
                    let message = labelled(rule, project, message);
                    self.deny.get_or_insert(message);
                }
                Decision::RequireApproval { message } => {
                    let message = labelled(rule, project, message);
                    self.ask.get_or_insert(message);
                }
                // The engine has stored it already.
                Decision::Effect(Effect::SetState { .. }) => {}
                Decision::Effect(Effect::NotifySelf(_)) if self.is_over_quota(rule) => {
                    over_quota = true;
                }
                Decision::Effect(effect) => self.effects.push(PluginEffect {
                    plugin: rule.namespace.clone(),
                    effect: signed(effect, rule, project),
                }),
            }
        }
        if result.outcome.error.is_some() && rule.rule.limits.on_error == OnError::Closed {
            let name = &rule.rule.id;
            self.deny.get_or_insert_with(|| {
                let message =
                    format!("rule `{name}` could not be evaluated, so the call is denied");
                labelled(rule, project, &message)
            });
        }
        if over_quota {
            drop_notifications(result);
        }
    }

    /// Counts a notification of a project's rule and returns whether it exceeds the quota.
    fn is_over_quota(&mut self, rule: &CompiledRule) -> bool {
        if rule.origin.scope != Scope::Project {
            return false;
        }
        self.project_notifications += 1;
        self.project_notifications > PROJECT_NOTIFICATIONS
    }

    /// The verdict about a call. `deny` takes precedence over `require_approval`.
    pub(crate) fn verdict(&mut self) -> Option<Verdict> {
        let deny = self.deny.take().map(Verdict::Deny);
        deny.or_else(|| self.ask.take().map(Verdict::Ask))
    }
}

/// Removes the notifications from a result and marks it. A rule without other decisions counts as not
/// fired.
fn drop_notifications(result: &mut RuleResult) {
    let outcome = &mut result.outcome;
    let mut kept = Decisions::default();
    for decision in &outcome.decisions {
        if !matches!(decision, Decision::Effect(Effect::NotifySelf(_))) {
            kept.push(decision.clone());
        }
    }
    outcome.fired &= !kept.is_empty();
    outcome.decisions = kept;
    outcome.dropped = true;
}

/// Adds the rule to an effect. A text of a project or a plugin also names its author.
fn signed(effect: &Effect, rule: &CompiledRule, project: Option<&ProjectId>) -> Effect {
    match effect {
        Effect::NotifySelf(notification) => Effect::NotifySelf(Notification {
            rule: Some(rule.label.clone()),
            is_core: rule.is_core,
            message: labelled(rule, project, &notification.message),
            ..notification.clone()
        }),
        Effect::Log { level, message } => Effect::Log {
            level: *level,
            message: labelled(rule, project, message),
        },
        other => other.clone(),
    }
}

/// Prefixes a text with its author. A text of a project or a plugin must not look like a text of the
/// user or of Dodona.
fn labelled(rule: &CompiledRule, project: Option<&ProjectId>, text: &str) -> String {
    let id = &rule.rule.id;
    match &rule.origin.scope {
        Scope::Bundled | Scope::User => text.to_owned(),
        Scope::Plugin(plugin) => format!("rule `{id}` of plugin `{plugin}` says: {text}"),
        Scope::Project => match project {
            Some(project) => format!("rule `{id}` of project `{project}` says: {text}"),
            None => format!("rule `{id}` of a project says: {text}"),
        },
    }
}
