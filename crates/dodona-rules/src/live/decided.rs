//! What all rules together decided about an event.

use dodona_proto::hook::Verdict;
use dodona_proto::{Effect, Notification, PluginEffect};

use crate::engine::{Answer, Decision};
use crate::format::OnError;

/// What comes of an event.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decided {
    /// To be done by whoever fired the hook point, each for the plugin whose rule wants it.
    pub(crate) effects: Vec<PluginEffect>,
    deny: Option<String>,
    ask: Option<String>,
}

impl Decided {
    /// Adds what a rule said. Of refusals and of questions, the first counts: the rules come in
    /// the order of their priorities.
    pub(crate) fn add(&mut self, answer: &Answer) {
        for decision in &answer.outcome.decisions {
            match decision {
                Decision::Deny { message } => {
                    self.deny.get_or_insert_with(|| message.clone());
                }
                Decision::RequireApproval { message } => {
                    self.ask.get_or_insert_with(|| message.clone());
                }
                // The engine keeps state itself.
                Decision::Effect(Effect::SetState { .. }) => {}
                Decision::Effect(effect) => self.effects.push(PluginEffect {
                    plugin: answer.rule.key.plugin.clone(),
                    effect: signed(effect, &answer.rule.label),
                }),
            }
        }
        if answer.outcome.error.is_some() && answer.rule.rule.limits.on_error == OnError::Closed {
            let name = &answer.rule.rule.name;
            self.deny.get_or_insert_with(|| {
                format!("the rule \"{name}\" could not be asked, and without its word this call is not allowed")
            });
        }
    }

    /// What the rules say about a call. A refusal beats a question.
    pub(crate) fn verdict(&mut self) -> Option<Verdict> {
        let deny = self.deny.take().map(Verdict::Deny);
        deny.or_else(|| self.ask.take().map(Verdict::Ask))
    }
}

/// Who is told something is also told which rule says so.
fn signed(effect: &Effect, rule: &str) -> Effect {
    match effect {
        Effect::NotifySelf(notification) => Effect::NotifySelf(Notification {
            rule: Some(rule.to_owned()),
            ..notification.clone()
        }),
        other => other.clone(),
    }
}
