//! Where a text says what something is.

use super::words;

/// How well a text tells what something is, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Telling {
    /// A row of a table, or an item of a list, that begins with its name.
    Entry,
    /// A sentence that begins with its name and says something of it: "The journal is written …".
    Statement,
    /// A sentence that says what it is: "A rule is a trigger, …".
    Definition,
}

/// A place where it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) how: Telling,
    /// The line, from 0.
    pub(super) line: usize,
    /// Where in that line the sentence begins, in bytes.
    pub(super) column: usize,
}

/// Words that end what is said before them and begin what something is.
const DETERMINES: &[&str] = &[
    "a",
    "an",
    "any",
    "anything",
    "each",
    "every",
    "everything",
    "how",
    "one",
    "someone",
    "something",
    "the",
    "what",
    "whatever",
    "where",
    "who",
    "whoever",
];

/// Words after "are" that say how, where or when, and not what.
const DESCRIBES: &[&str] = &[
    "all", "already", "also", "always", "as", "at", "by", "for", "from", "in", "never", "no",
    "not", "of", "on", "only", "still", "then", "there", "to", "with",
];

/// The best place of a text that tells what something is; of equals the first.
pub(super) fn told(text: &str, term: &[String]) -> Option<Told> {
    let (mut best, mut in_block, mut open) = (None::<Told>, false, false);
    for (line, text) in text.lines().enumerate() {
        let body = body(text);
        if body.starts_with("```") {
            in_block = !in_block;
        }
        let is_row = body.starts_with('|');
        let mut places = Vec::new();
        if !in_block && is_row {
            places.extend(row(body, term).map(|how| (how, 0)));
        } else if !in_block && !is_heading(text) {
            places.extend(entry(body, term).map(|how| (how, 0)));
            places.extend(
                sentences(body, open).filter_map(|at| Some((says(&body[at..], term)?, at))),
            );
        }
        let indent = text.len() - body.len();
        for (how, at) in places {
            if best.is_none_or(|best| how > best.how) {
                // What begins with its line is quoted with the marks of that line.
                let column = if at == 0 { 0 } else { indent + at };
                best = Some(Told { how, line, column });
            }
        }
        // A sentence goes on in the next line unless something ended here.
        open = !(body.is_empty() || is_row || in_block || is_heading(text) || ends(body));
    }
    best
}

/// A line without what makes it a comment, a quote or an item of a list.
fn body(line: &str) -> &str {
    let is_mark =
        |c: char| c.is_whitespace() || matches!(c, '/' | '!' | '*' | '-' | '>' | '#' | ';');
    line.trim_end().trim_start_matches(is_mark)
}

/// Whether a line of Markdown is a heading. Where `#` begins a comment, sentences end with a mark.
fn is_heading(line: &str) -> bool {
    line.starts_with('#') && !line.trim_end().ends_with(['.', ':', ',', ';'])
}

fn ends(body: &str) -> bool {
    let body = body.trim_end_matches(['*', '_', '`', ')', '"']);
    body.ends_with(['.', '!', '?', ':'])
}

/// Where sentences begin in a line: at its beginning unless one is open, and after each that ends.
fn sentences(body: &str, open: bool) -> impl Iterator<Item = usize> {
    let starts = body.match_indices(". ").map(|(at, mark)| at + mark.len());
    (!open).then_some(0).into_iter().chain(starts)
}

/// Whether a sentence tells of something, and how.
fn says(sentence: &str, term: &[String]) -> Option<Telling> {
    let words: Vec<String> = words::split(sentence).take(term.len() + 3).collect();
    let rest = words::after_name(&words, term)?;
    let next = rest.get(1).map(String::as_str);
    let is_determined = next.is_some_and(|next| DETERMINES.contains(&next));
    match rest.first()?.as_str() {
        "means" => Some(Telling::Definition),
        "is" | "are" if is_determined => Some(Telling::Definition),
        "are" if next.is_some_and(is_noun) => Some(Telling::Definition),
        "is" | "are" => Some(Telling::Statement),
        _ => None,
    }
}

/// Whether a word after "are" is likely what something is: "hooks are callbacks", but "rules are
/// evaluated".
fn is_noun(word: &str) -> bool {
    word.ends_with('s') && !DESCRIBES.contains(&word)
}

/// A row of a table whose first cell is the name.
fn row(body: &str, term: &[String]) -> Option<Telling> {
    let cell = body.trim_start_matches('|').split('|').next()?;
    is_all(cell, term).then_some(Telling::Entry)
}

/// An item such as "**rule**: what shall happen when".
fn entry(body: &str, term: &[String]) -> Option<Telling> {
    let (name, _) = body.split_once(": ").or(body.split_once(" – "))?;
    is_all(name, term).then_some(Telling::Entry)
}

/// Whether a text is a name, with an article perhaps, and nothing else.
fn is_all(text: &str, term: &[String]) -> bool {
    let words: Vec<String> = words::split(text).take(term.len() + 2).collect();
    words::after_name(&words, term).is_some_and(<[String]>::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(text: &str, question: &str) -> Option<(Telling, usize, usize)> {
        let term = words::asked_what(question).expect("a term");
        told(text, &term).map(|told| (told.how, told.line, told.column))
    }

    #[test]
    fn a_sentence_that_says_what_something_is_defines_it() {
        use Telling::{Definition, Entry, Statement};
        for (text, question, how) in [
            (
                "A rule is a trigger and actions.",
                "What is a rule?",
                Some(Definition),
            ),
            (
                "A *rule* is a trigger.",
                "What are rules?",
                Some(Definition),
            ),
            ("Rules are files.", "What is a rule?", Some(Definition)),
            (
                "/// The journal is what was said.",
                "What is the journal?",
                Some(Definition),
            ),
            (
                "- **fuel** means steps.",
                "What does fuel mean?",
                Some(Definition),
            ),
            (
                "Rules are evaluated in order.",
                "What is a rule?",
                Some(Statement),
            ),
            (
                "The journal is written first.",
                "What is the journal?",
                Some(Statement),
            ),
            (
                "| **rule** | what shall happen |",
                "What is a rule?",
                Some(Entry),
            ),
            (
                "- **Rule**: what shall happen",
                "What is a rule?",
                Some(Entry),
            ),
            ("| rule files | a folder |", "What is a rule?", None),
            ("The rule of a plugin is its own.", "What is a rule?", None),
            ("It says what a rule is.", "What is a rule?", None),
            (
                "We know what\nrules are a part of.",
                "What is a rule?",
                None,
            ),
            ("```\n# A rule is a comment.\n```", "What is a rule?", None),
            ("# A rule is a heading", "What is a rule?", None),
        ] {
            let found = best(text, question).map(|found| found.0);
            assert_eq!(found, how, "{text}");
        }
    }

    #[test]
    fn the_best_sentence_is_found_wherever_it_stands() {
        let text =
            "# Rules\n\nRules are kept. Every\nrule counts. A rule is a file.\n\nA rule is a text.";
        let found = best(text, "What is a rule?");
        assert_eq!(found, Some((Telling::Definition, 3, 13)));
        assert_eq!(&text.lines().nth(3).unwrap()[13..], "A rule is a file.");
    }
}
