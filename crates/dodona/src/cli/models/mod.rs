//! `dodona models`.

mod key;
mod list;
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
  dodona models test sonnet                  does it answer, and if not, why?
  dodona models list";

/// List, try and set the models that answer
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
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Ask a model something small, and say what is wrong if it does not answer
    Test {
        /// Which model [default: the one that answers when nobody says which]
        name: Option<String>,
    },
    Set(Box<set::Set>),
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
        }
    }
}

/// The models that the settings name.
struct Known {
    settings: Settings,
    default: String,
}

impl Known {
    fn load() -> Result<Self, Failure> {
        let settings = config::load(&Home::find()?.config_file())?;
        let asked = settings.agent.model.as_deref();
        let (models, _) = Built::from_config(&settings.models, asked, &process_environment());
        let default = models.default_model().name().to_owned();
        Ok(Self { settings, default })
    }
}
