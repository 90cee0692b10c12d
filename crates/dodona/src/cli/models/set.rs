//! `dodona models set`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use dodona_llm::{ModelConfig, Models, Provider, process_environment};
use serde::Deserialize;
use toml_edit::{Table, value};

use super::key;
use crate::config::ConfigFile;
use crate::failure::Failure;
use crate::home::Home;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona models set sonnet --provider anthropic --model claude-sonnet-4-5 --key --default
  dodona models set mixed --provider openrouter --model openai/gpt-5-mini --fallback local
  dodona models set work --provider openai --base-url https://models.example/v1 --model m --key-env WORK_KEY
  pass show anthropic | dodona models set sonnet --key";

/// Add or change a model in your settings; options that are not given keep their values
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Set {
    /// A name for the model
    name: String,
    /// The provider
    #[arg(long, value_parser = PossibleValuesParser::new(Provider::ALL.map(Provider::as_str)))]
    provider: Option<String>,
    /// The provider's name for the model
    #[arg(long)]
    model: Option<String>,
    /// The base URL [default: the provider's usual one]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Read the key from the terminal or from standard input, and keep it in a file that only you
    /// can read
    #[arg(long, conflicts_with_all = ["key_env", "key_file"])]
    key: bool,
    /// The environment variable that holds the API key
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_file")]
    key_env: Option<String>,
    /// The file that holds the API key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Maximum length of an answer, in tokens
    #[arg(long, value_name = "TOKENS")]
    max_output_tokens: Option<u32>,
    /// Context window of the model, in tokens
    #[arg(long, value_name = "TOKENS")]
    context_window: Option<u32>,
    /// The model to use when this one is unavailable
    #[arg(long, value_name = "NAME")]
    fallback: Option<String>,
    /// Make it the default model
    #[arg(long)]
    default: bool,
}

impl Set {
    pub(super) async fn run(self, shell: &Shell) -> Result<String, Failure> {
        check_name(&self.name)?;
        let home = Home::find()?;
        let mut file = ConfigFile::read(&home.config_file())?;
        let table = file.model(&self.name)?;
        self.change(table)?;
        if self.key {
            // The path is known before the key is: nothing is asked for in vain.
            set_key_file(table, &home.config.join("keys").join(&self.name))?;
        }
        check(&self.name, &file)?;
        if self.key {
            let key = key::read(shell, &self.name).await?;
            key::store(&home, &self.name, &key)?;
        }
        if self.default {
            file.set_default(&self.name)?;
        }
        home.create()?;
        let path = file.write()?.display().to_string();
        let name = &self.name;
        Ok(format!(
            "saved model `{name}` in {path}\n\
             test it with `dodona models test {name}`; restart a running `dodona serve` to use it\n"
        ))
    }

    /// Puts what was named into the model's table.
    fn change(&self, table: &mut Table) -> Result<(), Failure> {
        let texts = [
            ("provider", &self.provider),
            ("model", &self.model),
            ("base_url", &self.base_url),
            ("key_env", &self.key_env),
            ("fallback", &self.fallback),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                table.insert(name, value(text));
            }
        }
        let numbers = [
            ("max_output_tokens", self.max_output_tokens),
            ("context_window", self.context_window),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                table.insert(name, value(i64::from(number)));
            }
        }
        if self.key_env.is_some() {
            table.remove("key_file");
        }
        match &self.key_file {
            Some(path) => {
                let path = std::path::absolute(path).map_err(|error| {
                    Failure::usage(format!("`{}` cannot be found: {error}", path.display()))
                })?;
                set_key_file(table, &path)
            }
            None => Ok(()),
        }
    }
}

pub(super) fn set_key_file(table: &mut Table, path: &std::path::Path) -> Result<(), Failure> {
    let Some(text) = path.to_str() else {
        return Err(Failure::usage(format!(
            "`{}` cannot be written to the settings: not valid UTF-8",
            path.display()
        )));
    };
    table.remove("key_env");
    table.insert("key_file", value(text));
    Ok(())
}

/// A name is also a file's.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match (1..=64).contains(&name.len()) && name.chars().all(fits) {
        true => Ok(()),
        false => {
            let failure = Failure::usage(format!("invalid model name `{name}`"));
            Err(failure.hint("use letters, digits, `-` and `_`, such as `gpt-5` or `local`"))
        }
    }
}

/// Whether the model can be used as it would be written: what is wrong is told before anything
/// is stored.
pub(super) fn check(name: &str, file: &ConfigFile) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Whole {
        models: BTreeMap<String, toml::Value>,
    }
    let whole: Whole = toml::from_str(&file.text())
        .map_err(|error| Failure::usage(format!("`models`: {}", error.message())))?;
    let mut configs = BTreeMap::new();
    for (other, table) in whole.models {
        let config = ModelConfig::deserialize(table);
        match config {
            Ok(config) => {
                configs.insert(other, config);
            }
            // The faults of others are not this command's to tell.
            Err(_) if other != name => {}
            Err(error) => {
                let failure = Failure::usage(format!("`models.{name}`: {}", error.message()));
                return Err(failure.hint("a new model needs at least `--provider` and `--model`"));
            }
        }
    }
    let (_, problems) = Models::from_config(&configs, Some(name), &process_environment());
    let Some(problem) = problems.into_iter().find(|problem| problem.model == name) else {
        return Ok(());
    };
    let failure = Failure::usage(format!("`models.{name}`: {}", problem.error));
    Err(match problem.error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}
