//! The first sentence of a function's documentation → the function, with all documentation taken
//! out of the sources.

use std::path::PathBuf;

use anyhow::Result;
use dodona_knowledge::search::FileChunks;

use crate::fetch;
use crate::sets::{self, Answer, Known, Set};

/// Libraries that many know, of several kinds.
const CRATES: &[(&str, &str)] = &[
    ("bytes", "1.12.1"),
    ("clap_builder", "4.6.7"),
    ("globset", "0.4.21"),
    ("http", "1.5.0"),
    ("hyper", "1.12.0"),
    ("ignore", "0.4.34"),
    ("indexmap", "2.14.2"),
    ("jiff", "0.2.39"),
    ("proptest", "1.12.0"),
    ("regex-automata", "0.4.18"),
    ("serde_json", "1.0.154"),
    ("tokio", "1.54.1"),
    ("toml_edit", "0.25.17"),
    ("url", "2.5.8"),
];

const WHEELS: &[&str] = &[
    "attrs==25.3.0",
    "click==8.1.8",
    "flask==3.1.0",
    "httpx==0.28.1",
    "jinja2==3.1.6",
    "networkx==3.4.2",
    "requests==2.32.3",
    "rich==13.9.4",
    "werkzeug==3.1.3",
];

/// A shorter sentence is hardly a question, a longer one a story.
const WORDS: std::ops::RangeInclusive<usize> = 4..=50;

/// Builds the set, from crates and wheels.
pub(crate) fn set() -> Result<Set> {
    let crates = fetch::crates(CRATES)?;
    let ours = |path: &str| {
        CRATES.iter().any(|(name, version)| {
            path.strip_prefix(&format!("{name}-{version}"))
                .is_some_and(|rest| rest.starts_with("/src/") || rest.starts_with("+"))
        })
    };
    let mut sources = fetch::texts(&crates, |path| {
        path.ends_with(".rs") && ours(path) && !path.contains("/tests/")
    });
    let wheels = fetch::wheels(WHEELS)?;
    sources.extend(fetch::texts(&wheels, |path| {
        path.ends_with(".py") && !path.contains("/tests/")
    }));
    let (mut files, mut known) = (Vec::new(), Vec::new());
    for (path, source) in sources {
        let stripped = if path.ends_with(".py") {
            python(&source)
        } else {
            rust(&source)
        };
        known.extend(stripped.items.into_iter().filter_map(|(line, name, doc)| {
            let question = first_sentence(&doc);
            let fits = WORDS.contains(&question.split_whitespace().count());
            fits.then(|| Known {
                question,
                path: path.clone(),
                line,
                symbol: Some(name),
            })
        }));
        files.push(FileChunks::of(&path, &stripped.text));
    }
    let groups = sets::groups(&files, Answer::Symbol);
    Ok(Set::new("docstring", files, known, Answer::Symbol, groups))
}

/// The crates with all that they need: a large tree of sources.
pub(crate) fn tree() -> Result<PathBuf> {
    fetch::crates(CRATES)
}

/// Questions that are asked by the clock: enough for a ninety-ninth percentile.
const TIMED: usize = 300;

/// What people ask about code.
pub(crate) fn questions() -> Result<Vec<String>> {
    let items = set()?.items.into_iter().take(TIMED);
    Ok(items.map(|item| item.question).collect())
}

/// A source without documentation, line for line, and what was taken out: the line of each
/// function, its name and its documentation.
#[derive(Default)]
struct Stripped {
    text: String,
    items: Vec<(u32, String, String)>,
}

fn rust(source: &str) -> Stripped {
    let mut out = Stripped::default();
    let mut doc = String::new();
    let mut block = false;
    for (line, number) in source.lines().zip(1..) {
        let trimmed = line.trim_start();
        let opens = trimmed.starts_with("/**") || trimmed.starts_with("/*!");
        let is_doc = block || opens || trimmed.starts_with("///") || trimmed.starts_with("//!");
        if is_doc {
            block = (block || opens) && !trimmed.contains("*/");
            let said = trimmed.trim_start_matches(['/', '*', '!']);
            doc.push_str(said.trim_end_matches("*/").trim());
            doc.push('\n');
            out.text.push('\n');
            continue;
        }
        if !trimmed.starts_with("#[doc") {
            out.text.push_str(line);
        }
        out.text.push('\n');
        if trimmed.starts_with("#[") {
            continue;
        }
        if let Some(name) = named(trimmed, "fn ").filter(|_| !doc.is_empty()) {
            out.items.push((number, name, std::mem::take(&mut doc)));
        }
        doc.clear();
    }
    out
}

fn python(source: &str) -> Stripped {
    let mut out = Stripped::default();
    // The function whose body would begin next, and the string that we are in.
    let mut function: Option<(u32, String)> = None;
    let mut inside: Option<(&str, bool)> = None;
    let mut doc = String::new();
    for (line, number) in source.lines().zip(1..) {
        let trimmed = line.trim_start();
        let (delimiter, is_doc, rest) = match inside {
            Some((delimiter, is_doc)) => (delimiter, is_doc, line),
            None => match opening(line) {
                Some((delimiter, is_doc, rest)) => (delimiter, is_doc, rest),
                None => {
                    if let Some(name) = named(trimmed, "def ") {
                        function = Some((number, name));
                    } else if signature_ended(trimmed) {
                        function = None;
                    }
                    out.text.push_str(line);
                    out.text.push('\n');
                    continue;
                }
            },
        };
        let closed = rest.contains(delimiter);
        if is_doc {
            doc.push_str(rest.split(delimiter).next().unwrap_or_default().trim());
            doc.push('\n');
            if inside.is_none() {
                // A body needs a statement.
                out.text.push_str(&line[..line.len() - trimmed.len()]);
                out.text.push_str("...");
            }
        } else {
            out.text.push_str(line);
        }
        out.text.push('\n');
        inside = (!closed).then_some((delimiter, is_doc));
        if closed {
            let said = std::mem::take(&mut doc);
            if is_doc && let Some((line, name)) = function.take() {
                out.items.push((line, name, said));
            }
        }
    }
    out
}

/// A long string that begins in a line: its quotes, whether it is a statement of its own, and
/// what follows the quotes.
fn opening(line: &str) -> Option<(&'static str, bool, &str)> {
    let quotes = ["\"\"\"", "'''"];
    let first = quotes.into_iter().filter_map(|q| Some((line.find(q)?, q)));
    let (at, delimiter) = first.min()?;
    let before = line[..at].trim_start();
    let is_doc = matches!(before, "" | "r" | "R" | "u" | "b");
    Some((delimiter, is_doc, &line[at + delimiter.len()..]))
}

/// Whether a line between `def` and a body is surely part of the body.
fn signature_ended(trimmed: &str) -> bool {
    let statements = [
        "return", "if ", "for ", "raise ", "yield", "with ", "self.", "class ",
    ];
    statements.iter().any(|s| trimmed.starts_with(s))
}

/// The name that a line defines by a keyword, whatever words stand before it.
fn named(line: &str, keyword: &str) -> Option<String> {
    let words = [
        "pub",
        "pub(crate)",
        "pub(super)",
        "const",
        "async",
        "unsafe",
        "extern",
        "default",
    ];
    let mut rest = line;
    loop {
        if let Some(found) = rest.strip_prefix(keyword) {
            let end = found.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = &found[..end.unwrap_or(found.len())];
            return (!name.is_empty()).then(|| name.to_owned());
        }
        let (word, more) = rest.split_once(' ')?;
        if !words.contains(&word) && !word.starts_with('"') {
            return None;
        }
        rest = more.trim_start();
    }
}

/// The first sentence of the first paragraph, without markup.
fn first_sentence(doc: &str) -> String {
    let paragraph: Vec<&str> = doc
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .collect();
    let text = paragraph.join(" ").replace(['`', '[', ']', '"', '*'], " ");
    let end = text.find(". ").unwrap_or(text.len());
    text[..end].split_whitespace().collect::<Vec<_>>().join(" ")
}
