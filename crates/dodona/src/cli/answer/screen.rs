//! An answer as people see it: the text on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write as _};

use dodona_proto::{HubStreamItem, ItemBody};
use serde_json::Value;

use super::Response;
use super::markdown::Markdown;
use super::tool::Tool;
use crate::cli::search;
use crate::failure::Failure;
use crate::layout;
use crate::live::Live;
use crate::paint::{self, Paint, harmless, one_line};
use crate::shell;

/// Where answers are shown.
pub(crate) struct Screen {
    form: Form,
    out: Paint,
    err: Paint,
    /// Whether standard output is a terminal: what is written there may steer it, and what goes
    /// to standard error stands on the same screen.
    to_terminal: bool,
    /// Whether there is somebody to see how a model reasons.
    thoughts: bool,
    live: Option<Live>,
    tools: Vec<Tool>,
    line: Line,
    text: Text,
    /// Renders the text where standard output is a terminal; other readers get it unchanged.
    markdown: Option<Markdown>,
}

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Form {
    /// A program that wants the end only.
    Json,
    /// People.
    Text,
}

/// What the line is in which the cursor of the terminal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Empty,
    Text,
    Thought,
}

/// What of the answer has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Nothing,
    /// Some, and whether its last line has ended.
    Some {
        ended: bool,
    },
    /// Some that a model said before it used tools or thought again: what follows is another text.
    Aside {
        ended: bool,
    },
}

impl Screen {
    pub(in crate::cli) fn new(form: Form) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        Self {
            form,
            out: Paint::of(&stdout),
            err: Paint::of(&stderr),
            to_terminal: stdout.is_terminal(),
            thoughts: stderr.is_terminal(),
            live: None,
            tools: Vec::new(),
            line: Line::Empty,
            text: Text::Nothing,
            markdown: layout::width(&stdout)
                .filter(|_| !paint::is_raw())
                .map(|width| Markdown::new(Paint::of(&stdout), width)),
        }
    }

    /// Shows that something is going on.
    pub(super) fn waiting(&mut self) {
        self.text = Text::Nothing;
        self.tools.clear();
        self.say_waiting();
    }

    /// Shows an item.
    pub(super) fn item(&mut self, item: &HubStreamItem) -> Result<(), Failure> {
        if self.form == Form::Json {
            return Ok(());
        }
        let root = item.call_id.depth() == 0;
        match &item.body {
            ItemBody::Progress {
                message,
                percentage,
            } => {
                if let Some(live) = &self.live {
                    live.progress(item.plugin_path.as_str(), message, *percentage);
                }
            }
            ItemBody::Data { content_type, data } if root => self.data(content_type, data)?,
            ItemBody::Error {
                error,
                recoverable: true,
                ..
            } if root => self.note(error),
            _ => {}
        }
        Ok(())
    }

    fn data(&mut self, content_type: &str, data: &Value) -> Result<(), Failure> {
        let text = data["text"].as_str().unwrap_or_default();
        match content_type {
            "TextDelta" => self.text(text)?,
            "ReasoningDelta" => self.thought(text),
            "ToolCall" => {
                self.tools.push(Tool::started(data));
                self.say_waiting();
            }
            "ToolResult" => self.tool_ended(data),
            "Notification" => {
                let message = data["message"].as_str().unwrap_or_default();
                // What plugins and rules say is said to the model.
                match data["rule"].as_str().or(data["plugin"].as_str()) {
                    Some(by) => self.note(&format!("{by} notified the model: {message}")),
                    None => self.note(message),
                }
            }
            // A model has been asked, and what it says next is another text.
            "Usage" => {
                if let Text::Some { ended } = self.text {
                    self.text = Text::Aside { ended };
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.live = None;
        if self.line == Line::Thought {
            self.end_line();
        }
        let gap = match self.text {
            Text::Aside { .. } if self.to_terminal => {
                self.end_line();
                ""
            }
            Text::Aside { ended: true } => "\n",
            Text::Aside { ended: false } => "\n\n",
            _ => "",
        };
        let text = harmless(text);
        match &mut self.markdown {
            Some(markdown) => write_out(&format!("{gap}{}", markdown.push(&text)))?,
            None => write_out(&format!("{gap}{text}"))?,
        }
        let ended = text.ends_with('\n');
        self.text = Text::Some { ended };
        if self.to_terminal {
            self.line = if ended { Line::Empty } else { Line::Text };
        }
        Ok(())
    }

    fn thought(&mut self, text: &str) {
        if !self.thoughts || text.is_empty() {
            return;
        }
        self.live = None;
        if self.line == Line::Text {
            self.end_line();
        }
        write_err(&self.err.dim(harmless(text)).to_string());
        self.line = match text.ends_with('\n') {
            true => Line::Empty,
            false => Line::Thought,
        };
    }

    fn tool_ended(&mut self, data: &Value) {
        let Some(index) = self.tools.iter().position(|tool| tool.has_id(data)) else {
            return;
        };
        let tool = self.tools.remove(index);
        let width = layout::width(&io::stderr());
        self.tell(&tool.ended(data, self.err, width));
        self.say_waiting();
    }

    fn note(&mut self, message: &str) {
        let line = self.err.dim(format!("note: {}", one_line(message)));
        self.tell(&line.to_string());
    }

    /// Writes a line to standard error.
    fn tell(&mut self, line: &str) {
        self.end_line();
        match &self.live {
            Some(live) => live.aside(|| shell::tell(line)),
            None => shell::tell(line),
        }
    }

    /// Says what is being waited for, in the line that moves.
    pub(super) fn say_waiting(&mut self) {
        if self.form == Form::Json {
            return;
        }
        self.end_line();
        let what = match self.tools.as_slice() {
            [] => "thinking".to_owned(),
            tools => tools
                .iter()
                .map(Tool::title)
                .collect::<Vec<_>>()
                .join(" · "),
        };
        self.live.get_or_insert_with(Live::start).waiting(&what);
    }

    /// Lets what comes next begin a line of the terminal.
    fn end_line(&mut self) {
        match std::mem::replace(&mut self.line, Line::Empty) {
            Line::Empty => {}
            Line::Text => {
                if let Some(markdown) = &mut self.markdown {
                    let _ = write_out(&markdown.finish());
                }
                // If it cannot be written, the text that follows cannot either, and says so.
                let _ = write_out("\n");
                if let Text::Some { ended } | Text::Aside { ended } = &mut self.text {
                    *ended = true;
                }
            }
            Line::Thought => write_err("\n"),
        }
    }

    /// Nothing is being waited for any more.
    pub(super) fn end(&mut self) {
        self.live = None;
        self.end_line();
    }

    /// What an answer rests on, and what is to be known about it.
    pub(in crate::cli) fn finish(&mut self, response: &Response) -> Result<(), Failure> {
        let mut text = String::new();
        if self.text != (Text::Some { ended: true }) && self.text != (Text::Aside { ended: true }) {
            text.push('\n');
        }
        text.push_str(&search::cited(&response.sources, self.out));
        write_out(&text)
    }

    /// What a reader should know before trusting the answer.
    pub(in crate::cli) fn caveats(&mut self, response: &Response, tools: bool) {
        if response.truncated {
            self.note("the answer was cut off at the output limit of the model");
        }
        // Without tools there is nothing that could be cited.
        match response.uncited.len() {
            _ if !tools => {}
            0 => {}
            1 => self.note("1 paragraph without a citation"),
            more => self.note(&format!("{more} paragraphs without a citation")),
        }
    }
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::output(&error))
}

fn write_err(text: &str) {
    let mut err = io::stderr().lock();
    // If standard error is gone, nobody wants to know.
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}
