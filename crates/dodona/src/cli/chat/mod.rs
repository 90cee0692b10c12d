//! `dodona chat`.

mod command;
mod entry;
mod history;
mod lines;

use std::io;

use clap::Args;
use dodona_proto::ExitKind;

use super::answer::{self, Answer, Form, Question, Screen};
use crate::failure::Failure;
use crate::home::Home;
use crate::paint::Paint;
use crate::quantity;
use crate::shell::{self, Shell};
use entry::{Command, Entry};
use lines::{Line, Lines};

const EXAMPLES: &str = "\
Examples:
  dodona chat
  dodona chat --context release --model small
  dodona chat --agent librarian
  dodona chat < questions.txt        each line is a question

While it runs:
  /help        what else can be typed
  \\            at the end of a line: the question goes on in the next
  ```          begins and ends a block of several lines
  Ctrl-C       stops an answer, or drops what was typed
  Ctrl-D       ends";

/// Start an interactive conversation about the project
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chat {
    /// The model that answers, by its name in the settings
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// The agent that answers, by its name [default: that of the conversation, or `oracle`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The conversation to continue, by name or id [default: the agent's default one]
    #[arg(long, value_name = "NAME_OR_ID")]
    context: Option<String>,

    /// Answer without tools
    #[arg(long)]
    no_tools: bool,
}

impl Chat {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let mut lines = Lines::open(&Home::find()?)?;
        let mut talk = Talk {
            shell,
            agent: self.agent,
            context: self.context,
            model: self.model,
            tools: !self.no_tools,
            screen: Screen::new(Form::Text),
        };
        match lines {
            Lines::Terminal(_) => talk.with_somebody(&mut lines).await,
            Lines::Plain => talk.with_a_list(&mut lines).await,
        }
    }
}

/// A chat.
struct Talk<'s> {
    shell: &'s Shell,
    agent: Option<String>,
    context: Option<String>,
    model: Option<String>,
    tools: bool,
    screen: Screen,
}

/// Whether it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

impl Talk<'_> {
    /// Goes on whatever goes wrong, until somebody wants it to end.
    async fn with_somebody(&mut self, lines: &mut Lines) -> Result<(), Failure> {
        greet();
        loop {
            self.shell.interrupt.again();
            let prompt = self.prompt();
            let line = tokio::select! {
                biased;
                () = self.shell.interrupt.ended() => Line::End,
                line = lines.next(&prompt) => line?,
            };
            let entry = match line {
                Line::Text(text) => Entry::read(&text),
                Line::Cleared => continue,
                Line::End => return Ok(()),
            };
            match self.take(entry).await {
                Ok(Next::Line) => {}
                Ok(Next::End) => return Ok(()),
                Err(Failure::Unread) => return Err(Failure::Unread),
                // It was told, and the next question may do better.
                Err(failure) => {
                    failure.tell();
                }
            }
            if self.shell.interrupt.is_ended() {
                return Err(Failure::Told(ExitKind::Cancelled));
            }
        }
    }

    /// Answers every question; how the first one failed is how the whole did. Ctrl-C ends it.
    async fn with_a_list(&mut self, lines: &mut Lines) -> Result<(), Failure> {
        let mut failed = None;
        loop {
            let line = tokio::select! {
                biased;
                () = self.shell.interrupt.requested() => return Err(self.shell.cancelled(None)),
                line = lines.next("") => line?,
            };
            let Line::Text(text) = line else { break };
            match self.take(Entry::read(&text)).await {
                Ok(Next::Line) => {}
                Ok(Next::End) => break,
                Err(end @ (Failure::Unread | Failure::Told(ExitKind::Cancelled))) => {
                    return Err(end);
                }
                Err(failure) => {
                    failed = failed.or(failure.exit());
                    failure.tell();
                }
            }
        }
        match failed {
            Some(exit) => Err(Failure::Told(exit)),
            None => Ok(()),
        }
    }

    fn prompt(&self) -> String {
        match (&self.context, &self.agent) {
            (Some(context), _) => format!("{context}> "),
            (None, Some(agent)) => format!("@{agent}> "),
            (None, None) => "> ".to_owned(),
        }
    }

    async fn take(&mut self, entry: Entry) -> Result<Next, Failure> {
        match entry {
            Entry::Empty => {}
            Entry::Question(message) => self.ask(message).await?,
            Entry::Command(Command::Quit) => return Ok(Next::End),
            Entry::Command(command) => self.run(command).await?,
            Entry::Unknown { word, meant } => {
                let failure = Failure::usage(format!("unknown command `/{word}`"));
                return Err(failure.hint(match meant {
                    Some(meant) => format!("did you mean `/{meant}`?"),
                    None => "`/help` lists the commands".to_owned(),
                }));
            }
        }
        Ok(Next::Line)
    }

    /// Between questions the home is free for other commands, and a server that was started
    /// meanwhile is found: every question has a session of its own.
    async fn ask(&mut self, message: String) -> Result<(), Failure> {
        let question = Question {
            message,
            agent: self.agent.clone(),
            context: self.context.clone(),
            model: self.model.clone(),
            tools: self.tools,
        };
        let session = self.shell.session_to_ask(answer::approvers()).await?;
        let answer = match answer::ensure_context(&session, &question).await {
            Ok(()) => answer::ask(&session, self.shell, &question, &mut self.screen).await,
            Err(failure) => Err(failure),
        };
        session.close().await;
        let answer = answer?;
        self.screen.finish(&answer.response)?;
        self.screen.caveats(&answer.response, self.tools);
        shell::tell(&Paint::of(&io::stderr()).dim(summary(&answer)).to_string());
        super::print("\n")
    }
}

fn greet() {
    let line = "Ask about this project. /help for commands, Ctrl-D to quit.";
    shell::tell(&Paint::of(&io::stderr()).dim(line).to_string());
}

/// What an answer took.
fn summary(answer: &Answer) -> String {
    let response = &answer.response;
    let tokens = response.usage.input_tokens + response.usage.output_tokens;
    let mut parts = vec![response.model.clone()];
    if tokens > 0 {
        parts.push(format!("{tokens} tokens"));
    }
    // What costs nothing needs no price.
    if let Some(micros) = response.cost_micros.filter(|micros| *micros > 0) {
        parts.push(command::dollars(micros));
    }
    parts.push(quantity::show_elapsed(answer.total));
    parts.join(" · ")
}
