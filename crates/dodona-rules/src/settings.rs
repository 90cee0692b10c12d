//! Settings that rules can read: `[settings]` in the user's `config.toml` and in a project's
//! `.dodona/config.toml`.
//!
//! Rules read the user's as `context.user.settings` and a project's as `context.project.settings`.
//! The two are never merged: a project cannot change what the user's rules decide by, unless such a
//! rule asks for the project's settings.

use std::ops::Range;

use dodona_plugin::reading::{self, Place, Reading, nearest};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Problem;

/// The table in `config.toml`.
pub const TABLE: &str = "settings";

/// The most settings in one file.
pub const MAX_SETTINGS: usize = 200;

/// The longest text, in bytes.
const MAX_TEXT: usize = 4_096;

/// The most entries of a list.
const MAX_ENTRIES: usize = 1_000;

const MAX_NAME: usize = 64;

/// The key of `context.user.settings` that holds what the user set for plugins.
pub(crate) const PLUGINS: &str = "plugins";

/// Checks the name and the value of a setting. The error says what is expected.
pub fn check(name: &str, value: &Value) -> Result<(), String> {
    check_name(name)?;
    match value {
        Value::Array(entries) if entries.len() > MAX_ENTRIES => {
            Err(format!("expected at most {MAX_ENTRIES} entries"))
        }
        Value::Array(entries) => entries.iter().try_for_each(check_scalar),
        other => check_scalar(other),
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
    let is_word = (1..=MAX_NAME).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(fits);
    if !is_word {
        return Err(format!(
            "invalid name `{name}`: use lower-case letters, digits and `_`, starting with a letter"
        ));
    }
    match name {
        // Conditions could not read it as a field.
        "get" | "has" | "keys" | "values" | "items" | "copy" => {
            Err(format!("`{name}` is the name of a method"))
        }
        PLUGINS => Err(format!("`{PLUGINS}` is reserved")),
        _ => Ok(()),
    }
}

fn check_scalar(value: &Value) -> Result<(), String> {
    match value {
        Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) if text.len() <= MAX_TEXT => Ok(()),
        Value::String(_) => Err(format!("expected at most {MAX_TEXT} bytes")),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err("expected a boolean, a number, a string, or a list of these".to_owned())
        }
    }
}

/// The settings in the text of a `config.toml`, and what is wrong with them. A text that is not
/// TOML has none and no problem: the program reports it when it reads the rest of the file.
pub fn parse(path: &str, text: &str) -> Option<(Map<String, Value>, Vec<reading::Problem>)> {
    let mut reading = Reading::new(path, text);
    let table = DeTable::parse(text).ok()?.into_inner();
    let mut values = Map::new();
    let Some(settings) = table.get(TABLE) else {
        return Some((values, Vec::new()));
    };
    let Some(settings) = reading.table(TABLE, settings) else {
        return Some((values, reading.into_problems()));
    };
    for (key, value) in settings {
        let name = key.get_ref();
        if values.len() >= MAX_SETTINGS {
            let message = format!("there are more than {MAX_SETTINGS} settings");
            reading.fault(key.span(), message);
            break;
        }
        match read(name, value) {
            Ok(read) => drop(values.insert(name.to_string(), read)),
            Err(expected) => {
                let message = format!("`{TABLE}.{name}`: {expected}");
                reading.fault(value.span(), message);
            }
        }
    }
    Some((values, reading.into_problems()))
}

fn read(name: &str, value: &Spanned<DeValue<'_>>) -> Result<Value, String> {
    if let DeValue::Datetime(_) = value.get_ref() {
        return Err("expected a string: put the date in quotes".to_owned());
    }
    let json = reading::to_json(value.get_ref())?;
    check(name, &json)?;
    Ok(json)
}

/// Whether the settings of a project are in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingsState {
    /// The project has no settings.
    #[default]
    Absent,
    /// The settings are in force.
    Trusted,
    /// Ignored, because the project or its `config.toml` is not trusted in its current form.
    Untrusted,
}

/// Which settings a condition reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsOwner {
    /// `context.user.settings`
    User,
    /// `context.project.settings`
    Project,
}

impl SettingsOwner {
    /// The settings at a path of the context.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path {
            "context.user.settings" => Some(Self::User),
            "context.project.settings" => Some(Self::Project),
            _ => None,
        }
    }

    /// As conditions write it.
    pub fn path(self) -> &'static str {
        match self {
            Self::User => "context.user.settings",
            Self::Project => "context.project.settings",
        }
    }
}

/// A setting that the condition of a rule reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRead {
    pub owner: SettingsOwner,
    pub name: String,
    /// Whether the rule fails where it is missing. It does not with `get` and `in`.
    pub is_required: bool,
    /// Where the condition reads it.
    pub place: Place,
}

impl SettingRead {
    /// A read at a span of a rule's text.
    pub(crate) fn new(
        reading: &Reading<'_>,
        owner: SettingsOwner,
        key: dodona_expr::KeyRead,
        span: Range<usize>,
    ) -> Self {
        Self {
            owner,
            name: key.key,
            is_required: key.is_required,
            place: reading.place(span),
        }
    }

    /// The problem where the setting is not declared. A setting that has a default in the condition
    /// may be missing; it is reported where a declared name is so near that it was probably meant.
    fn undeclared(&self, path: &str, declared: &Map<String, Value>) -> Option<Problem> {
        let name = &self.name;
        let is_known =
            declared.contains_key(name) || (self.owner == SettingsOwner::User && name == PLUGINS);
        if is_known {
            return None;
        }
        let near = nearest(name, declared.keys().map(String::as_str));
        if near.is_none() && !self.is_required {
            return None;
        }
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let project = match self.owner {
                    SettingsOwner::User => "",
                    SettingsOwner::Project => " --project",
                };
                format!(
                    "declare it with `dodona config set settings.{name} VALUE{project}`, or read it with `get('{name}', DEFAULT)`"
                )
            }
        };
        Some(Problem::warning(reading::Problem {
            path: path.to_owned(),
            place: Some(self.place.clone()),
            message: format!("`{}` has no setting `{name}`", self.owner.path()),
            hint: Some(hint),
        }))
    }
}

/// The settings that are declared here. `None` where nothing is declared, so that nothing can be
/// checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Declared<'s> {
    pub user: Option<&'s Map<String, Value>>,
    pub project: Option<&'s Map<String, Value>>,
}

impl<'s> Declared<'s> {
    /// Those that have at least one entry.
    pub fn of(user: &'s Map<String, Value>, project: &'s Map<String, Value>) -> Self {
        let known = |settings: &'s Map<String, Value>| Some(settings).filter(|one| !one.is_empty());
        Self {
            user: known(user),
            project: known(project),
        }
    }

    /// The settings that a rule reads and that are not declared.
    pub fn problems(&self, rule: &crate::CompiledRule) -> Vec<Problem> {
        let problem = |read: &SettingRead| {
            let declared = match read.owner {
                SettingsOwner::User => self.user,
                SettingsOwner::Project => self.project,
            };
            read.undeclared(&rule.origin.path, declared?)
        };
        rule.settings_read.iter().filter_map(problem).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_keep_their_types() {
        let text = "other = 1\n[settings]\nstrict = true\nmost = 5\nshare = 0.5\n\
                    language = \"de\"\nfolders = [\"a\", \"b\"]\n";
        let (values, problems) = parse("config.toml", text).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        let expected = json!({ "strict": true, "most": 5, "share": 0.5, "language": "de",
            "folders": ["a", "b"] });
        assert_eq!(Value::Object(values), expected);
    }

    #[test]
    fn invalid_settings_are_reported_with_their_place_and_left_out() {
        let text = "[settings]\ngood = 1\nbad = { a = 1 }\nwhen = 2026-01-01\nget = 1\n\
                    plugins = 1\n\"A b\" = 1\nbig = 99999999999999999999\nnested = [[1]]\n";
        let (values, problems) = parse("config.toml", text).unwrap();
        assert_eq!(values.keys().collect::<Vec<_>>(), ["good"]);
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let expected = [
            "config.toml:3:7: `settings.bad`: expected a boolean, a number, a string, or a list",
            "config.toml:4:8: `settings.when`: expected a string: put the date in quotes",
            "config.toml:5:7: `settings.get`: `get` is the name of a method",
            "config.toml:6:11: `settings.plugins`: `plugins` is reserved",
            "config.toml:7:9: `settings.A b`: invalid name `A b`",
            "config.toml:8:7: `settings.big`: 99999999999999999999 is too large",
            "config.toml:9:10: `settings.nested`: expected a boolean",
        ];
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(expected), "{line}\n{expected}");
        }
    }

    #[test]
    fn a_table_that_is_none_is_one_problem() {
        let (values, problems) = parse("config.toml", "settings = 3").unwrap();
        assert!(values.is_empty());
        assert_eq!(problems.len(), 1);
        assert!(parse("config.toml", "[settings").is_none());
    }
}
