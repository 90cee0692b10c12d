//! Reading `[action]` or `[[actions]]`.

use std::ops::Range;

use dodona_plugin::reading::{Reading, nearest, to_json};
use serde_json::Value;
use toml::de::DeTable;

use super::action::{Action, ActionKind};
use super::read::{Found, known_word, needed, part, spot, strangers};
use super::rule::{Spot, Spots};
use super::trigger::Trigger;

/// The most actions of one rule.
const MOST: usize = 16;

const CATEGORIES: &[&str] = &["info", "warning", "error", "reminder"];
const PRIORITIES: &[&str] = &["low", "normal", "high", "critical"];
const MOMENTS: &[&str] = &["turn_start", "after_tool", "immediate"];
const LEVELS: &[&str] = &["debug", "info", "warning", "error"];

/// What the rule does, in order. Whatever is wrong is noted; what is left out then is not used.
pub(super) fn read<'t>(
    reading: &mut Reading<'t>,
    whole: &DeTable<'t>,
    trigger: Option<Trigger>,
    spots: &mut Spots,
) -> Vec<Action> {
    let found = match (part(whole, "action"), part(whole, "actions")) {
        (Some(one), None) => vec![one],
        (None, Some(many)) => match many.get_ref().as_array() {
            Some(list) if list.is_empty() => {
                reading.fault(
                    many.span(),
                    "`actions` is empty; a rule needs at least one action",
                );
                return Vec::new();
            }
            Some(list) if list.len() > MOST => {
                let message = format!("a rule can have at most {MOST} actions, not {}", list.len());
                reading.fault(many.span(), message);
                return Vec::new();
            }
            Some(list) => list.iter().collect(),
            None => {
                reading.expected("actions", "written as `[[actions]]`", many);
                return Vec::new();
            }
        },
        (Some(_), Some(second)) => {
            let message = "use either `[action]` or `[[actions]]`, not both";
            reading.fault_with(second.span(), message, "write each as `[[actions]]`");
            return Vec::new();
        }
        (None, None) => {
            let hint = "add `[action]` with a `type`";
            reading.fault_with(0..0, "missing table `[action]`", hint);
            return Vec::new();
        }
    };
    let mut actions = Vec::new();
    for found in found {
        let Some(table) = reading.table("action", found) else {
            continue;
        };
        let mut texts = Vec::new();
        if let Some(action) = one(reading, table, found.span(), trigger, &mut texts) {
            actions.push(action);
            spots.actions.push(texts);
        }
    }
    actions
}

/// One action, and where its texts stand.
fn one<'t>(
    reading: &mut Reading<'t>,
    table: &DeTable<'t>,
    span: Range<usize>,
    trigger: Option<Trigger>,
    texts: &mut Vec<(String, Spot)>,
) -> Option<Action> {
    let found = needed(reading, table, "action", "type", &span)?;
    let kind = kind(reading, found)?;
    strangers(reading, table, kind.keys());
    for key in ["message", "value", "payload"] {
        if let Some(found) = part(table, key) {
            texts.push((key.to_owned(), spot(reading, found.span())));
        }
    }
    let action = match kind {
        ActionKind::NotifySelf => {
            let message = message(reading, table, &span);
            let category = choice(reading, table, "category", CATEGORIES);
            let priority = choice(reading, table, "priority", PRIORITIES);
            let deliver_at = choice(reading, table, "deliver_at", MOMENTS);
            Action::NotifySelf {
                message: message?,
                category: category.unwrap_or_default(),
                priority: priority.unwrap_or_default(),
                deliver_at: deliver_at.unwrap_or_default(),
            }
        }
        ActionKind::Log => {
            let message = part(table, "message").map(|found| reading.text("message", found));
            let level = choice(reading, table, "level", LEVELS);
            Action::Log {
                message: message.unwrap_or_else(|| Some(super::action::triggered()))?,
                level: level.unwrap_or_default(),
            }
        }
        ActionKind::SetState => {
            let key = needed(reading, table, "action", "key", &span)
                .and_then(|found| reading.text("key", found));
            let value = json(reading, table, "value");
            Action::SetState { key: key?, value }
        }
        ActionKind::EmitEvent => {
            let event_type = needed(reading, table, "action", "event_type", &span)
                .and_then(|found| reading.text("event_type", found));
            let payload = json(reading, table, "payload");
            Action::EmitEvent {
                event_type: event_type?,
                payload,
            }
        }
        ActionKind::Deny => Action::Deny {
            message: message(reading, table, &span)?,
        },
        ActionKind::RequireApproval => Action::RequireApproval {
            message: message(reading, table, &span)?,
        },
    };
    fits(reading, table, found, &action, trigger).then_some(action)
}

fn kind(reading: &mut Reading<'_>, found: Found<'_, '_>) -> Option<ActionKind> {
    let name = reading.text("type", found)?;
    if let Some((_, kind)) = ActionKind::ALL.iter().find(|(known, _)| *known == name) {
        return Some(*kind);
    }
    let names = ActionKind::ALL.map(|(name, _)| name);
    let hint = match nearest(&name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", names.join(", ")),
    };
    reading.fault_with(found.span(), format!("unknown action `{name}`"), hint);
    None
}

/// Checks whether the action is allowed for the trigger, and reports a problem at its position.
fn fits<'t>(
    reading: &mut Reading<'t>,
    table: &DeTable<'t>,
    kind: Found<'_, 't>,
    action: &Action,
    trigger: Option<Trigger>,
) -> bool {
    // Without a trigger nothing is said about what goes with it: that it is missing is said.
    let Some(why) = action.fault(trigger.unwrap_or(Trigger::OnToolCall)) else {
        return true;
    };
    let key = why.split('`').nth(1).unwrap_or_default();
    let span = part(table, key).unwrap_or(kind).span();
    reading.fault(span, why);
    false
}

fn message<'t>(
    reading: &mut Reading<'t>,
    table: &DeTable<'t>,
    span: &Range<usize>,
) -> Option<String> {
    let found = needed(reading, table, "action", "message", span)?;
    reading.text("message", found)
}

fn choice<T: serde::de::DeserializeOwned + Copy>(
    reading: &mut Reading<'_>,
    table: &DeTable<'_>,
    key: &str,
    words: &[&'static str],
) -> Option<T> {
    part(table, key).and_then(|found| known_word(reading, key, found, words))
}

/// Any value; null if it is missing.
fn json(reading: &mut Reading<'_>, table: &DeTable<'_>, key: &str) -> Value {
    let Some(found) = part(table, key) else {
        return Value::Null;
    };
    to_json(found.get_ref()).unwrap_or_else(|why| {
        reading.fault(found.span(), format!("in `{key}`, {why}"));
        Value::Null
    })
}
