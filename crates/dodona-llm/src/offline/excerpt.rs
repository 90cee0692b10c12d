//! The part of a passage that is quoted.

use super::found::Found;
use super::words;

/// How many lines are quoted of one passage.
const LINES: usize = 8;

/// The lines of a passage with most of the question's words, and its number.
pub(super) fn quote(passage: &Found, words: &[String]) -> String {
    let lines: Vec<&str> = passage.text.lines().collect();
    let best = (0..lines.len().saturating_sub(LINES - 1).max(1))
        .max_by_key(|start| {
            let window = &lines[*start..(*start + LINES).min(lines.len())];
            (
                words::in_text(&window.join("\n"), words),
                std::cmp::Reverse(*start),
            )
        })
        .unwrap_or_default();
    let window = &lines[best..(best + LINES).min(lines.len())];
    let blank = |line: &&&str| line.trim().is_empty();
    let from = window.iter().take_while(blank).count();
    let to = window.len() - window.iter().rev().take_while(blank).count();
    let text = window.get(from..to).unwrap_or_default().join("\n");
    format!("{text} [{}]", passage.cite)
}
