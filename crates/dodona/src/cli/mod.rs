//! The commands. Each is one file whose doc comment is its help.

mod agents;
mod answer;
mod approvals;
mod ask;
mod backup;
mod call;
mod calls;
mod cancel;
mod chat;
mod completions;
mod config;
mod contexts;
mod doctor;
mod eval;
mod events;
mod form;
mod index;
mod init;
mod logs;
mod man;
mod mcp;
mod methods;
pub(crate) mod models;
mod notes;
mod open;
mod own_project;
mod plugins;
mod prompt;
mod query;
mod restore;
mod rules;
mod search;
mod serve;
mod start;
mod steer;
mod threads;
mod token;
mod trust;
mod typo;
mod usage;
mod web;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::OsStringValueParser;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand, ValueEnum};
use dodona_proto::ExitKind;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::logs::{self as program_log, Audience};
use crate::shell::Shell;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  dodona ask \"How are rules evaluated?\"
  dodona chat                          start a conversation
  dodona search \"journal recovery\"     search notes, code and history
  dodona models set                    configure a model
  dodona rules list                    list rules
  dodona serve                         start the server; `dodona open` shows the page
  dodona mcp config claude-code        use Dodona from an MCP client
  dodona call echo.say text=hello      call a method
  dodona doctor                        check the installation

Environment:
  DODONA_HOME   directory for settings and data, instead of the standard ones
  DODONA_LOG    log level on standard error: error, warn, info, debug, trace
  NO_COLOR      disable colors";

/// Ask questions about your notes and code, get cited answers, and control what the agent may do
#[derive(Debug, Parser)]
#[command(name = "dodona", version, styles = STYLES, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    /// Without a command a short overview is shown.
    #[command(subcommand)]
    command: Option<Command>,

    /// The project directory [default: the nearest parent with `.dodona` or `.git`]
    // Without a value it says that the nearest project is meant, where a command has a choice.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = "",
        value_parser = OsStringValueParser::new(),
        help_heading = "Global options"
    )]
    project: Option<OsString>,

    /// When to use colors
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options",
        hide_possible_values = false
    )]
    color: When,

    /// Print text unchanged: keep control characters, and secrets in exports
    #[arg(long, global = true, help_heading = "Global options")]
    raw: bool,

    /// Create databases again that existed before and are missing, without their data
    // Hidden: it is for the one start after a loss, and the error names it.
    #[arg(long, global = true, hide = true)]
    accept_data_loss: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ask(ask::Ask),
    Chat(chat::Chat),
    Search(search::Search),
    Notes(notes::Notes),
    Threads(threads::Threads),
    Web(web::Web),
    #[command(visible_alias = "context")]
    Contexts(contexts::Contexts),
    Agents(agents::Agents),
    Query(query::Query),
    Trace(query::Trace),
    Replay(query::Replay),
    Usage(usage::Usage),
    Prompt(prompt::Prompt),
    Index(index::Index),
    Init(init::Init),
    Config(config::Config),
    Call(call::Call),
    Methods(methods::Methods),
    Models(models::Models),
    Plugins(plugins::Plugins),
    Rules(rules::Rules),
    Events(events::Events),
    Logs(logs::Logs),
    Serve(serve::Serve),
    Mcp(mcp::Mcp),
    Open(open::Open),
    Calls(calls::Calls),
    Cancel(cancel::Cancel),
    Steer(steer::Steer),
    Approvals(approvals::Approvals),
    Token(token::Token),
    Trust(trust::Trust),
    Eval(eval::Eval),
    Doctor(doctor::Doctor),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    fn audience(&self) -> Audience {
        match self {
            Self::Serve(_) | Self::Mcp(_) => Audience::Operator,
            _ => Audience::Caller,
        }
    }
}

impl Cli {
    /// Reads the command line. Where it is invalid, or asks for help, the process ends here.
    pub(crate) fn parse_arguments(words: Vec<OsString>) -> Self {
        let cli = Self::try_parse_from(words).unwrap_or_else(|error| typo::exit(error));
        cli.color.set();
        if cli.raw {
            crate::paint::print_raw();
        }
        if cli.accept_data_loss {
            crate::session::accept_data_loss();
        }
        cli
    }

    /// Runs the command.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let audience = self.command.as_ref().map(Command::audience);
        program_log::start(audience.unwrap_or(Audience::Caller))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::new(
                    ExitKind::Failed,
                    format!("could not start threads: {error}"),
                )
            })?;
        let outcome = runtime.block_on(self.dispatch());
        // What still runs in the background has nothing to store: the session was closed.
        runtime.shutdown_background();
        outcome
    }

    async fn dispatch(mut self) -> Result<(), Failure> {
        if let Some(Command::Config(config)) = &mut self.command {
            config.take_key_from(&mut self.project);
        }
        let interrupt = Interrupt::watch().map_err(|error| {
            Failure::new(
                ExitKind::Failed,
                format!("could not watch for Ctrl-C: {error}"),
            )
        })?;
        let shell = Shell {
            names_project: self.project.is_some(),
            project: self
                .project
                .filter(|dir| !dir.is_empty())
                .map(PathBuf::from),
            interrupt,
        };
        let Some(command) = self.command else {
            return start::run(&shell);
        };
        match command {
            Command::Ask(ask) => ask.run(&shell).await,
            Command::Chat(chat) => chat.run(&shell).await,
            Command::Search(search) => search.run(&shell).await,
            Command::Notes(notes) => notes.run(&shell).await,
            Command::Threads(threads) => threads.run(&shell).await,
            Command::Web(web) => web.run(&shell).await,
            Command::Contexts(contexts) => contexts.run(&shell).await,
            Command::Agents(agents) => agents.run(&shell).await,
            Command::Query(query) => query.run(&shell).await,
            Command::Trace(trace) => trace.run(&shell).await,
            Command::Replay(replay) => replay.run(&shell).await,
            Command::Usage(usage) => usage.run(&shell).await,
            Command::Prompt(prompt) => prompt.run(&shell).await,
            Command::Index(index) => index.run(&shell).await,
            Command::Init(init) => init.run(&shell).await,
            Command::Config(config) => config.run(&shell).await,
            Command::Call(call) => call.run(&shell).await,
            Command::Methods(methods) => methods.run(&shell).await,
            Command::Models(models) => models.run(&shell).await,
            Command::Plugins(plugins) => plugins.run(&shell).await,
            Command::Rules(rules) => rules.run(&shell).await,
            Command::Events(events) => events.run(&shell).await,
            Command::Logs(logs) => logs.run(&shell).await,
            Command::Serve(serve) => serve.run(&shell).await,
            Command::Mcp(mcp) => mcp.run(&shell).await,
            Command::Open(open) => open.run(&shell).await,
            Command::Calls(calls) => calls.run(&shell).await,
            Command::Cancel(cancel) => cancel.run(&shell).await,
            Command::Steer(steer) => steer.run(&shell).await,
            Command::Approvals(approvals) => approvals.run(&shell).await,
            Command::Token(token) => token.run(&shell).await,
            Command::Trust(trust) => trust.run(&shell).await,
            Command::Eval(eval) => eval.run(),
            Command::Doctor(doctor) => doctor.run(&shell).await,
            Command::Backup(backup) => backup.run().await,
            Command::Restore(restore) => restore.run().await,
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}

/// Writes a command's whole output.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::output(&error))
}

impl When {
    fn set(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
