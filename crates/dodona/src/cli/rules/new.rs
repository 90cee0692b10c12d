//! `dodona rules new`.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use dodona_proto::{ExitKind, RULE_TRIGGERS};
use serde_json::json;

use super::{Form, near};
use crate::failure::Failure;
use crate::home::Home;
use crate::project;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona rules new no-main-writes --trigger on_tool_call
  dodona rules new be-brief --user                          for all projects";

/// Make a file with a rule to start from, with comments and a test
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct New {
    /// Its id: kebab-case, also the name of the file
    id: String,

    /// When it is asked
    #[arg(long, value_name = "TRIGGER", default_value = "on_turn_start", value_parser = RULE_TRIGGERS)]
    trigger: String,

    /// Among your own rules, for all projects, and not in the project's
    #[arg(long)]
    user: bool,

    #[command(flatten)]
    form: Form,
}

impl New {
    pub(super) fn run(self, shell: &Shell) -> Result<(), Failure> {
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.id.is_empty() || !self.id.chars().all(kebab) {
            let message = format!("`{}` is no id of a rule", self.id);
            return Err(
                Failure::usage(message).hint("use a-z, 0-9 and `-`, as in `no-main-writes`")
            );
        }
        let path = self.directory(shell)?.join(format!("{}.toml", self.id));
        write(&path, &template(&self.id, &self.trigger))?;
        let shown = path.display().to_string();
        let told = json!({ "rule": self.id, "path": shown });
        let text = self.form.text(&told, |_, paint| {
            let test = paint.code(format!("dodona rules test {}", self.id));
            let backtest = paint.code("dodona rules backtest");
            format!(
                "made {}\n  {test}   do its tests pass?\n  {backtest}   what would it have done?\n",
                near(&shown)
            )
        });
        super::super::print(&text)
    }

    fn directory(&self, shell: &Shell) -> Result<PathBuf, Failure> {
        if self.user {
            let home = Home::find()?;
            home.create()?;
            return Ok(home.config.join("rules"));
        }
        let root = project::root(shell.project.as_deref())?;
        let root = root.ok_or_else(|| {
            Failure::usage("there is no project here")
                .hint("run `dodona init`, or write a rule of your own with `--user`")
        })?;
        Ok(root.join(".dodona/rules"))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("could not make `{}`: {error}", path.display());
        Failure::new(ExitKind::Storage, message)
    };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let message = format!("`{}` is there already", path.display());
            Failure::usage(message).hint("choose another id, or remove it")
        }
        _ => failed(error),
    })?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// A condition, an action and tests that go with a trigger.
fn template(id: &str, trigger: &str) -> String {
    let (condition, action, fires, does_not) = match trigger {
        "on_tool_call" => (
            "context.call.tool_name == 'vault_write' and str(context.call.arguments.get('path', '')).startswith('published/')",
            "type = \"require_approval\"   # or `deny`; others: notify_self, log, set_state, emit_event\nmessage = \"The agent wants to change {{ context.call.arguments.path }}\"",
            "{ call = { tool_name = \"vault_write\", arguments = { path = \"published/index.md\" } } }",
            "{ call = { tool_name = \"vault_write\", arguments = { path = \"drafts/index.md\" } } }",
        ),
        "on_tool_complete" | "on_tool_failure" => (
            "context.result.tool_name == 'vault_search' and context.result.duration_ms > 1000",
            NOTIFY_RESULT,
            "{ result = { tool_name = \"vault_search\", duration_ms = 2500.0 } }",
            "{ result = { tool_name = \"vault_search\", duration_ms = 20.0 } }",
        ),
        "on_query_start" => (
            "'deploy' in context.event.payload.get('question', '').lower()",
            "type = \"notify_self\"\nmessage = \"Deployments are described in docs/deploy.md.\"\ncategory = \"reminder\"          # info, warning, error, reminder\ndeliver_at = \"immediate\"       # turn_start, after_tool, immediate",
            "{ event = { payload = { question = \"How do we deploy?\" } } }",
            "{ event = { payload = { question = \"How do we log in?\" } } }",
        ),
        "on_session_end" => (
            "context.event.payload.get('turns', 0) > 10",
            "type = \"log\"                   # others: notify_self, set_state, emit_event\nmessage = \"a long session of {{ context.user.id }}: {{ context.event.payload.turns }} turns\"\nlevel = \"info\"                  # debug, info, warning, error",
            "{ event = { payload = { turns = 12 } } }",
            "{ event = { payload = { turns = 2 } } }",
        ),
        _ => (
            "context.turn.iteration_count > 5",
            "type = \"notify_self\"           # others: log, set_state, emit_event\nmessage = \"Turn {{ context.turn.iteration_count }} of this question: come to an answer.\"\ncategory = \"info\"               # info, warning, error, reminder\npriority = \"normal\"             # low, normal, high, critical\ndeliver_at = \"turn_start\"       # turn_start, after_tool, immediate",
            "{ turn = { iteration_count = 6 } }",
            "{ turn = { iteration_count = 5 } }",
        ),
    };
    format!(
        r#"# Every field is in docs/reference/rules.md. A change counts within a second.

[rule]
id = "{id}"
description = "What it is for"
trigger = "{trigger}"
priority = 100                  # 1 to 1000; higher is asked earlier

# A Python expression over `context`. `dodona eval expr '…' --trigger {trigger}` tries one.
[condition]
expression = "{condition}"

# How often it may fire; remove the `#` of what you want.
[limits]
# cooldown = "5 turns"          # or a time: "10m"
# once_per = "query"            # or "session"

[action]
{action}

# `dodona rules test {id}` runs these.
[[tests]]
name = "fires"
context = {fires}
expect = {{ fired = true }}

[[tests]]
name = "does not fire"
context = {does_not}
expect = {{ fired = false }}
"#
    )
}

const NOTIFY_RESULT: &str = "type = \"notify_self\"           # others: log, set_state, emit_event\nmessage = \"{{ context.result.tool_name }} took {{ context.result.duration_ms | round | int }} ms.\"\ncategory = \"info\"               # info, warning, error, reminder\npriority = \"normal\"             # low, normal, high, critical\ndeliver_at = \"after_tool\"       # turn_start, after_tool, immediate";

#[cfg(test)]
mod tests {
    use dodona_rules::load::load_text;
    use dodona_rules::{Origin, Scope, run_tests};
    use dodona_script::Engine;
    use serde_json::Map;

    use super::*;

    #[test]
    fn what_is_made_for_each_trigger_is_a_rule_whose_tests_pass() {
        for trigger in RULE_TRIGGERS {
            let origin = Origin {
                scope: Scope::Project,
                path: format!("{trigger}.toml"),
            };
            let text = template("my-rule", trigger);
            let loaded = load_text(origin, &text, &|_| Err("no scripts".to_owned()));
            assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);
            let rule = loaded.rule.unwrap();
            let tested = run_tests(&rule, &Map::new(), &Engine::new(1));
            assert_eq!(tested.len(), 2);
            assert!(
                tested.iter().all(|test| test.failure.is_none()),
                "{tested:#?}"
            );
        }
    }
}
