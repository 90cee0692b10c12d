//! Rule: texts are written in plain language.
//!
//! It looks for phrases that are hard to understand and for doc comments that say nothing. Older
//! texts still have some, so `xtask/prose.toml` holds the number that each area may have. The numbers
//! may only fall: `cargo xtask tidy --prose` lists what is left, `--write-prose` lowers the numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::Problem;
use super::tree::Tree;
use crate::process::workspace_root;

/// Where the numbers are.
const ALLOWED: &str = "xtask/prose.toml";

/// This file quotes the phrases.
const SELF: &str = "xtask/src/tidy/prose.rs";

/// A doc comment of at most this many words usually repeats the name of its item.
const SHORT: usize = 3;

/// Findings that are shown of an area with too many.
const SHOWN: usize = 10;

/// Phrases, and what to write instead. Words of their own are not listed: most are right somewhere.
const PHRASES: &[(&str, &str)] = &[
    ("is none", "invalid, missing, not a valid …"),
    ("are none", "invalid, missing, not a valid …"),
    ("is told", "receives, is shown, is reported to"),
    ("are told", "receive, are shown, are reported to"),
    ("was told", "received, was shown, was reported to"),
    ("is asked", "is evaluated, is called, is prompted"),
    ("are asked", "are evaluated, are called, are prompted"),
    ("tells what", "describes, shows, lists"),
    ("tells how", "describes, shows"),
    ("tells whether", "returns whether, reports whether"),
    ("tells why", "explains why, gives the reason"),
    ("tells which", "shows which, names"),
    ("its word", "its approval, its answer"),
    ("let go", "deactivate, release, drop"),
    ("lets go", "deactivates, releases, drops"),
    ("what there is", "a noun: list, state, content"),
    ("in its life", "status"),
    ("is other", "differs, is different"),
    ("as it was", "unchanged, the original"),
    ("of late", "recent, in the last …"),
    ("by and by", "gradually, over time"),
    ("goes round", "loops, repeats"),
    ("all right", "healthy, valid"),
    ("makes no sense", "is invalid"),
    ("is there already", "already exists"),
    ("nobody is", "no user is, no reader is"),
    ("whoever asks", "the caller"),
    ("one's own", "your own, the user's own"),
];

/// A text that should be worded differently.
#[derive(Debug, PartialEq)]
struct Finding {
    file: String,
    line: usize,
    message: String,
}

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let allowed = match allowed(tree) {
        Ok(allowed) => allowed,
        Err(error) => return vec![Problem::of(ALLOWED, format!("{error:#}"))],
    };
    let mut problems = Vec::new();
    for (area, findings) in findings(tree) {
        let limit = allowed.get(&area).copied().unwrap_or(0);
        if findings.len() <= limit {
            continue;
        }
        let message = format!(
            "{area} has {} texts to reword, and {limit} are allowed; list them with `cargo xtask tidy --prose`",
            findings.len()
        );
        problems.push(Problem::of(ALLOWED, message));
        let shown = findings.into_iter().rev().take(SHOWN);
        problems.extend(shown.map(|found| Problem::at(&found.file, found.line, found.message)));
    }
    problems
}

/// Prints every finding.
pub(super) fn list() -> Result<()> {
    for (area, findings) in findings(&Tree::load()?) {
        for Finding {
            file,
            line,
            message,
        } in &findings
        {
            println!("{file}:{line}: {message}");
        }
        println!("{area}: {}", findings.len());
    }
    Ok(())
}

/// Lowers the numbers to what is left. A number is never raised.
pub(super) fn write() -> Result<()> {
    let tree = Tree::load()?;
    let allowed = allowed(&tree)?;
    let mut text = String::from(
        "# Texts of each area that still need rewording, by `cargo xtask tidy --prose`. The numbers may only fall.\n",
    );
    for (area, findings) in findings(&tree) {
        let limit = allowed.get(&area).copied().unwrap_or(findings.len());
        let count = findings.len().min(limit);
        if count > 0 {
            let _ = writeln!(text, "{area} = {count}");
        }
    }
    std::fs::write(workspace_root().join(ALLOWED), text).context("cannot write the numbers")
}

fn allowed(tree: &Tree) -> Result<BTreeMap<String, usize>> {
    let text = tree.files.get(ALLOWED).map_or("", String::as_str);
    toml::from_str(text).context("not a table of numbers")
}

fn findings(tree: &Tree) -> BTreeMap<String, Vec<Finding>> {
    let mut all: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for (path, text) in &tree.files {
        let Some(area) = area(path) else { continue };
        let found = all.entry(area.to_owned()).or_default();
        found.extend(phrases(path, text));
        if path.ends_with(".rs") {
            found.extend(short_docs(path, text));
        }
    }
    all
}

/// The area of a file; `None` for tests, generated files and files without prose.
fn area(path: &str) -> Option<&str> {
    let is_text = [".rs", ".md", ".ts", ".svelte", ".toml", ".luau"]
        .iter()
        .any(|suffix| path.ends_with(suffix));
    let is_left_out = path.contains("/tests/")
        || path.contains("snapshots/")
        || path == SELF
        || path == ALLOWED
        || path == "CHANGELOG.md"
        || path.starts_with("fuzz/");
    if !is_text || is_left_out {
        return None;
    }
    match path.split_once('/') {
        Some(("crates", rest)) => rest.split_once('/').map(|(name, _)| name),
        Some((folder @ ("docs" | "web" | "xtask" | "rules"), _)) => Some(folder),
        Some(_) => None,
        None => path.ends_with(".md").then_some("docs"),
    }
}

fn phrases(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let lower = text.to_lowercase();
        for (phrase, instead) in PHRASES {
            if has_phrase(&lower, phrase) {
                found.push(Finding {
                    file: path.to_owned(),
                    line,
                    message: format!("\"{phrase}\": write {instead}"),
                });
            }
        }
    }
    found
}

/// Whether a line has the phrase, and not as a part of longer words.
fn has_phrase(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + phrase.len()..].chars().next();
        ![before, after]
            .into_iter()
            .flatten()
            .any(char::is_alphanumeric)
    })
}

/// Doc comments of one line with at most [`SHORT`] words.
fn short_docs(path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_doc = |index: Option<usize>| {
        index
            .and_then(|index| lines.get(index))
            .is_some_and(|line| line.starts_with("///"))
    };
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(comment) = line.strip_prefix("/// ") else {
            continue;
        };
        let is_alone = !is_doc(index.checked_sub(1)) && !is_doc(Some(index + 1));
        if is_alone && comment.ends_with('.') && comment.split_whitespace().count() <= SHORT {
            found.push(Finding {
                file: path.to_owned(),
                line: index + 1,
                message: format!("\"{comment}\" says nothing: delete it or add information"),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_as_whole_words() {
        let found = phrases(
            "a.md",
            "A rule Is asked.\nThis asks: is asked_for.\nA basis askedx.",
        );
        let lines: Vec<usize> = found.iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 2]);
        assert!(found[0].message.contains("is evaluated"));
    }

    #[test]
    fn only_short_doc_comments_of_one_line_are_found() {
        let text = "/// The file.\npath: x,\n/// Seconds until it expires.\ny: u8,\n/// One.\n/// Two.\nz: u8,\n";
        let found = short_docs("a.rs", text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 1);
    }

    #[test]
    fn an_area_may_not_have_more_than_its_number() {
        let tree = |limit: &str| Tree {
            files: BTreeMap::from([
                ("docs/a.md".to_owned(), "It is told.".to_owned()),
                (ALLOWED.to_owned(), limit.to_owned()),
            ]),
            ..Tree::default()
        };
        assert!(check(&tree("docs = 1")).is_empty());
        let problems = check(&tree(""));
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[1].line, Some(1));
    }

    #[test]
    fn tests_and_generated_files_have_no_area() {
        assert_eq!(area("crates/dodona-hub/src/hub.rs"), Some("dodona-hub"));
        assert_eq!(area("README.md"), Some("docs"));
        assert_eq!(area("crates/dodona/tests/cli/ask.rs"), None);
        assert_eq!(area("docs/reference/openrpc.json"), None);
    }
}
