//! Lines of a summary, made from exchanges.

use std::collections::HashMap;

use super::super::exchange::{ExchangeRole, OracleExchange};
use super::super::tool_call::{ToolCallRecord, ToolCallStatus};
use super::names::{self, Named};
use super::{LONGEST, LineKind, SummaryLine, facts};

/// The most sentences of one answer that are kept as such.
const MOST_SAID: usize = 2;

/// The lines of a summary that says what the one before said and what these exchanges say, each
/// once. A story that a model made takes the place of the one that is put together here; facts are
/// always found here, whoever tells the story.
pub(in super::super) fn fold(
    before: Vec<SummaryLine>,
    exchanges: &[(u64, OracleExchange)],
    told: Option<Vec<SummaryLine>>,
) -> Vec<SummaryLine> {
    let has_story = told.is_some();
    let mut lines = Lines::default();
    for line in before {
        // A model is shown the story so far, and tells it anew.
        if !(has_story && line.kind.is_story()) {
            lines.add(line);
        }
    }
    for (position, exchange) in exchanges {
        for line in of_exchange(exchange) {
            if !(has_story && line.kind.is_story()) {
                lines.add(line.from(*position, &exchange.id));
            }
        }
    }
    told.into_iter().flatten().for_each(|line| lines.add(line));
    lines.all
}

/// Lines, each once.
#[derive(Default)]
struct Lines {
    all: Vec<SummaryLine>,
    places: HashMap<(LineKind, String), usize>,
}

impl Lines {
    fn add(&mut self, line: SummaryLine) {
        let key = (line.kind, line.text.clone());
        match self.places.get(&key) {
            Some(place) => self.all[*place].join(line),
            None => {
                self.places.insert(key, self.all.len());
                self.all.push(line);
            }
        }
    }
}

/// What one exchange comes to. What a tool answered is not in it: it can be asked again, and what
/// mattered of it was said.
fn of_exchange(exchange: &OracleExchange) -> Vec<SummaryLine> {
    let mut lines = Vec::new();
    let mut add = |kind, text: &str| lines.push(SummaryLine::new(kind, one_line(text, LONGEST)));
    match exchange.role {
        ExchangeRole::Tool => return lines,
        // Notices, steering and preloaded passages are not what the user asked.
        ExchangeRole::User if !exchange.is_question() => return lines,
        ExchangeRole::User => add(LineKind::Asked, &exchange.content),
        ExchangeRole::Assistant => {
            said(exchange)
                .into_iter()
                .for_each(|text| add(LineKind::Said, text));
            for call in exchange.calls() {
                add(LineKind::Did, &did(call));
            }
        }
    }
    lines.extend(facts_of(exchange));
    lines.retain(|line| !line.text.is_empty());
    lines
}

/// The facts in an exchange that a summary keeps: decisions, commands, numbers, names, and the files
/// and symbols of its text and of its tool calls. A number or a name that is part of a decision is
/// kept with the decision.
fn facts_of(exchange: &OracleExchange) -> Vec<SummaryLine> {
    let mut lines = facts_in_text(exchange);
    if exchange.role != ExchangeRole::Assistant {
        return lines;
    }
    let in_arguments = |names: &[String], kind| -> Vec<SummaryLine> {
        let names = names
            .iter()
            .filter(|name| !exchange.content.contains(*name));
        names
            .map(|name| SummaryLine::new(kind, one_line(name, LONGEST)))
            .collect()
    };
    lines.extend(in_arguments(&exchange.mentioned_files, LineKind::File));
    lines.extend(in_arguments(&exchange.mentioned_symbols, LineKind::Symbol));
    lines.retain(|line| !line.text.is_empty());
    lines
}

/// The facts in the text of a question or an answer. Arguments of tools are not among them: nobody
/// said them.
pub(in super::super) fn facts_in_text(exchange: &OracleExchange) -> Vec<SummaryLine> {
    let mut lines = Vec::new();
    if !exchange.is_question() && exchange.role != ExchangeRole::Assistant {
        return lines;
    }
    let mut add = |kind, text: &str| lines.push(SummaryLine::new(kind, one_line(text, LONGEST)));
    let decisions = facts::decisions(&exchange.content);
    for text in &decisions {
        add(LineKind::Decision, text);
    }
    for text in facts::commands(&exchange.content) {
        add(LineKind::Command, text);
    }
    let told = |words: &str| {
        let whole = decisions
            .iter()
            .filter(|text| text.chars().count() <= LONGEST);
        whole.clone().any(|text| text.contains(words))
    };
    let numbers = facts::numbers(&exchange.content);
    for text in numbers.iter().filter(|text| !told(text)) {
        add(LineKind::Number, text);
    }
    for Named { name, clause } in names::names(&exchange.content) {
        let counted = numbers.iter().any(|number| number.contains(&name));
        if !told(&clause) && !counted {
            add(LineKind::Name, &clause);
        }
    }
    let is_in_text = |name: &&String| exchange.content.contains(name.as_str());
    for name in exchange.mentioned_files.iter().filter(is_in_text) {
        add(LineKind::File, name);
    }
    for name in exchange.mentioned_symbols.iter().filter(is_in_text) {
        add(LineKind::Symbol, name);
    }
    lines.retain(|line| !line.text.is_empty());
    lines
}

/// What an answer comes to: its insight where somebody wrote one, its first sentences otherwise.
fn said(exchange: &OracleExchange) -> Vec<&str> {
    match &exchange.key_insight {
        Some(insight) => vec![insight],
        None => {
            let mut first = facts::sentences(&exchange.content);
            first.truncate(MOST_SAID);
            first
        }
    }
}

fn did(call: &ToolCallRecord) -> String {
    let arguments = call.arguments.iter().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{name}: {}", one_line(&value, LONGEST / 4))
    });
    let arguments: Vec<String> = arguments.collect();
    let failed = match call.status {
        ToolCallStatus::Success => "",
        ToolCallStatus::Pending | ToolCallStatus::Error => ", which failed",
    };
    format!("{} ({}){failed}", call.name, arguments.join(", "))
}

/// A text on one line, cut where it is too long.
pub(in super::super) fn one_line(text: &str, longest: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(longest) {
        None => joined,
        Some((end, _)) => format!("{}…", joined[..end].trim_end()),
    }
}
