//! `dodona plugins`.

mod add;
mod check;
mod info;
mod list;
mod logs;
mod new;
mod set;
mod test;
mod trace;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dodona_proto::PluginStatus;
use serde_json::{Value, json};

use self::new::Template;
use super::form::{Done, Form, answer};
use crate::failure::Failure;
use crate::session::Session;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona plugins list                         what is active, what is not, and why
  dodona plugins new standup                  a directory to start from, with a rule and tests
  dodona plugins new tally --luau             one with a script: a method, a hook, tests
  dodona plugins new tally --process          one with a program in Python
  dodona plugins test tally                   do its tests pass?
  dodona plugins check standup                is it right, and do its tests pass?
  dodona plugins add files -- npx -y @modelcontextprotocol/server-filesystem .
  dodona plugins add tracker --url https://tracker.example/mcp --header authorization=TOKEN
  dodona plugins disable echo
  dodona plugins grant jira net:jira.example
  dodona plugins set standup hour 8           for you alone
  dodona plugins remove jira --delete-data    with its databases and its state
  dodona plugins reload                       after a change; calls that run go on";

/// List, add, create, check, test, enable and reload plugins
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Plugins {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List plugins with their status and the reason for it
    List(Form),
    /// Show a plugin in full
    Info {
        /// The name of the plugin
        name: String,
        #[command(flatten)]
        form: Form,
    },
    /// Add an MCP server or a plugin directory
    Add(add::Add),
    /// Remove a plugin from the roster and deactivate it; its settings and its data stay
    Remove {
        /// The name of the plugin
        name: String,
        /// Delete its databases, its data directory and its state too; this cannot be undone
        #[arg(long)]
        delete_data: bool,
        #[command(flatten)]
        form: Form,
    },
    /// Enable a plugin
    Enable {
        /// The name of the plugin
        name: String,
        #[command(flatten)]
        form: Form,
    },
    /// Disable a plugin
    Disable {
        /// The name of the plugin
        name: String,
        #[command(flatten)]
        form: Form,
    },
    /// Grant a capability to a plugin
    Grant {
        /// The name of the plugin
        name: String,
        /// The capability, such as `prompt`, `call:vault` or `net:jira.example`
        #[arg(required = true, value_name = "CAPABILITY")]
        capabilities: Vec<String>,
        #[command(flatten)]
        form: Form,
    },
    /// Revoke a capability of a plugin
    Revoke {
        /// The name of the plugin
        name: String,
        /// The capability
        #[arg(required = true, value_name = "CAPABILITY")]
        capabilities: Vec<String>,
        #[command(flatten)]
        form: Form,
    },
    /// Set a plugin setting for yourself; it takes effect at once
    Set {
        /// The plugin
        name: String,
        /// The setting; `dodona plugins info NAME` lists them
        setting: String,
        /// The value
        #[arg(allow_negative_numbers = true)]
        value: String,
        #[command(flatten)]
        form: Form,
    },
    /// Reset a plugin setting to its shared value
    Unset {
        /// The plugin
        name: String,
        /// The setting
        setting: String,
        #[command(flatten)]
        form: Form,
    },
    /// Validate the roster and all plugins, or one plugin with the tests of its rules
    Check {
        /// A plugin of yours by name, or a directory with a manifest
        plugin: Option<PathBuf>,
        #[command(flatten)]
        form: Form,
    },
    /// List plugins in activation order with their dependencies
    Order(Form),
    /// Run the tests of a Luau plugin (`tests/*.toml`) without a server
    Test {
        /// A plugin of yours by name, or a directory with a manifest
        plugin: PathBuf,
        #[command(flatten)]
        form: Form,
    },
    /// Create a plugin directory with a manifest, a setting, a rule and its tests
    New {
        /// Its name
        name: String,
        /// Create a Luau script with a method, a hook and their tests
        #[arg(long)]
        luau: bool,
        /// Create a Python program with a method, a hook and a database
        #[arg(long, conflicts_with = "luau")]
        process: bool,
        #[command(flatten)]
        form: Form,
    },
    /// Reload the roster and all plugins; running calls continue
    Reload(Form),
    /// Show recent output and errors of an external plugin
    Logs {
        /// The name of the plugin
        name: String,
        /// Maximum number of lines
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        form: Form,
    },
    /// List hooks and their recent runs
    Trace {
        /// Only hooks of this plugin
        #[arg(long)]
        plugin: Option<String>,
        /// Maximum number of runs
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        form: Form,
    },
}

impl Plugins {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self.command {
            Command::New {
                name,
                luau,
                process,
                form,
            } => super::print(&new::make(&name, template(luau, process), form)?),
            Command::Test { plugin, form } => test::run(&plugin, form).await,
            Command::Check {
                plugin: Some(plugin),
                form,
            } => check::one(&plugin, form),
            command => {
                let session = shell.session().await?;
                let done = command.ask(&session).await;
                session.close().await;
                done?.print()
            }
        }
    }
}

impl Command {
    async fn ask(self, session: &Session) -> Result<Done, Failure> {
        match self {
            Self::List(form) => {
                let listed: list::Listed = answer(session, "plugins.list", json!({})).await?;
                Ok(form.text(&listed, list::table).into())
            }
            Self::Info { name, form } => {
                let params = json!({ "plugin": name });
                let told: Value = answer(session, "plugins.info", params).await?;
                Ok(form.text(&told, info::words).into())
            }
            Self::Add(add) => add.run(session).await,
            Self::Remove {
                name,
                delete_data,
                form,
            } => {
                let params = json!({ "plugin": name, "delete_data": delete_data });
                list::reloaded(session, "plugins.remove", params, form).await
            }
            Self::Enable { name, form } => {
                change(session, "plugins.enable", json!({ "plugin": name }), form).await
            }
            Self::Disable { name, form } => {
                change(session, "plugins.disable", json!({ "plugin": name }), form).await
            }
            Self::Grant {
                name,
                capabilities,
                form,
            } => {
                let params = json!({ "plugin": name, "capabilities": capabilities });
                change(session, "plugins.grant", params, form).await
            }
            Self::Revoke {
                name,
                capabilities,
                form,
            } => {
                let params = json!({ "plugin": name, "capabilities": capabilities });
                change(session, "plugins.revoke", params, form).await
            }
            Self::Set {
                name,
                setting,
                value,
                form,
            } => set::set(session, &name, &setting, Some(&value), form).await,
            Self::Unset {
                name,
                setting,
                form,
            } => set::set(session, &name, &setting, None, form).await,
            Self::Check { form, .. } => check::all(session, form).await,
            Self::Order(form) => {
                let ordered: list::Order = answer(session, "plugins.order", json!({})).await?;
                Ok(form.text(&ordered, list::order).into())
            }
            Self::Reload(form) => list::reload(session, form).await,
            Self::Trace {
                plugin,
                limit,
                form,
            } => {
                let params = json!({ "plugin": plugin, "limit": limit });
                let traced: trace::Traced = answer(session, "plugins.trace", params).await?;
                Ok(form.text(&traced, trace::words).into())
            }
            Self::Logs { name, limit, form } => {
                let params = json!({ "plugin": name, "limit": limit });
                let logs: logs::Logs = answer(session, "plugins.logs", params).await?;
                Ok(form.text(&logs, logs::words).into())
            }
            Self::New {
                name,
                luau,
                process,
                form,
            } => Ok(new::make(&name, template(luau, process), form)?.into()),
            Self::Test { plugin, form } => test::done(&plugin, form).await,
        }
    }
}

fn template(luau: bool, process: bool) -> Template {
    match (luau, process) {
        (true, _) => Template::Luau,
        (false, true) => Template::Process,
        (false, false) => Template::Rules,
    }
}

/// Changes the roster and tells how the plugin is afterwards.
async fn change(
    session: &Session,
    method: &str,
    params: Value,
    form: Form,
) -> Result<Done, Failure> {
    let status: PluginStatus = answer(session, method, params).await?;
    let words = |status: &PluginStatus, paint| list::lines(std::slice::from_ref(status), paint);
    Ok(form.text(&status, words).into())
}
