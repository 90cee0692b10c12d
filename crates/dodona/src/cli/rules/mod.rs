//! `dodona rules`.

mod backtest;
mod check;
mod doctor;
mod explain;
mod files;
mod list;
mod log;
mod new;
mod show;
mod test;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use dodona_proto::RULE_TRIGGERS;
use serde_json::{Value, json};

use super::form::{Done, Form, answer};
use crate::failure::Failure;
use crate::quantity;
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona rules list                                     what there is, and how alive it is
  dodona rules new no-main-writes                       a file to start from, with a test
  dodona rules check                                    what is wrong, with file, line and column
  dodona rules test no-main-writes                      do its tests pass?
  dodona rules backtest --since 30d                     what would have fired?
  dodona rules backtest --rules draft.toml              and with this rule?
  dodona rules explain token-budget-warning --last      why did it fire, or not?
  dodona rules disable large-result-hint                not for me
  dodona rules doctor                                   which rules never ran, or never can?";

/// Create, check, test, explain, backtest and toggle rules
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rules {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List rules in the order of evaluation
    List {
        /// Only rules with this trigger
        #[arg(long, value_name = "TRIGGER", value_parser = RULE_TRIGGERS)]
        trigger: Option<String>,
        #[command(flatten)]
        form: Form,
    },
    /// Show a rule in full
    Show {
        /// The rule: its id, or `plugin/id`
        rule: String,
        #[command(flatten)]
        form: Form,
    },
    /// Validate rules and report every problem with file, line and column
    Check {
        /// Files, or directories with files, to check instead of the rules in use
        #[arg(value_name = "FILE|DIR")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        form: Form,
    },
    /// Run the tests in rule files
    Test {
        /// A rule id, a file, or a directory with files [default: all rules in use]
        #[arg(value_name = "RULE|FILE|DIR")]
        what: Option<String>,
        #[command(flatten)]
        form: Form,
    },
    /// Explain why a rule fired or did not fire
    Explain(explain::Explain),
    /// Run rules over the recorded history and report which would have fired
    Backtest(backtest::Backtest),
    /// Enable a rule
    Enable {
        /// The rule: its id, or `plugin/id`
        rule: String,
        #[command(flatten)]
        form: Form,
    },
    /// Disable a rule for yourself; it takes effect at once
    Disable {
        /// The rule: its id, or `plugin/id`
        rule: String,
        #[command(flatten)]
        form: Form,
    },
    /// List firings and failures of rules, latest last
    Log {
        /// Only this rule: its id, or `plugin/id`
        rule: Option<String>,
        /// Only failures
        #[arg(long)]
        failed: bool,
        /// Maximum number of results
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        form: Form,
    },
    /// List rules that are broken, were never evaluated, can never fire, or fail
    Doctor(Form),
    /// Create a rule file with comments and a test
    New(new::New),
    /// Print the JSON Schema of a rule's file, for editors
    Schema(Form),
}

impl Rules {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self.command {
            Command::New(new) => new.run(shell).await,
            Command::Schema(_) => {
                super::print(&format!("{:#}\n", dodona_rules::schema::rule_schema()))
            }
            Command::Check { files, form } if !files.is_empty() => {
                check::files(shell, &files, form)?.print()
            }
            Command::Check { form, .. } => {
                asking(shell, async |session| check::all(session, form).await).await
            }
            Command::Test { what, form } => match what {
                Some(what) if files::is_path(&what) => test::files(what.as_ref(), form)?.print(),
                what => asking(shell, async |session| test::all(session, what, form).await).await,
            },
            Command::Backtest(backtest) => backtest.run(shell).await,
            Command::Explain(explain) => {
                asking(shell, async |session| explain.ask(session).await).await
            }
            Command::Doctor(form) => {
                asking(shell, async |session| doctor::ask(session, form).await).await
            }
            Command::List { trigger, form } => {
                asking(shell, async |session| list(session, trigger, form).await).await
            }
            Command::Show { rule, form } => {
                asking(shell, async |session| show(session, rule, form).await).await
            }
            Command::Enable { rule, form } => {
                let method = "rules.enable";
                asking(shell, async |session| {
                    toggle(session, method, rule, form).await
                })
                .await
            }
            Command::Disable { rule, form } => {
                let method = "rules.disable";
                asking(shell, async |session| {
                    toggle(session, method, rule, form).await
                })
                .await
            }
            Command::Log {
                rule,
                failed,
                limit,
                form,
            } => {
                let params = json!({ "rule": rule, "failed": failed, "limit": limit });
                asking(shell, async |session| log(session, params, form).await).await
            }
        }
    }
}

/// Prints what somebody finds out in a session, which ends with it.
async fn asking(
    shell: &Shell,
    work: impl AsyncFnOnce(&Session) -> Result<Done, Failure>,
) -> Result<(), Failure> {
    let session = shell.session_in_project_if_any().await?;
    let done = work(&session).await;
    session.close().await;
    done?.print()
}

async fn list(session: &Session, trigger: Option<String>, form: Form) -> Result<Done, Failure> {
    let params = json!({ "trigger": trigger });
    let listed: list::Listed = answer(session, "rules.list", params).await?;
    Ok(form.text(&listed, list::table).into())
}

async fn show(session: &Session, rule: String, form: Form) -> Result<Done, Failure> {
    let shown: Value = answer(session, "rules.show", json!({ "rule": rule })).await?;
    Ok(form.text(&shown, show::words).into())
}

async fn log(session: &Session, params: Value, form: Form) -> Result<Done, Failure> {
    let log: log::Log = answer(session, "rules.log", params).await?;
    Ok(form.text(&log, log::table).into())
}

async fn toggle(
    session: &Session,
    method: &str,
    rule: String,
    form: Form,
) -> Result<Done, Failure> {
    let toggled: Value = answer(session, method, json!({ "rule": rule })).await?;
    Ok(form
        .text(&toggled, |toggled, paint| {
            let rule = paint.bold(text(toggled, "rule"));
            match toggled["enabled"] == true {
                true => format!("{rule} is on\n"),
                false => format!("{rule} is off for you\n"),
            }
        })
        .into())
}

/// A text of an answer.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The name of a rule for people: those without a plugin need none.
fn short(rule: &str) -> &str {
    rule.strip_prefix("rules/").unwrap_or(rule)
}

/// A file's path for people: relative where it is below.
fn near(path: &str) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| {
        std::path::Path::new(path)
            .strip_prefix(here)
            .ok()
            .map(|path| path.display().to_string())
    });
    below.unwrap_or_else(|| path.to_owned())
}

/// How long ago, at most so long.
fn since(time: Duration) -> String {
    let span = jiff::SignedDuration::try_from(time).unwrap_or(jiff::SignedDuration::MAX);
    let then = jiff::Timestamp::now().checked_sub(span);
    then.unwrap_or(jiff::Timestamp::MIN).to_string()
}

/// A length of time as a command line has it.
fn duration(text: &str) -> Result<Duration, String> {
    quantity::duration(text)
}
