//! `dodona mcp`.

mod clients;
mod config;
mod link;

use std::sync::Arc;

use clap::{Args, Subcommand};
use dodona_proto::ExitKind;
use dodona_server::mcp::{Groups, serve_stdio};
use tokio_util::sync::CancellationToken;

use crate::failure::{Failure, in_full};
use crate::home::Home;
use crate::project;
use crate::shell::{Shell, tell};
use config::Config;
use link::{Line, Link};

const EXAMPLES: &str = "\
Examples:
  dodona mcp config claude-code           what to write where, so that a client starts it
  dodona mcp --project ~/work/site        serve a client about a project
  dodona mcp --tools vault,code,ask       offer these tools only

A client starts it and talks to it at standard input and output. Groups of tools are the names of
plugins, `ask` and `all`; without `--tools` it is `ask` and the tools of every plugin but `agent`,
`echo` and `web`. While `dodona serve` runs, clients can also use its address, at /mcp.";

/// Serve an MCP client (Claude Code, Cursor, VS Code, …) over standard input and output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    command: Option<Command>,

    /// The groups of tools to offer, separated by commas
    #[arg(long, value_name = "GROUPS")]
    tools: Option<Groups>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Config(Config),
}

impl Mcp {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self.command {
            Some(Command::Config(config)) => config.run(shell).await,
            None => serve(shell, self.tools.unwrap_or_default()).await,
        }
    }
}

async fn serve(shell: &Shell, groups: Groups) -> Result<(), Failure> {
    let home = Home::find()?;
    let root = project::root(shell.project.as_deref())?;
    if root.is_none() {
        tell(
            "dodona mcp: no project is here; tools that need one say so. Start it with `--project DIR`",
        );
    }
    let link = tokio::select! {
        biased;
        link = Link::start(home, root) => Arc::new(link?),
        () = shell.interrupt.requested() => return Err(shell.cancelled(None)),
    };
    let stop = CancellationToken::new();
    let serving = serve_stdio(Line(Arc::clone(&link)), groups, stop.clone());
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = shell.interrupt.requested() => {
            stop.cancel();
            serving.await
        }
    };
    link.close().await;
    served.map_err(|error| {
        Failure::new(ExitKind::Failed, in_full(&error))
            .hint("`dodona mcp` is started by MCP clients; `dodona mcp config` shows how to configure one")
    })
}
