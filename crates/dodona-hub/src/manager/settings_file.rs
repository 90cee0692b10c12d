//! A plugin's own file of settings.

use std::path::Path;

use dodona_plugin::manifest::Code;
use dodona_plugin::reading::{Problem, Reading, nearest, table_to_json, to_json};
use dodona_plugin::{Manifest, Settings};
use serde_json::{Map, Value};

use super::files;

/// The table about an MCP server, which stands beside what its manifest declares.
const SERVER: &str = "server";

/// What a plugin's file says: as it is, and the declared settings in it, checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SettingsFile {
    pub(crate) raw: Map<String, Value>,
    pub(crate) values: Map<String, Value>,
}

/// Reads a plugin's file; one that is not there says nothing. Where the plugin declares
/// settings, the file holds those and nothing else.
pub(crate) fn read(path: &Path, manifest: &Manifest) -> Result<SettingsFile, Vec<Problem>> {
    let beside = matches!(manifest.code, Some(Code::Process { .. })).then_some(SERVER);
    let shown = path.display().to_string();
    match files::read(path) {
        Ok(None) => Ok(SettingsFile::default()),
        Ok(Some(text)) => parse(&shown, &text, &manifest.settings, beside),
        Err(why) => Err(vec![Problem::of_file(shown, why)]),
    }
}

fn parse(
    path: &str,
    text: &str,
    declared: &Settings,
    beside: Option<&str>,
) -> Result<SettingsFile, Vec<Problem>> {
    let mut reading = Reading::new(path, text);
    let Some(table) = reading.parse() else {
        return Err(reading.into_problems());
    };
    let mut configured = SettingsFile::default();
    match table_to_json(&table) {
        Ok(raw) => configured.raw = raw,
        Err(why) => reading.fault(0..0, why),
    }
    for (key, value) in &table {
        let name = key.get_ref().as_ref();
        let Some(setting) = declared.get(name) else {
            if !declared.is_empty() && beside != Some(name) {
                unknown(&mut reading, key.span(), name, declared);
            }
            continue;
        };
        match to_json(value.get_ref()).and_then(|json| setting.check(&json)) {
            Ok(value) => {
                configured.values.insert(name.to_owned(), value);
            }
            Err(why) => reading.fault(value.span(), format!("`{name}` {why}")),
        }
    }
    match reading.count() {
        0 => Ok(configured),
        _ => Err(reading.into_problems()),
    }
}

fn unknown(
    reading: &mut Reading<'_>,
    span: std::ops::Range<usize>,
    name: &str,
    declared: &Settings,
) {
    let hint = match nearest(name, declared.keys()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let names: Vec<&str> = declared.keys().map(String::as_str).collect();
            format!("there is {}", names.join(", "))
        }
    };
    reading.fault_with(span, format!("unknown setting `{name}`"), hint);
}

#[cfg(test)]
mod tests {
    use super::*;
    use dodona_plugin::{Setting, SettingKind};
    use serde_json::json;

    fn declared() -> Settings {
        let most = Setting::new(SettingKind::Integer, 10, "").within(1.0, 50.0);
        Settings::from([("max_sources".to_owned(), most)])
    }

    #[test]
    fn declared_settings_are_checked_and_others_refused() {
        let read = parse("x.toml", "max_sources = 20", &declared(), None).unwrap();
        assert_eq!(json!(read.values), json!({"max_sources": 20}));
        let text = "max_source = 20\nmax_sources = 99\n";
        let problems = parse("x.toml", text, &declared(), None).unwrap_err();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "x.toml:1:1: unknown setting `max_source` (did you mean `max_sources`?)",
                "x.toml:2:15: `max_sources` must be at most 50, not 99",
            ]
        );
    }

    #[test]
    fn what_is_set_about_a_server_stands_beside_the_settings() {
        let text = "max_sources = 20\n[server]\ntimeout = \"5s\"\n";
        assert!(parse("x.toml", text, &declared(), Some(SERVER)).is_ok());
        assert!(parse("x.toml", text, &declared(), None).is_err());
    }

    #[test]
    fn a_plugin_that_declares_nothing_gets_its_file_as_it_is() {
        let read = parse("x.toml", "[deep]\nkey = [1, 2]", &Settings::new(), None).unwrap();
        assert_eq!(json!(read.raw), json!({"deep": {"key": [1, 2]}}));
        assert!(read.values.is_empty());
    }
}
