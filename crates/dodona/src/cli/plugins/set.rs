//! `dodona plugins set` and `unset`.

use dodona_plugin::SettingKind;
use serde_json::{Map, Value, json};

use super::{Done, Form, answer};
use crate::failure::Failure;
use crate::session::Session;

/// Chooses a value for the caller, or lets the common one hold again.
pub(super) async fn set(
    session: &Session,
    plugin: &str,
    setting: &str,
    value: Option<&str>,
    form: Form,
) -> Result<Done, Failure> {
    let mut params = json!({ "plugin": plugin, "setting": setting });
    let method = match value {
        Some(text) => {
            params["value"] = read(text, kind(session, plugin, setting).await?);
            "plugins.set"
        }
        None => "plugins.unset",
    };
    let done: Value = answer(session, method, params).await?;
    let words = |done: &Value| {
        let none = Map::new();
        let settings = done["settings"].as_object().unwrap_or(&none);
        let lines = settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}\n"));
        lines.collect::<String>()
    };
    Ok(form.text(&done, |done, _| words(done)).into())
}

/// What the setting takes; none where there is no such setting, which the answer to `set` tells.
async fn kind(
    session: &Session,
    plugin: &str,
    setting: &str,
) -> Result<Option<SettingKind>, Failure> {
    let told: Value = answer(session, "plugins.settings", json!({ "plugin": plugin })).await?;
    let kind = &told["plugins"][plugin][setting]["type"];
    Ok(serde_json::from_value(kind.clone()).ok())
}

/// A text is taken as it stands; anything else as JSON writes it.
fn read(text: &str, kind: Option<SettingKind>) -> Value {
    let as_text = || Value::from(text);
    match kind {
        Some(SettingKind::String) => as_text(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| as_text()),
    }
}
