//! `dodona plugins info`.

use std::fmt::Write as _;

use serde_json::Value;

use crate::paint::{Paint, one_line};

/// The keys in the order in which they are told, and what stands before them.
const PLAIN: [(&str, &str); 7] = [
    ("display_name", "name"),
    ("description", "about"),
    ("module", "module"),
    ("class", "class"),
    ("directory", "directory"),
    ("config_file", "settings in"),
    ("reason", "reason"),
];

const LISTS: [(&str, &str); 6] = [
    ("needs", "needs"),
    ("requires", "requires"),
    ("uses", "uses"),
    ("methods", "methods"),
    ("hooks", "hooks"),
    ("rules", "rules"),
];

/// What there is to know, a line for each thing.
pub(super) fn words(info: &Value, paint: Paint) -> String {
    let mut text = String::new();
    let shown = |key: &str| info[key].as_str().map(one_line).unwrap_or_default();
    let (name, version, state) = (shown("name"), shown("version"), shown("state"));
    let _ = writeln!(text, "{} {version}  {state}", paint.bold(name));
    let mut line = |label: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "{}{value}", paint.dim(format!("{label:13}")));
        }
    };
    for (key, label) in PLAIN {
        line(label, &shown(key));
    }
    for (key, label) in LISTS {
        let items = info[key].as_array().into_iter().flatten();
        let items: Vec<String> = items.filter_map(Value::as_str).map(one_line).collect();
        line(label, &items.join(", "));
    }
    let granted = match info["granted"].as_array() {
        None => "everything".to_owned(),
        Some(these) if these.is_empty() => "nothing".to_owned(),
        Some(these) => {
            let these: Vec<&str> = these.iter().filter_map(Value::as_str).collect();
            one_line(&these.join(", "))
        }
    };
    line("granted", &granted);
    for (name, setting) in info["settings"].as_object().into_iter().flatten() {
        line("setting", &setting_words(name, setting));
    }
    for warning in info["warnings"].as_array().into_iter().flatten() {
        line("warning", &one_line(warning.as_str().unwrap_or_default()));
    }
    text
}

fn setting_words(name: &str, setting: &Value) -> String {
    let own = match setting["own"].as_bool() {
        Some(true) => " (your own)",
        _ => "",
    };
    let about = setting["description"].as_str().unwrap_or_default();
    let words = format!("{name} = {}{own} · {about}", setting["value"]);
    one_line(&words)
}
