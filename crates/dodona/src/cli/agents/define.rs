//! `dodona agents define`.

use std::io::{self, Read};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::show;
use crate::cli::form::{Done, Form, answer};
use crate::failure::Failure;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  dodona agents define scout --tools code_search,code_read --prompt \"You find things.\"
  dodona agents define scout --tools code_search --prompt-file scout.md --replace
  dodona agents define editor --tools vault_read --extra-tools vault_write --prompt-file - < editor.md

The definition is checked first: with an unknown tool, a tool that is not for this agent or an invalid
prompt nothing is written. A prompt is a template; `{{ agent }}` and `{{ project }}` are filled in.";

/// The largest prompt, in bytes.
const MAX_PROMPT: u64 = 256 * 1024;

/// Define an agent in your configuration, or replace it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Define {
    /// Its name: lower-case letters, digits, `_` and `-`
    agent: String,
    /// What it is for; the main agent reads this when it delegates
    #[arg(long, default_value = "", hide_default_value = true)]
    description: String,
    /// The prompt
    #[arg(long, value_name = "TEXT", required_unless_present = "prompt_file")]
    prompt: Option<String>,
    /// The file with the prompt, or `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    /// The tools that it may use, such as `vault_read`, separated by commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
    /// Tools that it may use although their scope does not include it
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    extra_tools: Vec<String>,
    /// Maximum number of model requests per query, from 1 to 100
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    max_turns: u32,
    /// The model that answers, by its name in the settings [default: the default model]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The token budget of its conversations, from 4000 to 128000
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(4_000..=128_000))]
    token_budget: Option<u64>,
    /// Replace your definition of the same name
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    form: Form,
}

impl Define {
    /// Reads the prompt from its file.
    pub(super) fn read_prompt(mut self) -> Result<Self, Failure> {
        let Some(file) = self.prompt_file.take() else {
            return Ok(self);
        };
        let mut text = String::new();
        let read = match file.as_os_str() == "-" {
            true => io::stdin()
                .lock()
                .take(MAX_PROMPT + 1)
                .read_to_string(&mut text),
            false => std::fs::File::open(&file)
                .and_then(|file| file.take(MAX_PROMPT + 1).read_to_string(&mut text)),
        };
        let shown = file.display();
        read.map_err(|error| Failure::usage(format!("could not read `{shown}`: {error}")))?;
        if text.len() as u64 > MAX_PROMPT {
            let message = format!("`{shown}` is larger than {MAX_PROMPT} bytes");
            return Err(Failure::usage(message));
        }
        self.prompt = Some(text);
        Ok(self)
    }

    pub(super) async fn on(self, session: &Session) -> Result<Done, Failure> {
        let mut params = json!({
            "agent_id": self.agent,
            "description": self.description,
            "system_prompt": self.prompt.unwrap_or_default(),
            "allowed_tools": self.tools,
            "extra_tools": self.extra_tools,
            "max_turns": self.max_turns,
            "replace": self.replace,
        });
        if let Some(model) = self.model {
            params["model_override"] = json!(model);
        }
        if let Some(budget) = self.token_budget {
            params["token_budget"] = json!(budget);
        }
        let defined: Value = answer(session, "agent.define", params).await?;
        Ok(self.form.text(&defined, show::defined).into())
    }
}
