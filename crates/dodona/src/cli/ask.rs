//! `dodona ask`.

use std::io::{self, IsTerminal, Read};

use clap::Args;

use super::answer::{self, Form, Question, Screen};
use crate::failure::Failure;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona ask \"How are rules evaluated?\"
  dodona ask \"And who calls that?\"                continue the same conversation
  dodona ask --context release \"What is left to do?\"
  dodona ask --agent librarian \"Which notes have no links?\"
  git diff | dodona ask --no-tools --model small
  dodona ask \"Where is the journal written?\" --json | jq -r '.sources[].path'

The answer and its sources go to standard output, everything else to standard error.";

/// The largest question in bytes. The model is shown what its window has room for.
const LARGEST: u64 = 4 << 20;

/// Ask the project a question and get an answer that cites its sources
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ask {
    /// The question; `-` or nothing reads it from standard input
    question: Option<String>,

    /// The model that answers, by its name in the settings
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// The agent that answers, by its name [default: that of the conversation, or `oracle`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The conversation to continue, by name or id; created if missing [default: the agent's default one]
    #[arg(long, value_name = "NAME_OR_ID")]
    context: Option<String>,

    /// Answer without tools
    #[arg(long)]
    no_tools: bool,

    /// Print one JSON object: answer, sources, model, usage, cost, timings
    #[arg(long)]
    json: bool,
}

impl Ask {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let question = Question {
            message: message(self.question)?,
            agent: self.agent,
            context: self.context,
            model: self.model,
            tools: !self.no_tools,
        };
        let form = if self.json { Form::Json } else { Form::Text };
        let mut screen = Screen::new(form);
        let session = shell.session_to_ask(answer::approvers()).await?;
        let answer = match answer::ensure_context(&session, &question).await {
            Ok(()) => answer::ask(&session, shell, &question, &mut screen).await,
            Err(failure) => Err(failure),
        };
        session.close().await;
        let answer = answer?;
        if self.json {
            return super::print(&format!("{}\n", answer.to_json()));
        }
        screen.finish(&answer.response)?;
        screen.caveats(&answer.response, question.tools);
        Ok(())
    }
}

/// The question as it was given, or what standard input has.
fn message(given: Option<String>) -> Result<String, Failure> {
    let text = match given {
        Some(question) if question != "-" => question,
        None if io::stdin().is_terminal() => {
            return Err(Failure::usage("no question given").hint(
                "write `dodona ask \"How does it work?\"`, or `dodona chat` to ask several",
            ));
        }
        _ => read(io::stdin().lock())?,
    };
    match text.trim() {
        "" => Err(Failure::usage("the question is empty")),
        text => Ok(text.to_owned()),
    }
}

fn read(from: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    from.take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("could not read the question: {error}")))?;
    if text.len() as u64 > LARGEST {
        return Err(Failure::usage(format!(
            "the question is longer than {LARGEST} bytes"
        )));
    }
    Ok(text)
}
