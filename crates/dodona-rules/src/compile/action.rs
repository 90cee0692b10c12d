//! The texts of actions, compiled, and actions made of them.

use std::ops::Range;

use dodona_plugin::reading::Reading;
use dodona_proto::{Effect, Notification};
use dodona_template::{Limits, Memo, Object, Template, TemplateError};
use serde_json::{Map, Value};

use crate::engine::Decision;
use crate::format::{Action, Rule, Spot, within};

/// How large a text of a rule may be, and what it may cost.
const LIMITS: Limits = Limits::message();

/// An action whose texts are compiled.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// As the file has it; its texts are the templates' sources.
    action: Action,
    /// Its message, value or payload.
    pattern: Pattern,
}

/// A value with templates in the places of texts.
#[derive(Debug)]
enum Pattern {
    Fixed(Value),
    Text(Box<Template>),
    List(Vec<Pattern>),
    Table(Vec<(String, Pattern)>),
}

/// Compiles the actions of a rule. Every template that is wrong is told, with its place.
pub(super) fn prepare(rule: &Rule, text: &str, errors: &mut Reading<'_>) -> Option<Vec<Prepared>> {
    let mut prepared = Vec::new();
    for (action, spots) in rule.actions.iter().zip(&rule.spots.actions) {
        let spot = |key: &str| {
            let found = spots.iter().find(|(known, _)| known == key);
            found.map(|(_, spot)| spot.clone()).unwrap_or_default()
        };
        let mut compiler = Compiler { text, errors };
        let pattern = match action {
            Action::NotifySelf { message, .. }
            | Action::Log { message, .. }
            | Action::Deny { message }
            | Action::RequireApproval { message } => compiler.text(message, &spot("message")),
            Action::SetState { value, .. } => compiler.value(value, &spot("value")),
            Action::EmitEvent { payload, .. } => compiler.value(payload, &spot("payload")),
        };
        if let Some(pattern) = pattern {
            let action = action.clone();
            prepared.push(Prepared { action, pattern });
        }
    }
    (prepared.len() == rule.actions.len()).then_some(prepared)
}

struct Compiler<'c, 'r, 't> {
    text: &'t str,
    errors: &'c mut Reading<'r>,
}

impl Compiler<'_, '_, '_> {
    fn text(&mut self, source: &str, spot: &Spot) -> Option<Pattern> {
        match Template::compile(source, &LIMITS) {
            Ok(template) => Some(Pattern::Text(Box::new(template))),
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
            Value::String(source) => self.text(source, spot)?,
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
    /// The text of a message.
    fn render(&self, page: &dyn Object, memo: &mut Memo) -> Result<String, TemplateError> {
        match self {
            Self::Text(template) => template.render_with(page, &LIMITS, memo),
            _ => Ok(String::new()),
        }
    }

    /// A value; a text that is one `{{ expression }}` has the expression's type.
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

impl Prepared {
    /// The action with its texts rendered.
    pub(crate) fn render(
        &self,
        page: &dyn Object,
        memo: &mut Memo,
    ) -> Result<Decision, TemplateError> {
        let action = match &self.action {
            Action::NotifySelf {
                category,
                priority,
                deliver_at,
                ..
            } => Action::NotifySelf {
                message: self.pattern.render(page, memo)?,
                category: *category,
                priority: *priority,
                deliver_at: *deliver_at,
            },
            Action::Log { level, .. } => Action::Log {
                message: self.pattern.render(page, memo)?,
                level: *level,
            },
            Action::SetState { key, .. } => Action::SetState {
                key: key.clone(),
                value: self.pattern.evaluate(page)?,
            },
            Action::EmitEvent { event_type, .. } => Action::EmitEvent {
                event_type: event_type.clone(),
                payload: self.pattern.evaluate(page)?,
            },
            Action::Deny { .. } => Action::Deny {
                message: self.pattern.render(page, memo)?,
            },
            Action::RequireApproval { .. } => Action::RequireApproval {
                message: self.pattern.render(page, memo)?,
            },
        };
        Ok(Decision::from(action))
    }
}

impl From<Action> for Decision {
    /// What an action comes to once its texts are what they are.
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
