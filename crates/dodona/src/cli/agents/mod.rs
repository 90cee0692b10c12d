//! `dodona agents`.

mod define;
mod show;

use std::io;

use clap::{Args, Subcommand};
use dodona_plugin::reading::Problem;
use dodona_proto::ExitKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{Done, Form, answer};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona agents                        every agent with its tools, and what is wrong
  dodona agents show librarian         everything about one, with its prompt
  dodona agents define scout --description \"Finds things in code.\" \\
      --tools code_search,code_read --prompt \"You find things in {{ project }}.\"
  dodona agents delete scout
  dodona ask --agent librarian \"Which notes have no links?\"

An agent is defined in a file `agents/NAME.toml` of your configuration, or in `.dodona/agents` of a
project that you trust. `list` exits with 1 where a definition has a problem; valid ones are listed all
the same.";

/// List, show, define and delete agents
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Agents {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the agents with their tools, and the problems of their definitions
    List {
        /// Only agents whose name or description contains this text
        filter: Option<String>,
        #[command(flatten)]
        form: Form,
    },
    /// Show one agent with its tools and its prompt
    Show {
        /// Its name
        agent: String,
        #[command(flatten)]
        form: Form,
    },
    Define(define::Define),
    /// Delete an agent of your configuration; its conversations stay readable
    Delete {
        /// Its name
        agent: String,
        #[command(flatten)]
        form: Form,
    },
}

/// What `agent.list` returns.
#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) agents: Vec<Agent>,
    pub(super) problems: Vec<Problem>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Agent {
    name: String,
    description: String,
    source: Option<String>,
    path: Option<String>,
    allowed_tools: Option<Vec<String>>,
    extra_tools: Vec<String>,
    tools: Vec<String>,
    max_turns: u32,
    model_override: Option<String>,
    token_budget: Option<u64>,
}

/// What `agent.describe` returns.
#[derive(Serialize, Deserialize)]
struct Described {
    agent: Agent,
    system_prompt: String,
    problems: Vec<Problem>,
}

impl Agents {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let form = self.form;
        let command = self.command.unwrap_or(Command::List { filter: None, form });
        // The prompt is read first: nothing waits for standard input while the home is taken.
        let command = command.ready()?;
        let session = shell.session_in_project().await?;
        let done = tokio::select! {
            biased;
            done = command.on(&session) => done,
            () = shell.interrupt.requested() => Err(shell.cancelled(None)),
        };
        session.close().await;
        done?.print()
    }
}

impl Command {
    fn ready(self) -> Result<Self, Failure> {
        Ok(match self {
            Self::Define(define) => Self::Define(define.read_prompt()?),
            other => other,
        })
    }

    async fn on(self, session: &Session) -> Result<Done, Failure> {
        match self {
            Self::List { filter, form } => {
                let params = json!({ "filter": filter });
                let listed: Listed = answer(session, "agent.list", params).await?;
                let failure = problems_failure(&listed.problems);
                let text = form.text(&listed, show::list);
                Ok(Done { text, failure })
            }
            Self::Show { agent, form } => {
                let params = json!({ "agent_id": agent });
                let described: Described = answer(session, "agent.describe", params).await?;
                let failure = problems_failure(&described.problems);
                let text = form.text(&described, show::one);
                Ok(Done { text, failure })
            }
            Self::Define(define) => define.on(session).await,
            Self::Delete { agent, form } => {
                let params = json!({ "agent_id": agent });
                let deleted: Value = answer(session, "agent.delete", params).await?;
                Ok(form.text(&deleted, show::deleted).into())
            }
        }
    }
}

fn problems_failure(problems: &[Problem]) -> Option<Failure> {
    (!problems.is_empty()).then_some(Failure::Told(ExitKind::Failed))
}

/// The problems of all definitions, for `dodona doctor` and `dodona plugins check`. None where the
/// plugin `agent` is not active.
pub(super) async fn problems(session: &Session) -> Vec<Problem> {
    let listed = session.ask::<Listed>("agent.list", json!({})).await;
    listed.map(|listed| listed.problems).unwrap_or_default()
}

/// Problems as lines of their own.
pub(super) fn problem_lines(problems: &[Problem]) -> String {
    show::problems(problems, Paint::of(&io::stdout()))
}
