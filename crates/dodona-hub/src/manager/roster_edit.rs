//! Changing the roster, where a user asks for it and nowhere else.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use dodona_plugin::Capability;
use dodona_proto::PluginName;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value, value};

/// What to change about a plugin.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Whether it is to be active.
    Enabled(bool),
    /// What it may do, in addition.
    Grant(Vec<Capability>),
    /// What it may no longer do.
    Revoke(Vec<Capability>),
    /// That there is one.
    Add,
    /// Remove the entry of the plugin.
    Remove,
}

/// A plugin as the roster would name it.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) name: PluginName,
    pub(crate) module: String,
    pub(crate) class: Option<String>,
}

/// The roster with a change; comments, order and everything else stay as they are.
pub(crate) fn changed(text: &str, subject: &Subject, change: &Change) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|_| "it is not valid TOML; correct it first".to_owned())?;
    if matches!(change, Change::Remove) {
        remove(&mut document, subject)?;
        return Ok(document.to_string());
    }
    let entry = entry(&mut document, subject)?;
    match change {
        Change::Add | Change::Remove => {}
        Change::Enabled(enabled) => set(entry, "enabled", (*enabled).into()),
        Change::Grant(capabilities) => {
            let granted = granted(entry)?;
            for capability in capabilities {
                let text = capability.to_string();
                if !granted.iter().any(|known| known.as_str() == Some(&text)) {
                    granted.push(text);
                }
            }
        }
        Change::Revoke(capabilities) => {
            let texts: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
            let revoked = |known: &Value| {
                let known = known.as_str().unwrap_or_default();
                texts.iter().any(|text| text == known)
            };
            granted(entry)?.retain(|known| !revoked(known));
        }
    }
    Ok(document.to_string())
}

/// The plugin's entry, created if it is missing.
fn entry<'d>(
    document: &'d mut DocumentMut,
    subject: &Subject,
) -> Result<&'d mut dyn TableLike, String> {
    // What stands at the end of the file stays above what is added.
    let last = document.trailing().as_str().unwrap_or_default().to_owned();
    let is_new = !has(document, subject);
    if is_new {
        document.set_trailing("");
    }
    let mut plugins = Table::new();
    // Without keys of its own it needs no header.
    plugins.set_implicit(true);
    let plugins = document.entry("plugin").or_insert(Item::Table(plugins));
    let plugins = plugins
        .as_table_like_mut()
        .ok_or_else(|| "`plugin` is not a table; correct it first".to_owned())?;
    let name = subject.name.as_str();
    if is_new {
        let mut entry = Table::new();
        if !last.is_empty() {
            entry.decor_mut().set_prefix(format!("{last}\n"));
        }
        entry.insert("enabled", value(true));
        entry.insert("module", value(&subject.module));
        if let Some(class) = &subject.class {
            entry.insert("class", value(class));
        }
        plugins.insert(name, Item::Table(entry));
    }
    let entry = plugins.get_mut(name).and_then(Item::as_table_like_mut);
    entry.ok_or_else(|| format!("`plugin.{name}` is not a table; correct it first"))
}

/// Takes the plugin's entry out.
fn remove(document: &mut DocumentMut, subject: &Subject) -> Result<(), String> {
    let name = subject.name.as_str();
    let plugins = document.get_mut("plugin").and_then(Item::as_table_like_mut);
    match plugins.and_then(|plugins| plugins.remove(name)) {
        Some(_) => Ok(()),
        None => Err(format!("it has no entry `[plugin.{name}]`")),
    }
}

fn has(document: &DocumentMut, subject: &Subject) -> bool {
    let plugins = document.get("plugin").and_then(Item::as_table_like);
    plugins.is_some_and(|plugins| plugins.contains_key(subject.name.as_str()))
}

/// Sets a key and keeps the comment behind it.
fn set(entry: &mut dyn TableLike, key: &str, mut new: Value) {
    match entry.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        None => {
            entry.insert(key, value(new));
        }
    }
}

fn granted(entry: &mut dyn TableLike) -> Result<&mut Array, String> {
    let list = entry.entry("capabilities").or_insert(value(Array::new()));
    list.as_array_mut()
        .ok_or_else(|| "`capabilities` is not a list; correct it first".to_owned())
}

/// Writes a file in place of the old one, whole or not at all, and with the same permissions.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    // The file itself, where the usual name is a link to it.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // Who has configured nothing so far has no directory for it.
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let new = path.with_extension("toml.new");
    let mut file = fs::File::create(&new)?;
    if let Ok(old) = fs::metadata(&path) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Subject {
        Subject {
            name: PluginName::new(name).unwrap(),
            module: format!("builtin:{name}"),
            class: None,
        }
    }

    const ROSTER: &str = "# mine\n[plugin.b] # second\nenabled = true # yes\nmodule = \"builtin:b\"\n\n[plugin.a]\nenabled = true\nmodule = \"dir:x\"\ncapabilities = [\n  \"prompt\", # needed\n]\n";

    #[test]
    fn comments_and_order_stay() {
        let text = changed(ROSTER, &subject("b"), &Change::Enabled(false)).unwrap();
        assert_eq!(text, ROSTER.replace("true # yes", "false # yes"));
        let grant = Change::Grant(vec![Capability::Prompt, Capability::LlmIo]);
        let text = changed(ROSTER, &subject("a"), &grant).unwrap();
        assert!(text.starts_with("# mine\n[plugin.b] # second"), "{text}");
        assert!(
            text.contains("# needed") && text.contains("\"llm_io\""),
            "{text}"
        );
        assert_eq!(text.matches("\"prompt\"").count(), 1);
        let back = changed(
            &text,
            &subject("a"),
            &Change::Revoke(vec![Capability::LlmIo]),
        );
        assert!(!back.unwrap().contains("llm_io"));
    }

    #[test]
    fn an_entry_is_made_where_there_is_none() {
        let entry = "[plugin.echo]\nenabled = false\nmodule = \"builtin:echo\"\n";
        for before in ["", "# mine\n", "[plugin.a]\nenabled = true\n# the end\n"] {
            let text = changed(before, &subject("echo"), &Change::Enabled(false)).unwrap();
            let gap = if before.is_empty() { "" } else { "\n" };
            assert_eq!(text, format!("{before}{gap}{entry}"));
        }
    }

    #[test]
    fn an_entry_is_taken_out_and_the_others_stay() {
        let text = changed(ROSTER, &subject("b"), &Change::Remove).unwrap();
        assert!(
            text.starts_with("# mine") || text.contains("[plugin.a]"),
            "{text}"
        );
        assert!(!text.contains("plugin.b"), "{text}");
        let added = changed(&text, &subject("c"), &Change::Add).unwrap();
        assert!(
            added.ends_with("[plugin.c]\nenabled = true\nmodule = \"builtin:c\"\n"),
            "{added}"
        );
        assert!(changed(&text, &subject("b"), &Change::Remove).is_err());
    }

    #[test]
    fn what_cannot_be_changed_safely_is_left_alone() {
        for text in ["[plugin", "plugin = 3", "plugin.echo = 3"] {
            let why = changed(text, &subject("echo"), &Change::Enabled(true)).unwrap_err();
            assert!(why.contains("correct it first"), "{why}");
        }
    }
}
