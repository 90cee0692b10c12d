//! `dodona models`.

mod key;
mod list;
mod remove;
mod set;
mod stored;
mod test;

use clap::{Args, Subcommand};
use dodona_llm::{Models as Built, process_environment};

pub(crate) use stored::StoredModels;

use crate::config::{self, Settings};
use crate::failure::Failure;
use crate::home::Home;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona models set sonnet --provider anthropic --model claude-sonnet-4-5 --key --default
  dodona models set local --provider ollama --model qwen3:8b
  dodona models test sonnet                  check key, address and model
  dodona models default local
  dodona models list";

/// List, configure and test models
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Models {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the models and where their keys come from
    List {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a short request to a model and report what fails
    Test {
        /// The model [default: the default model]
        name: Option<String>,
    },
    Set(Box<set::Set>),
    /// Make a model the default
    Default {
        /// The name of the model
        name: String,
    },
    /// Remove a model from your settings; a key file stays
    Remove {
        /// The name of the model
        name: String,
    },
}

impl Models {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self.command {
            Command::List { json } => super::print(&list::text(&Known::load()?, json)),
            Command::Test { name } => {
                let known = Known::load()?;
                tokio::select! {
                    tried = test::run(&known, name.as_deref()) => super::print(&tried?),
                    () = shell.interrupt.requested() => Err(shell.cancelled(None)),
                }
            }
            Command::Set(set) => super::print(&set.run(shell).await?),
            Command::Default { name } => super::print(&remove::make_default(&name)?),
            Command::Remove { name } => super::print(&remove::remove(&name)?),
        }
    }
}

/// The models that the settings name.
pub(in crate::cli) struct Known {
    settings: Settings,
    pub(in crate::cli) default: String,
}

impl Known {
    pub(in crate::cli) fn load() -> Result<Self, Failure> {
        let settings = config::load(&Home::find()?.config_file())?;
        let asked = settings.agent.model.as_deref();
        let (models, _) = Built::from_config(&settings.models, asked, &process_environment());
        let default = models.default_model().name().to_owned();
        Ok(Self { settings, default })
    }
}
