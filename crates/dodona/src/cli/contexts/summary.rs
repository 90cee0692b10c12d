//! What stands for exchanges that a model is no longer shown.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::layout;
use crate::paint::{Paint, one_line};

/// How long a line may become where the output is no terminal.
const LONGEST: usize = 200;

#[derive(Deserialize)]
pub(super) struct Line {
    kind: String,
    text: String,
    exchanges: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Compacted {
    compacted: bool,
    before: u64,
    after: u64,
    lines: usize,
    summarizer: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Pinned {
    changed: bool,
    pinned: Vec<String>,
}

/// Each line with its kind and the exchanges it comes from.
pub(super) fn lines(lines: &[Line], paint: Paint, width: Option<usize>) -> String {
    let mut text = String::new();
    for line in lines {
        let origins: Vec<&str> = line
            .exchanges
            .iter()
            .map(|id| layout::short_id(id))
            .collect();
        let origins = match origins.is_empty() {
            true => String::new(),
            false => format!("  ← {}", origins.join(" ")),
        };
        let taken = 12 + origins.chars().count();
        let said = layout::cut(&one_line(&line.text), taken, width.or(Some(LONGEST)));
        let kind = paint.dim(format!("{:10}", line.kind));
        let _ = writeln!(text, "{kind}  {said}{}", paint.dim(origins));
    }
    text
}

/// What shortening a conversation came to.
pub(super) fn compacted(done: &Compacted) -> String {
    let Compacted {
        compacted,
        before,
        after,
        lines,
        summarizer,
    } = done;
    match (compacted, summarizer) {
        (true, summarizer) => format!(
            "from {before} to {after} tokens; lines of the summary: {lines} ({})\n",
            summarizer.as_deref().unwrap_or("extractive"),
        ),
        (false, _) => format!("nothing to fold: {after} tokens in the last turns\n"),
    }
}

/// What is pinned now.
pub(super) fn pinned(done: &Pinned) -> String {
    let mut text = match done.changed {
        true => String::new(),
        false => "nothing changed\n".to_owned(),
    };
    for pin in &done.pinned {
        let _ = writeln!(text, "pinned      {}", one_line(pin));
    }
    if done.pinned.is_empty() {
        text.push_str("nothing is pinned\n");
    }
    text
}
