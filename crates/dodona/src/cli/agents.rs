//! `dodona agents`.

use std::fmt::Write as _;
use std::io;

use clap::Args;
use dodona_proto::ExitKind;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::form;
use crate::failure::Failure;
use crate::paint::{Paint, one_line};
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona agents
  dodona agents --json | jq '.agents[].allowed_tools'
  dodona call agent.delegate name=librarian task=\"Put the notes on login in order\"

Agents are defined in files `agents/NAME.toml` of your configuration, or of `.dodona` in a project that
you trust. The exit code is 1 where one of them defines nobody; the others are listed all the same.";

/// List the agents that tasks can be delegated to, with their tools
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Agents {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    agents: Vec<Agent>,
    problems: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Agent {
    name: String,
    description: String,
    allowed_tools: Vec<String>,
    max_turns: u32,
    model: Option<String>,
}

impl Agents {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let listed = session.ask::<Listed>("agent.agents", json!({})).await;
        session.close().await;
        let listed = listed?;
        super::print(&form::show(self.json, &listed, || {
            table(&listed, Paint::of(&io::stdout()))
        }))?;
        match listed.problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::Told(ExitKind::Failed)),
        }
    }
}

/// What each is for, and below it what it may use.
fn table(listed: &Listed, paint: Paint) -> String {
    let names = listed.agents.iter().map(|agent| agent.name.chars().count());
    let width = names.max().unwrap_or_default();
    let mut text = String::new();
    for agent in &listed.agents {
        let name = paint.bold(format!("{:width$}", agent.name));
        let turns = agent.max_turns;
        let model = agent.model.as_deref().map(one_line);
        let model = model.map(|model| format!(" · {model}"));
        let limits = format!("at most {turns} turns{}", model.unwrap_or_default());
        let about = one_line(&agent.description);
        let _ = writeln!(text, "{name}  {about}  {}", paint.dim(limits));
        let tools = match agent.allowed_tools.is_empty() {
            true => "no tools".to_owned(),
            false => agent.allowed_tools.join(", "),
        };
        let _ = writeln!(text, "{:width$}  {}", "", paint.dim(tools));
    }
    for problem in &listed.problems {
        let _ = writeln!(text, "{}", paint.bad(one_line(problem)));
    }
    text
}
