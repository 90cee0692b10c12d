//! `dodona prompt`.

use std::fmt::Write as _;
use std::io;

use clap::{Args, Subcommand};
use dodona_proto::ExitKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::paint::{Paint, harmless, one_line};
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona prompt show                          what the next question would come after
  dodona prompt show --message \"Why SQLite?\"
  dodona prompt show --context login --model small
  dodona prompt show --json | jq .tokens";

/// Show what a model would receive
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Prompt {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the request that a question would send to the model; nothing is sent
    Show {
        /// The question
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
        /// The agent that would answer, by its name [default: that of the conversation, or `oracle`]
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// The conversation, by name or id [default: the agent's default one]
        #[arg(long, value_name = "NAME_OR_ID")]
        context: Option<String>,
        /// The model, by its name in the settings
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

impl Prompt {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let Command::Show {
            message,
            agent,
            context,
            model,
            json,
        } = self.command;
        let mut params = params(message.as_deref(), context.as_deref(), model.as_deref());
        if let Some(agent) = agent {
            params["agent_id"] = json!(agent);
        }
        let session = shell.session_in_project().await?;
        let shown = session.ask::<Value>("agent.prompt", params).await;
        session.close().await;
        let shown = shown?;
        super::print(&match json {
            true => format!("{shown}\n"),
            false => text(shown, Paint::of(&io::stdout()))?,
        })
    }
}

/// What to ask `agent.prompt`.
pub(super) fn params(message: Option<&str>, context: Option<&str>, model: Option<&str>) -> Value {
    let named = [
        ("message", message),
        ("context_id", context),
        ("model", model),
    ];
    let given = named
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    Value::Object(given.collect())
}

/// What `agent.prompt` answers.
#[derive(Deserialize)]
struct Shown {
    model: String,
    system: String,
    messages: Vec<Value>,
    tools: Vec<Tool>,
    tools_known: u64,
    tokens: Tokens,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: String,
    parameters: Value,
}

#[derive(Deserialize)]
struct Tokens {
    system: u64,
    messages: u64,
    tools: u64,
    tools_saved: u64,
    total: u64,
}

/// The parts in the order in which they are sent, each with its size.
pub(super) fn text(shown: Value, paint: Paint) -> Result<String, Failure> {
    let shown: Shown = serde_json::from_value(shown).map_err(|error| {
        let message = format!("could not read what `agent.prompt` answered: {error}");
        Failure::new(ExitKind::Failed, message)
    })?;
    let tokens = &shown.tokens;
    let mut text = String::new();
    heading(&mut text, paint, "system", tokens.system);
    let _ = writeln!(text, "{}", harmless(shown.system.trim_end()));
    heading(&mut text, paint, "tools", tokens.tools);
    for tool in &shown.tools {
        tool_text(tool, paint, &mut text);
    }
    if tokens.tools_saved > 0 {
        let (known, saved) = (shown.tools_known, tokens.tools_saved);
        let line =
            format!("{known} tools in all; {saved} tokens saved by not telling of the others");
        let _ = writeln!(text, "{}", paint.dim(line));
    }
    heading(&mut text, paint, "messages", tokens.messages);
    for message in &shown.messages {
        message_text(message, paint, &mut text);
    }
    let _ = writeln!(
        text,
        "\n{}",
        paint.dim(format_args!(
            "{} tokens in all · {}",
            tokens.total,
            one_line(&shown.model)
        ))
    );
    Ok(text)
}

fn heading(text: &mut String, paint: Paint, part: &str, tokens: u64) {
    if !text.is_empty() {
        text.push('\n');
    }
    let size = paint.dim(format!("{tokens} tokens"));
    let _ = writeln!(text, "{}  {size}", paint.heading(part));
}

fn tool_text(tool: &Tool, paint: Paint, text: &mut String) {
    let _ = writeln!(text, "{}", paint.bold(one_line(&tool.name)));
    for line in harmless(tool.description.trim()).lines() {
        let _ = writeln!(text, "    {line}");
    }
    let parameters = tool.parameters.to_string();
    let _ = writeln!(text, "    {}", paint.dim(harmless(&parameters)));
}

/// Who says it, and what; whatever else is sent with it as JSON.
fn message_text(message: &Value, paint: Paint, text: &mut String) {
    let role = message["role"].as_str().unwrap_or("?");
    let _ = writeln!(text, "{}", paint.bold(one_line(role)));
    let fields = message.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| *name != "role") {
        match value {
            Value::Null => {}
            Value::String(said) if name == "content" => {
                for line in harmless(said.trim_end()).lines() {
                    let _ = writeln!(text, "    {line}");
                }
            }
            value => {
                let value = value.to_string();
                let line = format!("{}: {}", one_line(name), harmless(&value));
                let _ = writeln!(text, "    {}", paint.dim(line));
            }
        }
    }
}
