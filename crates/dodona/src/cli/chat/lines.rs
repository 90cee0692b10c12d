//! Where what is typed comes from: a terminal, with editing and a history, or any other input.

use std::io::{self, BufRead, IsTerminal};

use dodona_proto::ExitKind;
use rustyline::completion::Completer;
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};

use super::entry::{COMMANDS, is_complete};
use super::history::History;
use crate::failure::Failure;
use crate::home::Home;

/// What came.
pub(super) enum Line {
    /// Something was typed.
    Text(String),
    /// Ctrl-C: what was typed is dropped.
    Cleared,
    /// There is no more.
    End,
}

/// Where it comes from.
pub(super) enum Lines {
    /// Somebody types.
    Terminal(Box<Terminal>),
    /// A file or a pipe, whose questions are answered one after the other.
    Plain,
}

impl Lines {
    /// A terminal, if there is one on both sides.
    pub(super) fn open(home: &Home) -> Result<Self, Failure> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Ok(Self::Plain);
        }
        home.create()?;
        Ok(Self::Terminal(Box::new(Terminal::open(History::of(
            &home.data,
        ))?)))
    }

    /// Waits for the next. Dropping the future leaves a thread behind that waits on.
    pub(super) async fn next(&mut self, prompt: &str) -> Result<Line, Failure> {
        match self {
            Self::Terminal(terminal) => terminal.next(prompt).await,
            Self::Plain => blocking(read_plain).await?,
        }
    }
}

/// A terminal. It is as it was before when this is dropped, even in the middle of a line.
pub(super) struct Terminal {
    /// Not there while a thread waits for a line.
    editor: Option<Editor<Typing, MemHistory>>,
    history: History,
    _mode: Mode,
}

impl Terminal {
    fn open(history: History) -> Result<Self, Failure> {
        let config = Config::builder()
            .auto_add_history(false)
            .max_history_size(usize::MAX)
            .map_err(|error| unusable(&error))?
            .build();
        let mut editor = Editor::with_history(config.clone(), MemHistory::with_config(&config))
            .map_err(|error| unusable(&error))?;
        editor.set_helper(Some(Typing));
        for entry in history.load() {
            editor
                .add_history_entry(entry)
                .map_err(|error| unusable(&error))?;
        }
        Ok(Self {
            editor: Some(editor),
            history,
            _mode: Mode::now(),
        })
    }

    async fn next(&mut self, prompt: &str) -> Result<Line, Failure> {
        let mut editor = self
            .editor
            .take()
            .expect("a line that was not waited for is the last");
        let prompt = prompt.to_owned();
        let (editor, read) = blocking(move || {
            let read = editor.readline(&prompt);
            (editor, read)
        })
        .await?;
        let editor = self.editor.insert(editor);
        match read {
            Ok(text) => {
                if !text.trim().is_empty() {
                    editor
                        .add_history_entry(text.as_str())
                        .map_err(|error| unusable(&error))?;
                    self.history.add(&text);
                }
                Ok(Line::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(Line::Cleared),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(unusable(&error)),
        }
    }
}

fn unusable(error: &ReadlineError) -> Failure {
    Failure::new(
        ExitKind::Failed,
        format!("could not read from the terminal: {error}"),
    )
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Failure::new(
            ExitKind::Failed,
            format!("could not read the input: {error}"),
        )
    })
}

/// Reads lines until they are a whole.
fn read_plain() -> Result<Line, Failure> {
    let mut text = String::new();
    let mut input = io::stdin().lock();
    loop {
        let read = input
            .read_line(&mut text)
            .map_err(|error| Failure::usage(format!("could not read the input: {error}")))?;
        if read == 0 && text.is_empty() {
            return Ok(Line::End);
        }
        if read == 0 || is_complete(text.trim_end_matches(['\n', '\r'])) {
            return Ok(Line::Text(text));
        }
    }
}

/// The modes of the terminal, which editing a line changes.
struct Mode {
    #[cfg(unix)]
    saved: Option<rustix::termios::Termios>,
}

impl Mode {
    #[cfg(unix)]
    fn now() -> Self {
        Self {
            saved: rustix::termios::tcgetattr(io::stdin()).ok(),
        }
    }

    #[cfg(not(unix))]
    fn now() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for Mode {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            // A terminal that is gone needs no modes.
            let _ = rustix::termios::tcsetattr(
                io::stdin(),
                rustix::termios::OptionalActions::Now,
                saved,
            );
        }
    }
}

/// What the editor has to know about what is typed.
struct Typing;

impl Helper for Typing {}

impl Hinter for Typing {
    type Hint = String;
}

impl Highlighter for Typing {}

impl Validator for Typing {
    fn validate(&self, typed: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(typed.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Completer for Typing {
    type Candidate = String;

    /// The names of commands.
    fn complete(
        &self,
        line: &str,
        position: usize,
        _history: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..position).and_then(|text| text.strip_prefix('/'));
        let Some(typed) = typed else {
            return Ok((0, Vec::new()));
        };
        let names = COMMANDS.iter().filter(|(name, ..)| name.starts_with(typed));
        let full = names.map(|(name, wants, _)| match *wants {
            "" => format!("/{name}"),
            _ => format!("/{name} "),
        });
        Ok((0, full.collect()))
    }
}
