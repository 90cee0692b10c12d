//! `dodona config set` and `dodona config unset`.

use std::ffi::OsString;

use clap::Args;
use dodona_proto::ExitKind;
use serde_json::{Value as Json, json};
use toml_edit::Value;

use crate::cli::{own_project, print};
use crate::config::{self, ConfigFile, Layer};
use crate::excerpt::Fault;
use crate::failure::Failure;
use crate::home::Home;
use crate::project;
use crate::shell::Shell;

/// The table of values that rules read.
const RULE_SETTINGS: &str = "settings.";

/// The project's file below `.dodona/`, by which it is trusted.
const PROJECT_FILE: &str = "config.toml";

/// Set a value in your settings, or with `--project` in the project's
#[derive(Debug, Args)]
pub(super) struct Set {
    /// The key, such as `agent.max_turns`, or `settings.NAME` for a value that rules read
    key: String,
    /// The value: `true`, `20`, `0.5`, `30d`, `[\"a\", \"b\"]`; anything else is a string
    #[arg(allow_hyphen_values = true, required_unless_present = "project")]
    value: Option<String>,
    /// Take the value as a string, whatever it looks like
    #[arg(long)]
    string: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Remove a value from your settings, or with `--project` from the project's
#[derive(Debug, Args)]
pub(super) struct Unset {
    /// The key
    #[arg(required_unless_present = "project")]
    key: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Set {
    /// In `config set --project KEY VALUE` the key was parsed as the directory of `--project`.
    pub(super) fn take_key_from(&mut self, project: &mut Option<OsString>) {
        if self.value.is_none()
            && let Some(key) = misplaced_key(project)
        {
            self.value = Some(std::mem::replace(&mut self.key, key));
        }
    }

    pub(super) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let parts = parts(&self.key)?;
        let value = self.value.as_deref();
        let value = value.ok_or_else(|| missing("value", "set agent.max_turns 20"))?;
        let values = values(value, self.string);
        let edit = |file: &mut ConfigFile, layer: Layer| {
            let shown = set(file, layer, &self.key, &parts, &values)?;
            Ok(Some(shown))
        };
        let changed = change(shell, &self.key, edit).await?;
        let shown = changed.value.unwrap_or_default();
        let text = match self.json {
            true => format!(
                "{}\n",
                json!({ "key": self.key, "value": shown, "file": changed.file })
            ),
            false => format!(
                "set `{}` to {shown} in {}{}\n",
                self.key, changed.file, changed.note
            ),
        };
        print(&text)
    }
}

impl Unset {
    /// In `config unset --project KEY` the key was parsed as the directory of `--project`.
    pub(super) fn take_key_from(&mut self, project: &mut Option<OsString>) {
        if self.key.is_none() {
            self.key = misplaced_key(project);
        }
    }

    pub(super) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let key = self
            .key
            .ok_or_else(|| missing("key", "unset agent.max_turns"))?;
        let parts = parts(&key)?;
        let edit = |file: &mut ConfigFile, _: Layer| match file.unset(&parts) {
            true => Ok(None),
            false => {
                let file = file.path().display();
                let message = format!("`{key}` is not set in {file}");
                Err(Failure::usage(message)
                    .hint("`dodona config show --origin` shows what is set where"))
            }
        };
        let changed = change(shell, &key, edit).await?;
        let text = match self.json {
            true => format!("{}\n", json!({ "key": key, "file": changed.file })),
            false => format!("removed `{key}` from {}{}\n", changed.file, changed.note),
        };
        print(&text)
    }
}

/// Takes the value of `--project` if there is one, which leaves `--project` without a directory.
fn misplaced_key(project: &mut Option<OsString>) -> Option<String> {
    let given = project.as_ref()?.to_str()?;
    let key = (!given.is_empty()).then(|| given.to_owned())?;
    *project = Some(OsString::new());
    Some(key)
}

fn missing(argument: &str, example: &str) -> Failure {
    Failure::usage(format!("the {argument} is missing"))
        .hint(format!("for example: `dodona config {example} --project`"))
}

/// What was changed.
struct Changed {
    file: String,
    /// The value as it is written in the file.
    value: Option<String>,
    /// When it takes effect.
    note: &'static str,
}

/// Edits the file that is meant, and writes it only if the edit succeeds.
async fn change(
    shell: &Shell,
    key: &str,
    edit: impl FnOnce(&mut ConfigFile, Layer) -> Result<Option<String>, Failure>,
) -> Result<Changed, Failure> {
    let is_for_rules = key.starts_with(RULE_SETTINGS);
    if !shell.names_project {
        let home = Home::find()?;
        home.create()?;
        let mut file = ConfigFile::read(&home.config_file())?;
        let value = edit(&mut file, Layer::User)?;
        let file = file.write()?.display().to_string();
        let note = match is_for_rules {
            true => "",
            false => "; a running server reads it when it starts next",
        };
        return Ok(Changed { file, value, note });
    }
    let root = project::root(shell.project.as_deref())?.ok_or_else(|| {
        Failure::usage("no project found here").hint("name its directory: `--project DIR`")
    })?;
    let mut file = ConfigFile::of_project(&root)?;
    let value = edit(&mut file, Layer::Project)?;
    let write = || {
        let dir = root.join(".dodona");
        let created = std::fs::create_dir_all(&dir).map_err(|error| {
            let message = format!("could not create `{}`: {error}", dir.display());
            Failure::new(ExitKind::Storage, message)
        });
        created.and_then(|()| Ok(file.write()?.display().to_string()))
    };
    let file = match is_for_rules {
        false => write()?,
        // What the user sets here is trusted by that act. Other settings in the
        // file are not: they are reviewed with `dodona trust`.
        true => {
            let own = (!has_untrusted(shell).await?).then_some(PROJECT_FILE);
            own_project::create_in(shell, own, write).await?
        }
    };
    Ok(Changed {
        file,
        value,
        note: "",
    })
}

/// Whether the project has settings for rules that are not trusted.
async fn has_untrusted(shell: &Shell) -> Result<bool, Failure> {
    let session = shell.quiet_session_in_project().await?;
    let settings = session.ask::<Json>("rules.settings", json!({})).await;
    session.close().await;
    Ok(settings?["project_state"] == "untrusted")
}

/// The parts of a dotted key. Names have no dots in them.
fn parts(key: &str) -> Result<Vec<&str>, Failure> {
    let parts: Vec<&str> = key.split('.').collect();
    match parts.iter().all(|part| !part.trim().is_empty()) {
        true => Ok(parts),
        false => Err(Failure::usage(format!("invalid key `{key}`"))
            .hint("write it with dots, such as `agent.max_turns`")),
    }
}

/// What a text can mean, the likeliest first: a value as TOML has it, or a string.
fn values(text: &str, is_string: bool) -> Vec<Value> {
    let string = Value::from(text);
    let parsed = text.trim().parse::<Value>().ok();
    match parsed.filter(|value| !is_string && !value.is_datetime()) {
        Some(value) if value.is_str() => vec![value],
        Some(value) => vec![value.decorated("", ""), string],
        None => vec![string],
    }
}

/// Sets the first of the values that the key accepts, and returns it as it is written.
fn set(
    file: &mut ConfigFile,
    layer: Layer,
    key: &str,
    parts: &[&str],
    values: &[Value],
) -> Result<String, Failure> {
    let before = config::faults(&file.text(), layer);
    let mut first = None;
    for value in values {
        file.set(parts, value.clone())?;
        let faults = config::faults(&file.text(), layer);
        // A fault that was there before is not about this key.
        let is_new = |fault: &Fault| before.iter().all(|known| known.message != fault.message);
        match faults.into_iter().find(is_new) {
            None => return Ok(value.clone().decorated("", "").to_string()),
            Some(fault) => first = first.or(Some(fault)),
        }
    }
    Err(refused(key, first))
}

fn refused(key: &str, fault: Option<Fault>) -> Failure {
    let Some(fault) = fault else {
        return Failure::usage(format!("`{key}` cannot be set"));
    };
    let failure = Failure::usage(fault.message);
    match (key.contains('.'), fault.hint) {
        (false, _) => failure.hint(format!(
            "values that rules read are below `settings`: `dodona config set settings.{key} VALUE`"
        )),
        (true, Some(hint)) => failure.hint(hint),
        (true, None) => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> String {
        values(text, false)[0].to_string()
    }

    #[test]
    fn values_have_types() {
        assert_eq!(first("true"), "true");
        assert_eq!(first("20"), "20");
        assert_eq!(first("-0.5"), "-0.5");
        assert_eq!(first("[\"a\", 2]"), "[\"a\", 2]");
        assert_eq!(first("\"true\""), "\"true\"");
        assert_eq!(first("30d"), "\"30d\"");
        assert_eq!(first("2026-01-01"), "\"2026-01-01\"");
        assert_eq!(first("a b"), "\"a b\"");
        assert_eq!(values("true", true)[0].to_string(), "\"true\"");
    }
}
