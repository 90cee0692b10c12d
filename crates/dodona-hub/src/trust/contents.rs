//! What of a project's `.dodona/` would run, or steer an agent.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use dodona_plugin::manifest::Code;
use dodona_plugin::{Manifest, TrustedFolder, TrustedTexts, content_hash, reading, schema_hash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The folders below `.dodona/` that need trust.
const FOLDERS: [&str; 4] = ["agents", "plugins", "prompts", RULES];

/// The folder whose files are rules and their scripts.
const RULES: &str = "rules";

/// The file whose `[settings]` rules can read. Its other keys need no trust.
const CONFIG: &str = "config.toml";

/// Bounds of what is read.
const MOST_FILES: usize = 2_000;
const MOST_BYTES: u64 = 32 << 20;
const DEEPEST: usize = 8;

/// Where a project's own things are.
pub(crate) fn folder(root: &Path) -> PathBuf {
    root.join(".dodona")
}

/// Every file that needs trust, by its path below `.dodona/`, with the hash of its contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) files: BTreeMap<String, String>,
}

impl Contents {
    /// Reads them. Links are refused, because what they lead to can change unseen.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let (contents, _) = Self::keeping(root, None)?;
        Ok(contents)
    }

    /// Reads them, and keeps the texts of one folder as they were hashed.
    pub(crate) fn keeping(
        root: &Path,
        kept: Option<TrustedFolder>,
    ) -> Result<(Self, TrustedTexts), String> {
        let base = folder(root);
        if fs::symlink_metadata(&base).is_ok_and(|found| found.is_symlink()) {
            return Err("`.dodona` is a symbolic link, which cannot be trusted".to_owned());
        }
        let mut reading = Reading {
            base: &base,
            files: BTreeMap::new(),
            bytes_left: MOST_BYTES,
            kept: kept.map(|folder| format!("{}/", folder.as_str())),
            texts: TrustedTexts::new(),
        };
        for name in FOLDERS {
            reading.any(&base.join(name), DEEPEST)?;
        }
        if has_settings(&base.join(CONFIG)) {
            reading.any(&base.join(CONFIG), DEEPEST)?;
        }
        let files = reading.files;
        Ok((Self { files }, reading.texts))
    }

    /// Whether there is nothing to trust.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The same without the rules.
    pub(crate) fn without_rules(&self) -> Self {
        let files = self.files.iter().filter(|(path, _)| !is_rule_file(path));
        Self {
            files: files
                .map(|(path, hash)| (path.clone(), hash.clone()))
                .collect(),
        }
    }

    /// One hash for all of it.
    pub(crate) fn hash(&self) -> String {
        schema_hash(&json!(self.files))
    }
}

/// Whether a path below `.dodona/` is a rule's file, a script of one, or the settings of rules.
fn is_rule_file(path: &str) -> bool {
    let below = path.strip_prefix(RULES);
    path == CONFIG || below.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a `config.toml` has settings for rules. A link is not followed.
fn has_settings(file: &Path) -> bool {
    let is_file =
        fs::symlink_metadata(file).is_ok_and(|found| found.is_file() && found.len() <= MOST_BYTES);
    let text = is_file.then(|| fs::read_to_string(file).ok()).flatten();
    let text = text.unwrap_or_default();
    let table = reading::Reading::new(CONFIG, &text).parse();
    table.is_some_and(|table| table.contains_key("settings"))
}

struct Reading<'a> {
    base: &'a Path,
    files: BTreeMap<String, String>,
    bytes_left: u64,
    /// What the paths begin with of files that are kept, and their texts.
    kept: Option<String>,
    texts: TrustedTexts,
}

impl Reading<'_> {
    fn any(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let shown = path
            .strip_prefix(self.base)
            .unwrap_or(path)
            .display()
            .to_string();
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return Ok(());
        };
        if metadata.is_symlink() {
            return Err(format!(
                "`.dodona/{shown}` is a link, which cannot be trusted"
            ));
        }
        if metadata.is_file() {
            return self.file(path, shown);
        }
        if !metadata.is_dir() {
            return Err(format!(
                "`.dodona/{shown}` is neither a file nor a directory"
            ));
        }
        if depth == 0 {
            return Err(format!("`.dodona/{shown}` is nested too deeply"));
        }
        let entries = fs::read_dir(path).map_err(|error| format!("`.dodona/{shown}`: {error}"))?;
        let mut below: Vec<PathBuf> = Vec::new();
        for entry in entries.take(MOST_FILES + 1) {
            below.push(
                entry
                    .map_err(|error| format!("`.dodona/{shown}`: {error}"))?
                    .path(),
            );
        }
        below.sort();
        below.iter().try_for_each(|path| self.any(path, depth - 1))
    }

    fn file(&mut self, path: &Path, shown: String) -> Result<(), String> {
        if self.files.len() >= MOST_FILES {
            return Err(format!(
                "`.dodona/` has more than {MOST_FILES} files to trust"
            ));
        }
        let wrong = |error: std::io::Error| format!("`.dodona/{shown}` cannot be read: {error}");
        let mut bytes = Vec::new();
        let file = fs::File::open(path).map_err(wrong)?;
        let read = file.take(self.bytes_left + 1).read_to_end(&mut bytes);
        let length = read.map_err(wrong)? as u64;
        self.bytes_left = self
            .bytes_left
            .checked_sub(length)
            .ok_or_else(|| format!("`.dodona/` has more than {} MiB to trust", MOST_BYTES >> 20))?;
        let hash = content_hash(&bytes);
        let kept = self.kept.as_deref();
        if let Some(below) = kept.and_then(|kept| shown.strip_prefix(kept)) {
            let text =
                String::from_utf8(bytes).map_err(|_| format!("`.dodona/{shown}` is no text"))?;
            self.texts.insert(below.to_owned(), text);
        }
        self.files.insert(shown, hash);
        Ok(())
    }
}

/// What a thing in `.dodona/` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemKind {
    /// A plugin with a script: methods and hooks, in the sandbox.
    Script,
    /// A plugin with a process of its own, which may do whatever the user may.
    Process,
    /// A plugin with settings alone.
    Plugin,
    /// A prompt file of the project.
    Prompt,
    /// The definition of an agent.
    Agent,
    /// A rule, or a script of one.
    Rule,
    /// Settings that rules can read.
    Settings,
}

/// One thing that trust is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TrustItem {
    /// The kind of thing.
    pub(crate) kind: ItemKind,
    /// Its name, or its file.
    pub(crate) name: String,
    /// What would run: a script, a command line.
    pub(crate) runs: Option<String>,
    /// What it may touch once it is trusted.
    pub(crate) uses: Vec<String>,
    /// What it is for, in its own words.
    pub(crate) about: String,
    /// What is wrong with it.
    pub(crate) problem: Option<String>,
}

/// Lists what needs trust. Reads manifests only.
pub(crate) fn items(root: &Path, contents: &Contents) -> Vec<TrustItem> {
    let base = folder(root);
    let mut items = Vec::new();
    for path in contents.files.keys() {
        let mut parts = path.split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("plugins"), Some(name), Some("manifest.toml"), None) => {
                items.push(plugin(&base.join(path), name));
            }
            (Some("prompts"), Some(_), ..) => items.push(file(ItemKind::Prompt, path)),
            (Some("agents"), Some(_), ..) => items.push(file(ItemKind::Agent, path)),
            (Some(RULES), Some(_), ..) => items.push(rule(&base.join(path), path)),
            (Some(CONFIG), None, ..) => items.push(settings(&base.join(path))),
            _ => {}
        }
    }
    items
}

fn file(kind: ItemKind, path: &str) -> TrustItem {
    TrustItem {
        kind,
        name: path.to_owned(),
        runs: None,
        uses: Vec::new(),
        about: String::new(),
        problem: None,
    }
}

/// A rule with its trigger and the types of its actions. A script has neither.
fn rule(path: &Path, name: &str) -> TrustItem {
    let mut item = file(ItemKind::Rule, name);
    if path.extension().is_none_or(|extension| extension != "toml") {
        return item;
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    let table = reading::Reading::new("rule.toml", &text).parse();
    let Some(Ok(json)) = table.map(|table| reading::table_to_json(&table)) else {
        item.problem = Some("it is not valid TOML".to_owned());
        return item;
    };
    let json = Value::Object(json);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    item.about = word(&json["rule"]["description"]);
    let listed = json["actions"].as_array().cloned().unwrap_or_default();
    let actions = std::iter::once(&json["action"]).chain(&listed);
    let actions = actions.filter_map(|action| action["type"].as_str());
    item.runs = Some(format!(
        "{}: {}",
        word(&json["rule"]["trigger"]),
        actions.collect::<Vec<_>>().join(", ")
    ));
    item
}

/// The settings, each with its value.
fn settings(path: &Path) -> TrustItem {
    let mut item = file(ItemKind::Settings, CONFIG);
    let text = fs::read_to_string(path).unwrap_or_default();
    let table = reading::Reading::new(CONFIG, &text).parse();
    let json = table.and_then(|table| reading::table_to_json(&table).ok());
    let json = Value::Object(json.unwrap_or_default());
    let settings = json["settings"].as_object().into_iter().flatten();
    let shown: Vec<String> = settings
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    item.about = shown.join(", ");
    item
}

fn plugin(path: &Path, name: &str) -> TrustItem {
    let mut item = file(ItemKind::Plugin, name);
    let read = fs::read_to_string(path).map_err(|error| error.to_string());
    let manifest = read.and_then(|text| {
        Manifest::parse("manifest.toml", &text).map_err(|problems| {
            let first = problems.first().map(ToString::to_string);
            first.unwrap_or_default()
        })
    });
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(why) => {
            item.problem = Some(why);
            return item;
        }
    };
    item.about.clone_from(&manifest.description);
    let uses = manifest.uses.iter();
    item.uses = uses.map(|used| used.capability.to_string()).collect();
    match &manifest.code {
        Some(Code::Script { main }) => {
            item.kind = ItemKind::Script;
            item.runs = Some(main.clone());
        }
        Some(Code::Process { command, args, .. }) => {
            item.kind = ItemKind::Process;
            let words = std::iter::once(command).chain(args).map(String::as_str);
            item.runs = Some(words.collect::<Vec<_>>().join(" "));
        }
        None => {}
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = folder(root).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn what_steers_an_agent_needs_trust() {
        let project = tempfile::tempdir().unwrap();
        let root = project.path();
        for text in ["x", "vault.root = \"notes\""] {
            write(root, "config.toml", text);
            assert!(Contents::read(root).unwrap().is_empty(), "{text}");
        }
        write(root, "config.toml", "[settings]\nstrict = true\nmost = 3");
        let settings = Contents::read(root).unwrap();
        assert!(!settings.is_empty() && settings.without_rules().is_empty());
        let shown = items(root, &settings);
        assert_eq!(shown[0].kind, ItemKind::Settings);
        assert_eq!(shown[0].about, "strict = true, most = 3");
        write(root, "config.toml", "x");
        write(root, "rules/a.toml", "x");
        let rules = Contents::read(root).unwrap();
        assert!(!rules.is_empty() && rules.without_rules().is_empty());
        write(root, "plugins/a/main.luau", "x");
        let one = Contents::read(root).unwrap();
        write(root, "plugins/a/main.luau", "y");
        assert_ne!(Contents::read(root).unwrap().hash(), one.hash());
        write(root, "plugins/a/main.luau", "x");
        assert_eq!(Contents::read(root).unwrap().hash(), one.hash());
        write(root, "prompts/system.md", "x");
        assert_ne!(Contents::read(root).unwrap().hash(), one.hash());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_refused_wherever_it_leads() {
        let project = tempfile::tempdir().unwrap();
        let root = project.path();
        write(root, "plugins/a/manifest.toml", "x");
        let link = folder(root).join("plugins/a/main.luau");
        std::os::unix::fs::symlink(root.join("elsewhere"), link).unwrap();
        let why = Contents::read(root).unwrap_err();
        assert!(why.contains("main.luau` is a link"), "{why}");
    }
}
