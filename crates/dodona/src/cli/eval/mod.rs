//! `dodona eval`.

mod context;
mod functions;
mod job;
mod show;

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use dodona_proto::{ExitKind, RULE_TRIGGERS};
use serde_json::{Value, json};

use crate::failure::Failure;
use job::{Job, Language};

const EXAMPLES: &str = "\
Examples:
  dodona eval expr 'context.turn.token_usage > 0.8' --context turn.json
  dodona eval expr 'tool_failed(\"code_search\") and context.turn.number > 3' --explain
  dodona eval template 'At {{ (context.turn.token_usage * 100) | int }} %' --context turn.json
  dodona eval script --file rules/scripts/check.lua --context turn.json
  dodona eval expr --batch < cases.jsonl";

/// Evaluate an expression, a script or a template as rules do
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Eval {
    #[command(subcommand)]
    language: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A condition: a Python expression over the context
    Expr(Piece),
    /// A script in Luau, with limits
    Script(Piece),
    /// A Jinja template
    Template(Piece),
}

#[derive(Debug, Args)]
struct Piece {
    /// The source itself
    #[arg(required_unless_present_any = ["file", "batch"], conflicts_with_all = ["file", "batch"])]
    source: Option<String>,

    /// Read the source from a file
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    file: Option<PathBuf>,

    /// A JSON file with what is under `context.`; `-` for standard input. What it leaves out has
    /// its default
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    context: Option<PathBuf>,

    /// A JSON file with the settings of the rule's plugin
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    settings: Option<PathBuf>,

    /// Check as for a rule with this trigger: what is never `None` there needs no test
    #[arg(long, value_name = "TRIGGER", value_parser = RULE_TRIGGERS)]
    trigger: Option<String>,

    /// Show the value of every term (expressions only)
    #[arg(long)]
    explain: bool,

    /// One JSON object a line on standard input, one answer a line on standard output, in order
    #[arg(long)]
    batch: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Eval {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let (language, piece) = match self.language {
            Command::Expr(piece) => (Language::Expr, piece),
            Command::Script(piece) => (Language::Script, piece),
            Command::Template(piece) => (Language::Template, piece),
        };
        if piece.explain && language != Language::Expr {
            let message = "`--explain` is for expressions";
            return Err(Failure::usage(message.to_owned()));
        }
        match piece.batch {
            true => batch(language, &piece),
            false => one(language, &piece),
        }
    }
}

fn one(language: Language, piece: &Piece) -> Result<(), Failure> {
    let source = match (&piece.source, &piece.file) {
        (Some(source), _) => source.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => String::new(),
    };
    let input = json!({
        language.key(): source,
        "context": read_json(piece.context.as_deref())?,
        "settings": read_json(piece.settings.as_deref())?,
        "trigger": piece.trigger,
    });
    let name = piece.file.as_ref().map(|file| file.display().to_string());
    let answer = Job::new(language, piece.explain).answer(&input);
    if piece.json {
        super::print(&format!("{answer}\n"))?;
    } else if answer["ok"] == true {
        super::print(&show::success(&answer))?;
    } else {
        return Err(show::failure(&answer, name.as_deref(), &source));
    }
    match answer["ok"] == true {
        true => Ok(()),
        false => Err(Failure::Told(ExitKind::Failed)),
    }
}

/// Every line is answered, also one that makes no sense: the others are not its fault.
fn batch(language: Language, piece: &Piece) -> Result<(), Failure> {
    let job = Job::new(language, piece.explain);
    let mut out = io::stdout().lock();
    let mut lines = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).map_err(|error| {
            let message = format!("could not read standard input: {error}");
            Failure::new(ExitKind::Failed, message)
        })?;
        if read == 0 {
            return out.flush().map_err(|error| Failure::output(&error));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = match serde_json::from_slice::<Value>(&line) {
            Ok(mut input) => {
                if let (Some(trigger), Some(fields)) = (&piece.trigger, input.as_object_mut()) {
                    fields.entry("trigger").or_insert_with(|| json!(trigger));
                }
                job.answer(&input)
            }
            Err(error) => job::wrong_input(&format!("the line is not JSON: {error}")),
        };
        writeln!(out, "{answer}").map_err(|error| Failure::output(&error))?;
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = match file == Path::new("-") {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => fs::read_to_string(file),
    };
    text.map_err(|error| Failure::usage(format!("could not read `{}`: {error}", file.display())))
}

fn read_json(file: Option<&Path>) -> Result<Value, Failure> {
    let Some(file) = file else {
        return Ok(json!({}));
    };
    let text = read(file)?;
    serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let place = format!("{}:{line}:{column}", file.display());
        Failure::usage(format!("{place}: not JSON: {error}"))
    })
}
