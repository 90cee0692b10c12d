//! `dodona trust`.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use clap::{Args, Subcommand};
use dodona_proto::ExitKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{Done, Form, answer};
use crate::config::{self, Layer};
use crate::failure::Failure;
use crate::home::Home;
use crate::paint::{Paint, one_line};
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona trust                    review the project, then trust it or not
  dodona trust show               only review it
  dodona trust accept --yes       trust it without a question, in a script
  dodona trust accept --follow    trust later changes too, in a project of your own
  dodona trust revoke             deactivate its rules, plugins, prompts and agents
  dodona trust list               list the trusted projects

Rules, plugins, prompts and agents of a project are inactive until you trust them, and again when
one of their files changes. Settings need no trust. A project in which you ran `dodona init` or
`dodona rules new` is your own: its rules are in force as you save them.";

/// Review what a project would run, and trust it or not
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Trust {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what the project would run and what changed since it was trusted
    Show(Form),
    /// Trust the project in its current state
    Accept {
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
        /// Trust later changes too; for a project that only you change
        #[arg(long)]
        follow: bool,
        #[command(flatten)]
        form: Form,
    },
    /// Withdraw trust from the project
    Revoke(Form),
    /// List trusted projects
    List(Form),
}

#[derive(Serialize, Deserialize)]
struct Shown {
    root: String,
    state: String,
    hash: Option<String>,
    items: Vec<Item>,
    changes: Vec<Change>,
    granted: Option<Pin>,
    problem: Option<String>,
    /// What of the project's `config.toml` is in force; it needs no trust.
    #[serde(default)]
    settings: Vec<Setting>,
    /// Why nothing of it is.
    #[serde(default)]
    settings_problem: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Setting {
    key: String,
    value: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Item {
    kind: String,
    name: String,
    runs: Option<String>,
    uses: Vec<String>,
    about: String,
    problem: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Change {
    path: String,
    change: String,
}

#[derive(Serialize, Deserialize)]
struct Pin {
    root: String,
    hash: String,
    granted_by: String,
    granted_at: String,
    follow: String,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    projects: Vec<Pin>,
}

impl Trust {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let command = self.command.unwrap_or(Command::Accept {
            yes: false,
            follow: false,
            form: Form { json: false },
        });
        let session = shell.quiet_session_in_project().await?;
        let done = command.ask(&session).await;
        session.close().await;
        done?.print()
    }
}

impl Command {
    async fn ask(self, session: &Session) -> Result<Done, Failure> {
        match self {
            Self::Show(form) => {
                let shown = looked(session).await?;
                Ok(form.text(&shown, words).into())
            }
            Self::Accept { yes, follow, form } => accept(session, yes, follow, form).await,
            Self::Revoke(form) => {
                let shown: Shown = answer(session, "hub.trust_revoke", json!({})).await?;
                let told = |shown: &Shown, _| format!("{} is not trusted\n", one_line(&shown.root));
                Ok(form.text(&shown, told).into())
            }
            Self::List(form) => {
                let listed: Listed = answer(session, "hub.trusted", json!({})).await?;
                Ok(form.text(&listed, list).into())
            }
        }
    }
}

/// Shows what there is, and trusts it if that is what the user wants.
async fn accept(session: &Session, yes: bool, follow: bool, form: Form) -> Result<Done, Failure> {
    let shown = looked(session).await?;
    let follows = |pin: &Pin| pin.follow == "everything";
    let is_due = needs_word(&shown) || (follow && !shown.granted.as_ref().is_some_and(follows));
    let (true, Some(hash)) = (is_due, shown.hash.as_ref()) else {
        let failure = shown
            .problem
            .as_ref()
            .map(|_| Failure::Told(ExitKind::Refused));
        let text = form.text(&shown, words);
        return Ok(Done { text, failure });
    };
    let agreed = match yes {
        true => true,
        false if form.json || !io::stdin().is_terminal() => {
            let text = form.text(&shown, words);
            super::print(&text)?;
            let message = "not a terminal, so the project was not trusted";
            let failure = Failure::new(ExitKind::Refused, message);
            return Err(failure.hint("look at it, then run `dodona trust accept --yes`"));
        }
        false => {
            super::print(&words(&shown, Paint::of(&io::stdout())))?;
            asked()
        }
    };
    if !agreed {
        let text = "not trusted; nothing changed\n".to_owned();
        let failure = Some(Failure::Told(ExitKind::Refused));
        return Ok(Done { text, failure });
    }
    let follow = match follow {
        true => "everything",
        false => "nothing",
    };
    let params: Value = json!({ "hash": hash, "follow": follow });
    let trusted: Shown = answer(session, "hub.trust_accept", params).await?;
    Ok(form.text(&trusted.with_settings()?, words).into())
}

/// What there is, and how it stands.
async fn looked(session: &Session) -> Result<Shown, Failure> {
    let shown: Shown = answer(session, "hub.trust", json!({})).await?;
    shown.with_settings()
}

impl Shown {
    /// Adds what the project's own settings come to: only the program knows what they mean.
    fn with_settings(mut self) -> Result<Self, Failure> {
        let user = Home::find()?.config_file();
        match config::load_with_project(&user, Some(Path::new(&self.root))) {
            Ok((settings, origins)) => {
                let entries = config::entries(settings, &origins).into_iter();
                let own = entries.filter(|entry| {
                    let origin = entry.origin.as_ref();
                    origin.is_some_and(|origin| origin.layer == Layer::Project)
                });
                let own = own.map(|entry| Setting {
                    key: entry.key,
                    value: entry.value,
                });
                self.settings = own.collect();
            }
            Err(error) => self.settings_problem = Some(error.to_string()),
        }
        Ok(self)
    }
}

fn needs_word(shown: &Shown) -> bool {
    matches!(shown.state.as_str(), "untrusted" | "changed")
}

/// Only a clear yes agrees.
fn asked() -> bool {
    let mut out = io::stdout().lock();
    let _ = write!(out, "Trust this? [y/N] ").and_then(|()| out.flush());
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.is_ok() && ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
}

fn words(shown: &Shown, paint: Paint) -> String {
    let mut text = format!("{}: {}\n", one_line(&shown.root), state(shown, paint));
    if let Some(problem) = &shown.problem {
        let _ = writeln!(text, "  {}", paint.bad(one_line(problem)));
    }
    // Settings are listed below, each with its value.
    let items = shown.items.iter().filter(|item| item.kind != "settings");
    for item in items {
        let about = match item.about.is_empty() {
            true => String::new(),
            false => format!("  {}", paint.dim(one_line(&item.about))),
        };
        let runs = item.runs.as_deref().map(one_line).unwrap_or_default();
        let line = format!("  {:8}{}  {runs}{about}", item.kind, one_line(&item.name));
        let _ = writeln!(text, "{}", line.trim_end());
        if !item.uses.is_empty() {
            let _ = writeln!(text, "          uses {}", one_line(&item.uses.join(", ")));
        }
        if let Some(problem) = &item.problem {
            let _ = writeln!(text, "          {}", paint.bad(one_line(problem)));
        }
    }
    for Setting { key, value } in &shown.settings {
        let value = value.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "  {:8}{}",
            "setting",
            one_line(&format!("{key} = {value}"))
        );
    }
    for problem in shown.settings_problem.iter().flat_map(|told| told.lines()) {
        let _ = writeln!(text, "  {:8}{}", "setting", paint.bad(one_line(problem)));
    }
    for change in &shown.changes {
        let _ = writeln!(
            text,
            "  {:8}.dodona/{}",
            change.change,
            one_line(&change.path)
        );
    }
    text
}

fn state(shown: &Shown, paint: Paint) -> String {
    match (shown.state.as_str(), &shown.granted) {
        ("nothing", _) => "nothing in it needs trust".to_owned(),
        ("trusted", Some(pin)) => {
            let later = match pin.follow.as_str() {
                "everything" => ", with later changes",
                "rules" => ", with later changes of its rules",
                _ => "",
            };
            let since = format!("trusted by {} since {}{later}", pin.granted_by, pin.granted_at);
            paint.good(one_line(&since)).to_string()
        }
        ("changed", _) => paint
            .bad("changed since it was trusted; changed rules, and all plugins, prompts and agents, are inactive")
            .to_string(),
        _ => "not trusted; its rules, plugins, prompts and agents are inactive".to_owned(),
    }
}

fn list(listed: &Listed, paint: Paint) -> String {
    if listed.projects.is_empty() {
        return "no project is trusted\n".to_owned();
    }
    let mut text = String::new();
    for pin in &listed.projects {
        let since = format!("{} {}", pin.granted_by, pin.granted_at);
        let _ = writeln!(
            text,
            "{}  {}",
            one_line(&pin.root),
            paint.dim(one_line(&since))
        );
    }
    text
}
