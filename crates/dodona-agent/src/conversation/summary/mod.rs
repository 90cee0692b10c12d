//! What stands for exchanges that a model is no longer shown.
//!
//! A summary is a list of lines, each of one kind and with the exchanges it comes from. `facts` and
//! `names` find what must outlive the text it was said in, `fold` makes lines of exchanges, `fit`
//! chooses among them where there are too many.

mod facts;
mod fit;
mod fold;
mod names;
mod units;

use std::fmt::Write;

use dodona_proto::Message;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::Counter;
use super::error::ConversationError;
use super::id::ExchangeId;
use super::rows;

pub(super) use fit::{FRAME, fit, fit_tokens};
pub(super) use fold::{facts_in_text, fold, one_line};
pub(super) use units::turns;

/// The longest text of a line, in characters.
const LONGEST: usize = 240;

/// The longest text that is kept word for word, in characters.
pub(super) const LONGEST_PIN: usize = 1_000;

/// How many exchanges a line names at most: the first, and the latest.
const MOST_ORIGINS: usize = 8;

/// What begins the message by which a model reads a summary.
const INTRODUCTION: &str = "What this conversation had before the messages below, shortened; \
    #7 is the exchange that a line comes from, and `agent_recall` reads it. `agent_seek` finds what \
    is not here.";

/// The same where there is nothing but what was pinned.
const PINNED_ONLY: &str = "What must be kept in mind in this conversation:";

/// What sort of thing a line of a summary says. The order is that in which a model reads them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// Somebody wants it kept word for word.
    Pinned,
    /// A sentence that says what was decided.
    Decision,
    /// What an earlier summary said that came with an imported document.
    Earlier,
    /// What a model made of the exchanges.
    Told,
    /// What the user asked.
    Asked,
    /// What was answered.
    Said,
    /// A tool that ran.
    Did,
    /// A command, as it would be typed.
    Command,
    /// A number with its unit, and the words around it.
    Number,
    /// A name of somebody or something, and the words around it.
    Name,
    /// A file of the project.
    File,
    /// A symbol of its code.
    Symbol,
}

impl LineKind {
    pub(super) const ALL: [Self; 12] = [
        Self::Pinned,
        Self::Decision,
        Self::Earlier,
        Self::Told,
        Self::Asked,
        Self::Said,
        Self::Did,
        Self::Command,
        Self::Number,
        Self::Name,
        Self::File,
        Self::Symbol,
    ];

    /// As it is stored and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Decision => "decision",
            Self::Earlier => "earlier",
            Self::Told => "told",
            Self::Asked => "asked",
            Self::Said => "said",
            Self::Did => "did",
            Self::Command => "command",
            Self::Number => "number",
            Self::Name => "name",
            Self::File => "file",
            Self::Symbol => "symbol",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, ConversationError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| rows::unreadable("summary", format!("kind `{text}`")))
    }

    /// Whether it tells what happened; the others are facts.
    pub(crate) fn is_story(self) -> bool {
        matches!(
            self,
            Self::Earlier | Self::Told | Self::Asked | Self::Said | Self::Did
        )
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Pinned => "\nPinned, word for word:",
            Self::Decision => "\nDecided:",
            Self::Earlier | Self::Told | Self::Asked | Self::Said | Self::Did => {
                "\nWhat was asked, done and answered:"
            }
            Self::Command => "\nCommands:",
            Self::Number => "\nNumbers:",
            Self::Name => "\nNames:",
            Self::File => "\nFiles:",
            Self::Symbol => "\nSymbols:",
        }
    }
}

/// One line of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryLine {
    /// What sort of thing it says.
    pub kind: LineKind,
    /// What it says.
    pub text: String,
    /// The exchanges it comes from, the oldest first; none where it comes from elsewhere.
    #[serde(default)]
    pub exchanges: Vec<ExchangeId>,
    /// The place of the latest of them in the conversation; 0 where there is none.
    #[serde(default)]
    pub position: u64,
    /// How many tokens it has.
    #[serde(default)]
    pub tokens: u64,
}

impl SummaryLine {
    pub(super) fn new(kind: LineKind, text: String) -> Self {
        Self {
            kind,
            text,
            exchanges: Vec::new(),
            position: 0,
            tokens: 0,
        }
    }

    /// The same with where it comes from.
    #[must_use]
    pub(super) fn from(mut self, position: u64, exchange: &ExchangeId) -> Self {
        self.position = position;
        self.exchanges.push(exchange.clone());
        self
    }

    /// What a model tells, and where it comes from.
    pub(crate) fn told(text: &str, from: Vec<(u64, &ExchangeId)>) -> Self {
        let mut line = Self::new(LineKind::Told, one_line(text, LONGEST));
        for (position, exchange) in from {
            let more = Self::new(LineKind::Told, String::new()).from(position, exchange);
            line.join(more);
        }
        line
    }

    /// Takes over where another one of the same text comes from.
    fn join(&mut self, other: Self) {
        for exchange in other.exchanges {
            if !self.exchanges.contains(&exchange) {
                self.exchanges.push(exchange);
            }
        }
        if self.exchanges.len() > MOST_ORIGINS {
            self.exchanges
                .drain(1..=self.exchanges.len() - MOST_ORIGINS);
        }
        self.position = self.position.max(other.position);
    }

    /// As a model reads it.
    fn shown(&self) -> String {
        let origin = match self.position {
            0 => String::new(),
            position => format!(" #{position}"),
        };
        let text = &self.text;
        match self.kind {
            LineKind::File | LineKind::Symbol => format!(" {text}{origin},"),
            LineKind::Asked => format!("\n- asked: {text}{origin}"),
            LineKind::Did => format!("\n- ran: {text}{origin}"),
            _ => format!("\n- {text}{origin}"),
        }
    }

    pub(super) fn count(&mut self, counter: &Counter) {
        self.tokens = text_tokens(counter, &self.shown());
    }
}

/// The tokens of a piece of a message.
fn text_tokens(counter: &Counter, text: &str) -> u64 {
    let message = |content: &str| {
        counter(&Message::User {
            content: content.to_owned(),
        })
    };
    message(text).saturating_sub(message("")).max(1)
}

/// The message that a model reads, if there is anything to read. Lines must be in order.
pub(super) fn render(lines: &[SummaryLine]) -> Option<String> {
    let first = lines.first()?;
    let pinned_only =
        first.kind == LineKind::Pinned && lines.iter().all(|line| line.kind == LineKind::Pinned);
    let mut text = String::from(if pinned_only {
        PINNED_ONLY
    } else {
        INTRODUCTION
    });
    let mut under = "";
    for line in lines {
        let heading = line.kind.heading();
        if heading != under && !pinned_only {
            close_list(&mut text);
            text.push_str(heading);
            under = heading;
        }
        let _ = write!(text, "{}", line.shown());
    }
    close_list(&mut text);
    Some(text)
}

/// A list of names ends without its last comma.
fn close_list(text: &mut String) {
    if text.ends_with(',') {
        text.pop();
    }
}

/// The tokens of the message that a model reads.
pub(super) fn tokens(counter: &Counter, lines: &[SummaryLine]) -> u64 {
    render(lines).map_or(0, |content| counter(&Message::User { content }))
}

/// Puts lines in the order in which they are read: facts by kind, the story as it happened.
pub(super) fn sort(lines: &mut [SummaryLine]) {
    let place = |kind: LineKind| match kind.is_story() {
        true => LineKind::Earlier,
        false => kind,
    };
    // Stable, so that what comes from one exchange stays as it was said.
    lines.sort_by_key(|line| (place(line.kind), line.position));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: LineKind, text: &str, position: u64) -> SummaryLine {
        SummaryLine::new(kind, text.to_owned()).from(position, &ExchangeId::new())
    }

    #[test]
    fn a_summary_is_read_by_kind_and_the_story_as_it_happened() {
        let mut lines = vec![
            line(LineKind::Symbol, "jwt::sign", 4),
            line(LineKind::Said, "By a token.", 2),
            line(LineKind::File, "src/b.rs", 4),
            line(LineKind::File, "src/a.rs", 2),
            line(LineKind::Asked, "How does login work?", 1),
            line(LineKind::Decision, "We use JWT.", 2),
        ];
        sort(&mut lines);
        let text = render(&lines).unwrap();
        let (_, text) = text.split_once('\n').unwrap();
        assert_eq!(
            text,
            "Decided:\n- We use JWT. #2\n\
             What was asked, done and answered:\n- asked: How does login work? #1\n- By a token. #2\n\
             Files: src/a.rs #2, src/b.rs #4\nSymbols: jwt::sign #4"
        );
        assert_eq!(render(&[]), None);
    }

    #[test]
    fn a_line_names_its_first_and_its_latest_exchanges() {
        let ids: Vec<ExchangeId> = (0..20).map(|_| ExchangeId::new()).collect();
        let mut known = SummaryLine::new(LineKind::File, "a.rs".to_owned()).from(1, &ids[0]);
        for (id, position) in ids.iter().zip(1..) {
            known.join(SummaryLine::new(LineKind::File, "a.rs".to_owned()).from(position, id));
        }
        assert_eq!(known.exchanges.len(), MOST_ORIGINS);
        assert_eq!(known.exchanges[0], ids[0]);
        assert_eq!(known.exchanges[1..], ids[13..]);
        assert_eq!(known.position, 20);
    }
}
