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

/// List and show queries
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Query {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the queries of a conversation, latest first
    List {
        /// The conversation, by name or id
        #[arg(long, default_value = "default", value_name = "NAME_OR_ID")]
        context: String,
        /// Maximum number of results
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a query with its answer, usage and time
    Show {
        /// The query, by its id or the end of it [default: the latest]
        query: Option<String>,
        /// Print the result as JSON
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
                let shown = async {
                    let query = given_or_latest(&session, query).await?;
                    one(&session, &query).await
                }
                .await;
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
  dodona trace                    the latest query
  dodona trace 3fa9c2d4
  dodona trace 3fa9c2d4 --json | jq '.turns[].usage'

`dodona query list` shows the ids.";

/// Show every step of a query: model requests, tools, tokens, hooks and rules
#[derive(Debug, Args)]
#[command(after_help = TRACE_EXAMPLES)]
pub(crate) struct Trace {
    /// The query, by its id or the end of it [default: the latest]
    query: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Trace {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let answer = async {
            let query = given_or_latest(&session, self.query).await?;
            let params = json!({ "query_id": query });
            Ok::<Value, Failure>(session.ask("agent.trace", params).await?)
        }
        .await;
        session.close().await;
        let answer = answer?;
        super::print(&match self.json {
            true => format!("{answer}\n"),
            false => trace::tree(&read::<Traced>(answer)?, Paint::of(&io::stdout())),
        })
    }
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  dodona replay                   the latest query
  dodona replay 3fa9c2d4
  dodona replay $(dodona query list --json | jq -r '.[].id')

The requests are built again with this version and the current settings, from the conversation
as it was, and compared with the recorded ones. No model is called and no tool is run. Exits with 1
if there is a difference.";

/// Replay a query against its recorded responses and report the first difference
#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub(crate) struct Replay {
    /// The queries, by their ids or the ends of them [default: the latest]
    queries: Vec<String>,
    /// Print the result as JSON
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
        let queries = match self.queries.as_slice() {
            [] => vec![given_or_latest(session, None).await?],
            queries => queries.to_vec(),
        };
        for query in &queries {
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
            paint.good("identical:")
        ),
        Some(Divergence { turn, what }) => format!(
            "{id}  {} in turn {turn} of {recorded}: {}\n",
            paint.bad("differs"),
            one_line(what)
        ),
    }
}

/// The query that was named, or the latest one of the project.
async fn given_or_latest(session: &Session, given: Option<String>) -> Result<String, Failure> {
    if let Some(given) = given {
        return Ok(given);
    }
    let none = || {
        Failure::usage("this project has no queries yet")
            .hint("ask a question first: dodona ask \"What is this project about?\"")
    };
    // Conversations are listed by their last activity.
    let contexts: Value = session.ask("agent.contexts", json!({})).await?;
    let context = contexts["contexts"][0]["id"].as_str().ok_or_else(none)?;
    let params = json!({ "context_id": context, "limit": 1 });
    let queries: Value = session.ask("agent.queries", params).await?;
    let query = queries["queries"][0]["id"].as_str().ok_or_else(none)?;
    Ok(query.to_owned())
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
