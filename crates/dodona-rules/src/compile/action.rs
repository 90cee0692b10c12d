//! Compiling the templates of actions, and rendering them.

use std::ops::Range;

use dodona_plugin::reading::Reading;
use dodona_proto::{Category, DeliverAt, Effect, Notification, Priority, Severity};
use dodona_template::{Limits, Memo, Object, Template, TemplateError};
use serde_json::{Map, Value};

use crate::evaluate::{Decision, Decisions};
use crate::format::{Action, Rule, Spot, within};

/// Size and cost limits of a message template.
const LIMITS: Limits = Limits::message();

/// An action with compiled templates.
#[derive(Debug)]
pub(crate) enum CompiledAction {
    /// `notify_self`, `log`, `deny` or `require_approval`.
    Message(MessageKind, Template),
    SetState {
        key: String,
        value: Pattern,
    },
    EmitEvent {
        event_type: String,
        payload: Pattern,
    },
}

/// What an action does with its message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MessageKind {
    Notify {
        category: Category,
        priority: Priority,
        deliver_at: DeliverAt,
    },
    Log(Severity),
    Deny,
    RequireApproval,
}

/// A JSON value whose strings are templates.
#[derive(Debug)]
pub(crate) enum Pattern {
    Fixed(Value),
    Text(Box<Template>),
    List(Vec<Pattern>),
    Table(Vec<(String, Pattern)>),
}

/// Compiles the actions of a rule. Reports every invalid template with its position.
pub(super) fn prepare(
    rule: &Rule,
    text: &str,
    errors: &mut Reading<'_>,
) -> Option<Vec<CompiledAction>> {
    let mut prepared = Vec::new();
    for (action, spots) in rule.actions.iter().zip(&rule.spots.actions) {
        let spot = |key: &str| {
            let found = spots.iter().find(|(known, _)| known == key);
            found.map(|(_, spot)| spot.clone()).unwrap_or_default()
        };
        let mut compiler = Compiler { text, errors };
        prepared.extend(compiler.action(action, spot));
    }
    (prepared.len() == rule.actions.len()).then_some(prepared)
}

struct Compiler<'c, 'r, 't> {
    text: &'t str,
    errors: &'c mut Reading<'r>,
}

impl Compiler<'_, '_, '_> {
    fn action(&mut self, action: &Action, spot: impl Fn(&str) -> Spot) -> Option<CompiledAction> {
        let (kind, message) = match action {
            Action::SetState { key, value } => {
                let value = self.value(value, &spot("value"))?;
                let key = key.clone();
                return Some(CompiledAction::SetState { key, value });
            }
            Action::EmitEvent {
                event_type,
                payload,
            } => {
                let payload = self.value(payload, &spot("payload"))?;
                let event_type = event_type.clone();
                return Some(CompiledAction::EmitEvent {
                    event_type,
                    payload,
                });
            }
            Action::NotifySelf {
                message,
                category,
                priority,
                deliver_at,
            } => {
                let kind = MessageKind::Notify {
                    category: *category,
                    priority: *priority,
                    deliver_at: *deliver_at,
                };
                (kind, message)
            }
            Action::Log { message, level } => (MessageKind::Log(*level), message),
            Action::Deny { message } => (MessageKind::Deny, message),
            Action::RequireApproval { message } => (MessageKind::RequireApproval, message),
        };
        let template = self.text(message, &spot("message"))?;
        Some(CompiledAction::Message(kind, template))
    }

    fn text(&mut self, source: &str, spot: &Spot) -> Option<Template> {
        match Template::compile(source, &LIMITS) {
            Ok(template) => Some(template),
            Err(error) => {
                let inner = error.place.as_ref().map(|place| place.span.clone());
                let span = self.place(source, spot, inner);
                self.errors.fault(span, error.message);
                None
            }
        }
    }

    fn place(&self, source: &str, spot: &Spot, inner: Option<Range<usize>>) -> Range<usize> {
        match inner {
            Some(inner) => within(self.text, spot, source, inner),
            None => spot.span.clone(),
        }
    }

    fn value(&mut self, value: &Value, spot: &Spot) -> Option<Pattern> {
        Some(match value {
            Value::String(source) => Pattern::Text(Box::new(self.text(source, spot)?)),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, spot));
                Pattern::List(items.collect::<Option<_>>()?)
            }
            Value::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, value)| Some((key.clone(), self.value(value, spot)?)));
                Pattern::Table(fields.collect::<Option<_>>()?)
            }
            other => Pattern::Fixed(other.clone()),
        })
    }
}

impl Pattern {
    /// Compiles a value. A string that is a single `{{ expression }}` keeps the type of the expression.
    fn evaluate(&self, page: &dyn Object) -> Result<Value, TemplateError> {
        Ok(match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(template) => template.evaluate(page, &LIMITS)?,
            Self::List(items) => {
                let items = items.iter().map(|item| item.evaluate(page));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Self::Table(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), value.evaluate(page)?)));
                Value::Object(fields.collect::<Result<Map<_, _>, _>>()?)
            }
        })
    }
}

impl CompiledAction {
    /// Renders the action and pushes the decision. Pushed here and not returned: moving a decision through
    /// several results costs more than rendering it.
    pub(crate) fn render(
        &self,
        page: &dyn Object,
        memo: &mut Memo,
        decisions: &mut Decisions,
    ) -> Result<(), TemplateError> {
        let effect = match self {
            Self::Message(kind, template) => {
                let message = template.render_with(page, &LIMITS, memo)?;
                kind.say(message, decisions);
                return Ok(());
            }
            Self::SetState { key, value } => Effect::SetState {
                key: key.clone(),
                value: value.evaluate(page)?,
            },
            Self::EmitEvent {
                event_type,
                payload,
            } => Effect::EmitEvent {
                event_type: event_type.clone(),
                payload: payload.evaluate(page)?,
            },
        };
        decisions.push(Decision::Effect(effect));
        Ok(())
    }
}

impl MessageKind {
    #[inline]
    fn say(self, message: String, decisions: &mut Decisions) {
        match self {
            Self::Notify {
                category,
                priority,
                deliver_at,
            } => decisions.push(Decision::Effect(Effect::NotifySelf(Notification {
                message,
                category,
                priority,
                deliver_at,
                rule: None,
                is_core: false,
            }))),
            Self::Log(level) => decisions.push(Decision::Effect(Effect::Log { level, message })),
            Self::Deny => decisions.push(Decision::Deny { message }),
            Self::RequireApproval => decisions.push(Decision::RequireApproval { message }),
        }
    }
}

impl From<Action> for Decision {
    /// The decision of an action with rendered texts.
    fn from(action: Action) -> Self {
        match action {
            Action::NotifySelf {
                message,
                category,
                priority,
                deliver_at,
            } => Self::Effect(Effect::NotifySelf(Notification {
                message,
                category,
                priority,
                deliver_at,
                rule: None,
                is_core: false,
            })),
            Action::Log { message, level } => Self::Effect(Effect::Log { level, message }),
            Action::SetState { key, value } => Self::Effect(Effect::SetState { key, value }),
            Action::EmitEvent {
                event_type,
                payload,
            } => Self::Effect(Effect::EmitEvent {
                event_type,
                payload,
            }),
            Action::Deny { message } => Self::Deny { message },
            Action::RequireApproval { message } => Self::RequireApproval { message },
        }
    }
}
