//! `dodona mcp config`.

use std::io;

use clap::Args;
use dodona_proto::ExitKind;
use dodona_server::mcp::Groups;
use serde_json::json;

use super::clients::{CLIENTS, Client, TOKEN, Way};
use crate::cli::form::Form;
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::paint::Paint;
use crate::project;
use crate::shell::{Shell, tell};

/// Where `dodona serve` listens if it is not told otherwise.
const USUAL: &str = "http://127.0.0.1:7421";

const EXAMPLES: &str = "\
Examples:
  dodona mcp config                          the clients that are known
  dodona mcp config claude-code > .mcp.json
  dodona mcp config codex --tools vault,ask >> ~/.codex/config.toml
  dodona mcp config cursor --http            for a client that uses a running `dodona serve`";

/// Print the configuration that makes an MCP client use Dodona
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Config {
    /// The client [default: list the supported clients]
    client: Option<String>,

    /// Connect to a running server instead of starting `dodona mcp`
    #[arg(long)]
    http: bool,

    /// The groups of tools to offer, separated by commas
    #[arg(long, value_name = "GROUPS")]
    tools: Option<Groups>,

    #[command(flatten)]
    form: Form,
}

impl Config {
    pub(super) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let Some(name) = &self.client else {
            return crate::cli::print(&self.list());
        };
        let client = find(name)?;
        let way = match self.http {
            false => self.stdio(shell)?,
            true => self.remote(shell).await?,
        };
        let snippet = client.snippet(&way).ok_or_else(|| {
            let message = format!("{} cannot be given an address with a token", client.name);
            Failure::usage(message).hint("leave out `--http`: it then starts `dodona mcp` itself")
        })?;
        if self.form.json {
            let transport = if self.http { "http" } else { "stdio" };
            let about = json!({
                "client": client.name, "file": client.file, "transport": transport, "snippet": snippet,
            });
            return crate::cli::print(&format!("{about}\n"));
        }
        advise(client, &way);
        crate::cli::print(&snippet)
    }

    fn list(&self) -> String {
        let clients = CLIENTS.iter();
        let known: Vec<_> = clients
            .map(|client| json!({ "name": client.name, "file": client.file }))
            .collect();
        self.form.text(&json!({ "clients": known }), |_, _| {
            let lines = CLIENTS.iter();
            lines
                .map(|client| format!("{:<16}{}\n", client.name, client.file))
                .collect()
        })
    }

    /// How a client starts us. By our whole path: programs with windows have another `PATH`.
    fn stdio(&self, shell: &Shell) -> Result<Way, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(
                ExitKind::Failed,
                format!("could not find the path of this program: {error}"),
            )
        })?;
        let mut arguments = vec!["mcp".to_owned()];
        if let Some(root) = project::root(shell.project.as_deref())? {
            arguments.extend(["--project".to_owned(), root.to_string_lossy().into_owned()]);
        }
        if let Some(groups) = &self.tools {
            arguments.extend(["--tools".to_owned(), groups.to_string()]);
        }
        let command = program.to_string_lossy().into_owned();
        Ok(Way::Stdio { command, arguments })
    }

    /// Where a client finds us: at the server that runs, or where one usually does.
    async fn remote(&self, shell: &Shell) -> Result<Way, Failure> {
        let session = shell.session_in_project_if_any().await?;
        let project = session.project().map(|project| project.as_str().to_owned());
        let server = session.url().unwrap_or(USUAL).to_owned();
        session.close().await;
        let groups = self.tools.as_ref().map(|groups| format!("?tools={groups}"));
        let url = format!("{server}/mcp{}", groups.unwrap_or_default());
        Ok(Way::Http { url, project })
    }
}

fn find(name: &str) -> Result<&'static Client, Failure> {
    if let Some(client) = CLIENTS.iter().find(|client| client.name == name) {
        return Ok(client);
    }
    let names = CLIENTS.iter().map(|client| client.name);
    let hint = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", names.collect::<Vec<_>>().join(", ")),
    };
    Err(Failure::usage(format!("unknown client `{name}`")).hint(hint))
}

/// What a person has to do with it, beside what a program reads.
fn advise(client: &Client, way: &Way) {
    let paint = Paint::of(&io::stderr());
    tell(&format!("{} {}", paint.dim("for"), client.file));
    if let Way::Http { .. } = way {
        let make = "dodona token create --user local --name mcp --scope 'vault:*' --scope 'thread:*' \
                    --scope 'code:*' --scope 'search:*' --scope 'agent:*'";
        tell(&format!(
            "{} `dodona serve` must be running, and {TOKEN} (or the client's own variable) must hold a token; create one with:\n  {make}",
            paint.note("note:")
        ));
    }
}
