//! The combined decisions of all rules about an event.

use dodona_proto::hook::Verdict;
use dodona_proto::{Effect, Notification, PluginEffect, ProjectId};

use crate::compile::CompiledRule;
use crate::engine::{Answer, Decision, Decisions};
use crate::format::OnError;
use crate::identity::Scope;

/// How many notifications the rules of a project may send at one event. The next ones are dropped,
/// so that a project cannot crowd out the notifications of the user's and core rules.
const PROJECT_NOTIFICATIONS: usize = 10;

/// What comes of an event.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// To be done by the caller that fired the hook point, each for the plugin whose rule wants it.
    pub(crate) effects: Vec<PluginEffect>,
    deny: Option<String>,
    ask: Option<String>,
    /// Notifications of the project's rules so far.
    of_project: usize,
}

impl Decided {
    /// Refuses the call whatever the rules say.
    pub(crate) fn refusing(message: String) -> Self {
        Self {
            deny: Some(message),
            ..Self::default()
        }
    }

    /// Adds the decisions of a rule. The first refusal and the first question count: rules come in
    /// order of evaluation. Notifications over the project's quota are dropped, and the answer is
    /// changed to say so.
    pub(crate) fn add(&mut self, project: Option<&ProjectId>, answer: &mut Answer) {
        let rule = &answer.rule;
        let mut over_quota = false;
        for decision in &answer.outcome.decisions {
            match decision {
                Decision::Deny { message } => {
                    let message = labelled(rule, project, message);
                    self.deny.get_or_insert(message);
                }
                Decision::RequireApproval { message } => {
                    let message = labelled(rule, project, message);
                    self.ask.get_or_insert(message);
                }
                // The engine stores state itself.
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
        if answer.outcome.error.is_some() && rule.rule.limits.on_error == OnError::Closed {
            let name = &rule.rule.id;
            self.deny.get_or_insert_with(|| {
                let message =
                    format!("rule `{name}` could not be evaluated, so the call is denied");
                labelled(rule, project, &message)
            });
        }
        if over_quota {
            drop_notifications(answer);
        }
    }

    /// Counts a notification of a project's rule. Whether it is one too many.
    fn is_over_quota(&mut self, rule: &CompiledRule) -> bool {
        if rule.origin.scope != Scope::Project {
            return false;
        }
        self.of_project += 1;
        self.of_project > PROJECT_NOTIFICATIONS
    }

    /// The verdict about a call. A refusal beats a question.
    pub(crate) fn verdict(&mut self) -> Option<Verdict> {
        let deny = self.deny.take().map(Verdict::Deny);
        deny.or_else(|| self.ask.take().map(Verdict::Ask))
    }
}

/// Removes the notifications from an answer and marks it: a rule all of whose decisions were dropped
/// has not fired.
fn drop_notifications(answer: &mut Answer) {
    let outcome = &mut answer.outcome;
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

/// An effect with the rule that wants it. Text of a project or a plugin names its author.
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

/// A text as a model or a person reads it. What a project or a plugin wrote must not pass for a
/// text of the user or of Dodona.
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
