//! The hooks of the plugin `steward`, one function each.

use std::sync::Arc;

use dodona_plugin::PluginSettings;
use dodona_plugin::hooks::point::{
    DaemonServerRegister, PostToolExecute, PreToolExecute, SystemPromptExtend, ToolRegistryBuild,
    TurnCompleted,
};
use dodona_plugin::hooks::{Hook, HookFailure, Reply};
use dodona_proto::hook::{PromptEdit, ResultEdit, ServerRoute, ToolAddition, ToolEnding, Verdict};
use dodona_proto::{Category, Effect, MethodName, Notification};
use serde_json::Value;

use super::plugin::Steward;

/// The setting that names the folder nothing may touch.
pub(crate) const CLOSED_FOLDER: &str = "closed_folder";

/// What stands in the place of an address.
pub(crate) const HIDDEN: &str = "[address]";

/// **Chain**, inline: adds a paragraph to the system prompt.
pub(crate) fn house_rules() -> Hook {
    Hook::inline::<SystemPromptExtend>(|_| {
        let rules = "House rules: name the file before you quote it.";
        Ok(Reply::edit(PromptEdit::Append(rules.to_owned())))
    })
    .named("house rules")
}

/// **Collect**, inline: offers the plugin's method to every agent, not only to its own.
pub(crate) fn offer_diary() -> Hook {
    Hook::inline::<ToolRegistryBuild>(|table| {
        let method = diary()?;
        if table.methods.contains(&method) {
            return Ok(Reply::none());
        }
        let description = Some("How many turns were taken so far, with how many tools.".to_owned());
        Ok(Reply::edit(vec![ToolAddition {
            method,
            description,
        }]))
    })
    .named("offer the diary")
}

/// **Gate**, inline: nothing touches what lies in the folder that the setting names. Should this
/// fail, nothing runs at all.
pub(crate) fn close_folder(settings: PluginSettings) -> Hook {
    Hook::inline::<PreToolExecute>(move |call| {
        let closed: String = settings
            .get(&call.user, CLOSED_FOLDER)
            .ok_or_else(|| HookFailure::new("the setting has no value"))?;
        let mut asked = false;
        each_text(&call.arguments, &mut |text| {
            let below = text.strip_prefix(closed.as_str());
            asked |= below.is_some_and(|rest| rest.starts_with('/'));
        });
        Ok(match asked {
            true => Reply::edit(Verdict::Deny(format!("the folder `{closed}` is closed"))),
            false => Reply::none(),
        })
    })
    .named("close a folder")
    .priority(10)
    .fail_closed()
}

/// **Transform**, inline: takes mail addresses out of what tools found.
pub(crate) fn hide_addresses() -> Hook {
    Hook::inline::<PostToolExecute>(|ended| {
        if ended.ending != ToolEnding::Success {
            return Ok(Reply::none());
        }
        let mut result = ended.result.clone();
        hide(&mut result);
        Ok(match result == ended.result {
            true => Reply::none(),
            false => Reply::edit(ResultEdit { result }),
        })
    })
    .named("hide addresses")
}

/// **Observe**, async: writes to the plugin's database, and tells the agent when room gets short.
pub(crate) fn write_diary(steward: Arc<Steward>) -> Hook {
    Hook::waiting::<TurnCompleted, _>(move |turn| {
        let steward = Arc::clone(&steward);
        async move {
            let snapshot = &turn.snapshot;
            let noted = steward.note(
                snapshot.query_id.clone(),
                snapshot.turn.number,
                turn.tool_calls as u64,
            );
            noted
                .await
                .map_err(|error| HookFailure::new(error.to_string()))?;
            if snapshot.turn.token_usage <= 0.8 || turn.is_last {
                return Ok(Reply::none());
            }
            Ok(Reply::none().effect(Effect::NotifySelf(Notification {
                category: Category::Reminder,
                ..Notification::new("The conversation is getting long: come to an answer.")
            })))
        }
    })
    .named("write the diary")
}

/// **Collect**, inline: the method answers at `/plugins/steward/diary` too.
pub(crate) fn serve_diary() -> Hook {
    Hook::inline::<DaemonServerRegister>(|_| {
        let path = "diary".to_owned();
        let method = diary()?;
        Ok(Reply::edit(vec![ServerRoute { path, method }]))
    })
    .named("serve the diary")
}

fn diary() -> Result<MethodName, HookFailure> {
    MethodName::new("steward.diary").map_err(|error| HookFailure::new(error.to_string()))
}

/// Looks at every text in a value.
fn each_text(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => look(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, look)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, look)),
        _ => {}
    }
}

/// Takes addresses out of every text in a value.
fn hide(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('@') => *text = without_addresses(text),
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Object(fields) => fields.values_mut().for_each(hide),
        _ => {}
    }
}

fn without_addresses(text: &str) -> String {
    let is_address = |word: &str| {
        word.split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
    };
    let words = text.split(' ').map(|word| match is_address(word) {
        true => HIDDEN,
        false => word,
    });
    words.collect::<Vec<_>>().join(" ")
}
