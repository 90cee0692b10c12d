//! `dodona query`, `dodona trace` and `dodona replay`: what became of questions.

mod show;
mod told;
mod trace;

use std::fmt::Write as _;
use std::io;

use clap::{Args, Subcommand};
use dodona_proto::ExitKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::layout;
use crate::paint::{Paint, one_line};
use crate::session::Session;
use crate::shell::Shell;
use show::Listed;
use told::Told;
use trace::Traced;

const EXAMPLES: &str = "\
Examples:
  dodona query list                    the latest questions and how each ended
  dodona query list --context login
  dodona query show 3fa9c2d4           one of them, with its answer and what it took
  dodona trace 3fa9c2d4                every step of it
  dodona replay 3fa9c2d4               would the same requests be made now?

A query is named by its id or the end of it.";

/// Questions that were asked: list and show them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Query {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the questions of a conversation, the latest first
    List {
        /// Of which conversation
        #[arg(long, default_value = "default", value_name = "NAME_OR_ID")]
        context: String,
        /// How many at most
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Show a question, its answer, and what it took
    Show {
        /// Which one
        query: String,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
}

impl Query {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let paint = Paint::of(&io::stdout());
        match self.command {
            Command::List {
                context,
                limit,
                json,
            } => {
                let params = json!({ "context_id": context, "limit": limit });
                let answer = ask(shell, "agent.queries", params).await?;
                super::print(&match json {
                    true => format!("{}\n", answer["queries"]),
                    false => show::list(&read::<Listed>(answer)?, paint),
                })
            }
            Command::Show { query, json } => {
                let session = shell.session_in_project().await?;
                let shown = one(&session, &query).await;
                session.close().await;
                let (answer, told) = shown?;
                super::print(&match json {
                    true => format!("{answer}\n"),
                    false => show::one(&read::<Traced>(answer)?, told.as_ref(), paint),
                })
            }
        }
    }
}

const TRACE_EXAMPLES: &str = "\
Examples:
  dodona trace 3fa9c2d4
  dodona trace 3fa9c2d4 --json | jq '.turns[].usage'

`dodona query list` tells the ids.";

/// Every step of a question: requests, tools with their times, tokens, what plugins and rules did
#[derive(Debug, Args)]
#[command(after_help = TRACE_EXAMPLES)]
pub(crate) struct Trace {
    /// Which query, by its id or the end of it
    query: String,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

impl Trace {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let params = json!({ "query_id": self.query });
        let answer = ask(shell, "agent.trace", params).await?;
        super::print(&match self.json {
            true => format!("{answer}\n"),
            false => trace::tree(&read::<Traced>(answer)?, Paint::of(&io::stdout())),
        })
    }
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  dodona replay 3fa9c2d4
  dodona replay $(dodona query list --json | jq -r '.[].id')

The requests of a query are made again, by this version and with today's settings, from the
conversation as it was then, and compared with what was recorded. No model is asked and no tool is
run. The exit code is 1 where something is not as it was.";

/// Make the requests of a question again, and name the first that is not as it was
#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub(crate) struct Replay {
    /// Which queries, by their ids or the ends of them
    #[arg(required = true)]
    queries: Vec<String>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Replayed {
    query_id: String,
    recorded: usize,
    replayed: usize,
    divergence: Option<Divergence>,
}

#[derive(Deserialize)]
struct Divergence {
    turn: u32,
    what: String,
}

impl Replay {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let done = self.on(&session).await;
        session.close().await;
        let (text, diverged) = done?;
        super::print(&text)?;
        match diverged {
            true => Err(Failure::Told(ExitKind::Failed)),
            false => Ok(()),
        }
    }

    async fn on(&self, session: &Session) -> Result<(String, bool), Failure> {
        let paint = Paint::of(&io::stdout());
        let (mut text, mut diverged) = (String::new(), false);
        for query in &self.queries {
            let answer: Value = session
                .ask("agent.replay", json!({ "query_id": query }))
                .await?;
            diverged |= !answer["divergence"].is_null();
            match self.json {
                true => {
                    let _ = writeln!(text, "{answer}");
                }
                false => text.push_str(&told(&read::<Replayed>(answer)?, paint)),
            }
        }
        Ok((text, diverged))
    }
}

fn told(replayed: &Replayed, paint: Paint) -> String {
    let Replayed {
        query_id,
        recorded,
        replayed,
        divergence,
    } = replayed;
    let id = layout::short_id(query_id);
    match divergence {
        None => format!(
            "{id}  {} {replayed} of {recorded} requests\n",
            paint.good("the same")
        ),
        Some(Divergence { turn, what }) => format!(
            "{id}  {} in turn {turn} of {recorded}: {}\n",
            paint.bad("differs"),
            one_line(what)
        ),
    }
}

/// What is known of a query, and its answer as it was told.
async fn one(session: &Session, query: &str) -> Result<(Value, Option<Told>), Failure> {
    let mut answer: Value = session
        .ask("agent.trace", json!({ "query_id": query }))
        .await?;
    let told = match answer["query"]["call_id"].as_str() {
        Some(call) => told::by(session, call).await,
        None => None,
    };
    if let Some(Told { text, sources }) = &told {
        answer["answer"] = json!(text);
        answer["sources"] = json!(sources);
    }
    Ok((answer, told))
}

async fn ask(shell: &Shell, method: &str, params: Value) -> Result<Value, Failure> {
    let session = shell.session_in_project().await?;
    let answer = session.ask::<Value>(method, params).await;
    session.close().await;
    Ok(answer?)
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer).map_err(|error| {
        let message = format!("could not read what the server answered: {error}");
        Failure::new(ExitKind::Failed, message)
    })
}
