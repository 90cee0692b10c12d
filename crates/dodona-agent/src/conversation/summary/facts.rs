//! What in a text must outlive it: decisions, commands, numbers with units.

/// The longest command, in characters.
const LONGEST_COMMAND: usize = 200;

/// How many of one kind are taken from one text.
pub(super) const MOST: usize = 32;

/// How much of a text is looked at, in bytes.
const LOOKED_AT: usize = 64 * 1024;

/// How many words of its clause go with a number at most, before it.
const WORDS_BEFORE: usize = 5;

/// What ends a clause.
pub(super) const CLAUSE_ENDS: [char; 5] = [',', ';', ':', ')', '.'];

/// Words that begin a command.
const PROGRAMS: &[&str] = &[
    "ansible",
    "apt",
    "apt-get",
    "aws",
    "az",
    "bash",
    "bazel",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "cat",
    "cd",
    "chmod",
    "chown",
    "cmake",
    "composer",
    "conda",
    "cp",
    "curl",
    "deno",
    "docker",
    "dodona",
    "dotnet",
    "echo",
    "export",
    "find",
    "gcc",
    "gcloud",
    "gh",
    "git",
    "go",
    "gradle",
    "grep",
    "helm",
    "java",
    "journalctl",
    "just",
    "kubectl",
    "kill",
    "ln",
    "ls",
    "make",
    "mkdir",
    "mv",
    "mvn",
    "mysql",
    "node",
    "npm",
    "npx",
    "openssl",
    "pg_dump",
    "php",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "psql",
    "pytest",
    "python",
    "python3",
    "rails",
    "rake",
    "redis-cli",
    "rg",
    "rm",
    "rsync",
    "ruby",
    "rustc",
    "rustup",
    "scp",
    "sed",
    "sh",
    "sqlite3",
    "ssh",
    "sudo",
    "systemctl",
    "tail",
    "tar",
    "terraform",
    "touch",
    "tox",
    "uv",
    "vim",
    "wget",
    "yarn",
    "zig",
];

/// The languages of code blocks whose lines are commands.
const SHELLS: &[&str] = &["bash", "console", "shell", "sh", "shell-session", "zsh"];

/// What a number counts. Longer words are known by their singular.
const UNITS: &[&str] = &[
    "%",
    "b",
    "bit",
    "byte",
    "call",
    "char",
    "character",
    "column",
    "commit",
    "connection",
    "core",
    "cpu",
    "d",
    "day",
    "dollar",
    "eur",
    "euro",
    "event",
    "exchange",
    "file",
    "fps",
    "gb",
    "ghz",
    "gib",
    "h",
    "hour",
    "hr",
    "hz",
    "item",
    "job",
    "k",
    "kb",
    "khz",
    "kib",
    "km",
    "line",
    "m",
    "mb",
    "message",
    "mhz",
    "mib",
    "min",
    "minute",
    "month",
    "ms",
    "node",
    "note",
    "ns",
    "page",
    "pct",
    "percent",
    "point",
    "process",
    "px",
    "query",
    "rack",
    "replica",
    "req/s",
    "request",
    "retry",
    "row",
    "rps",
    "s",
    "sec",
    "second",
    "server",
    "session",
    "step",
    "tb",
    "test",
    "thread",
    "tib",
    "time",
    "token",
    "tokens/s",
    "turn",
    "us",
    "usd",
    "user",
    "version",
    "vote",
    "week",
    "worker",
    "x",
    "year",
    "°c",
    "µs",
    "×",
];

/// What tells a decision from other sentences.
const DECIDING: &[&str] = &[
    "agreed",
    "always ",
    "chose ",
    "decide to ",
    "decided",
    "decision:",
    "instead of ",
    "let's use ",
    "let us use ",
    "must ",
    "never ",
    "prefer ",
    "settled on ",
    "we dropped ",
    "we keep ",
    "we use ",
    "we will ",
    "we'll ",
    "will not ",
];

/// A text, in its sentences and its commands.
struct Parts<'a> {
    sentences: Vec<&'a str>,
    commands: Vec<&'a str>,
}

/// Takes a text apart. What stands in blocks of code is no sentence.
fn parts(text: &str) -> Parts<'_> {
    let text = &text[..text.floor_char_boundary(LOOKED_AT)];
    let mut parts = Parts {
        sentences: Vec::new(),
        commands: Vec::new(),
    };
    let mut block: Option<bool> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            block = match block {
                Some(_) => None,
                None => Some(SHELLS.contains(&language.trim().to_ascii_lowercase().as_str())),
            };
            continue;
        }
        let typed = line.strip_prefix("$ ").map(str::trim);
        match (block, typed) {
            (_, Some(command)) => parts.commands.push(command),
            (Some(true), None) if begins_command(line) => parts.commands.push(line),
            (Some(_), None) => {}
            (None, None) => {
                parts.commands.extend(quoted_commands(line));
                parts.sentences.extend(sentences_of(line));
            }
        }
    }
    parts
}

fn begins_command(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    PROGRAMS.contains(&first) || first.starts_with("./")
}

/// Between backticks stands a command if it begins like one and goes on.
fn quoted_commands(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2).map(str::trim);
    quoted.filter(|piece| piece.contains(' ') && begins_command(piece))
}

/// The sentences of a line, without the marks of a list or a heading.
fn sentences_of(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim_start_matches(['-', '*', '#', '>', ' ']);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = end_of_sentence(rest);
        let (sentence, more) = rest.split_at(end);
        rest = more.trim_start();
        Some(sentence.trim())
    })
}

/// Where the first sentence ends: behind a mark that a space and no small letter follows.
fn end_of_sentence(text: &str) -> usize {
    let marks = text
        .char_indices()
        .filter(|(_, c)| matches!(c, '.' | '!' | '?'));
    for (at, _) in marks {
        let mut after = text[at + 1..].chars();
        let space = after.next();
        let next = after.next();
        if space == Some(' ') && !next.is_some_and(|c| c.is_lowercase() || c == ' ') {
            return at + 1;
        }
    }
    text.len()
}

/// The sentences of a text, however short.
pub(super) fn every_sentence(text: &str) -> Vec<&str> {
    parts(text).sentences
}

/// The sentences of a text that are more than a word or two.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut all = every_sentence(text);
    all.retain(|sentence| sentence.split_whitespace().count() > 2);
    all
}

/// Sentences that say what was decided.
pub(super) fn decisions(text: &str) -> Vec<&str> {
    let mut all = sentences(text);
    all.retain(|sentence| {
        let lower = sentence.to_lowercase();
        !lower.ends_with('?') && DECIDING.iter().any(|mark| lower.contains(mark))
    });
    all.truncate(MOST);
    all
}

/// Commands, as they would be typed.
pub(super) fn commands(text: &str) -> Vec<&str> {
    let mut all = parts(text).commands;
    all.retain(|command| (1..=LONGEST_COMMAND).contains(&command.chars().count()));
    all.truncate(MOST);
    all
}

/// Numbers with their units, and the words around each.
pub(super) fn numbers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for sentence in every_sentence(text) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        for index in 0..words.len() {
            let Some(taken) = number_at(&words, index) else {
                continue;
            };
            if found.len() == MOST {
                return found;
            }
            found.push(around(&words, index, taken));
        }
    }
    found
}

/// How many words a number with its unit takes at a place, if there is one.
fn number_at(words: &[&str], index: usize) -> Option<usize> {
    let word = bare(words[index]);
    if has_unit(word) {
        return Some(1);
    }
    // The mark of a sentence between them parts a number from what follows.
    let ends = words[index].ends_with(CLAUSE_ENDS);
    let next = words.get(index + 1).filter(|_| !ends)?;
    (is_number(word) && is_unit(bare(next))).then_some(2)
}

/// A word without the marks around it.
pub(super) fn bare(word: &str) -> &str {
    let marks = [
        '(', ')', '[', ']', '"', '\'', ',', ';', ':', '!', '?', '*', '`',
    ];
    word.trim_matches(marks).trim_end_matches('.')
}

/// `30s`, `24-hour`, `99.9%`, `$5`.
fn has_unit(word: &str) -> bool {
    if let Some(amount) = word.strip_prefix(['$', '€', '£']) {
        return is_number(amount);
    }
    let digits = word
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '_')))
        .unwrap_or(word.len());
    let (number, unit) = word.split_at(digits);
    let unit = unit.strip_prefix('-').unwrap_or(unit);
    is_number(number) && is_unit(unit)
}

fn is_number(word: &str) -> bool {
    let word = word
        .strip_prefix(['~', '<', '>', '≤', '≥', '+', '-'])
        .unwrap_or(word);
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(|c: char| c.is_ascii_digit())
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '_'))
}

fn is_unit(word: &str) -> bool {
    let lower = word.to_lowercase();
    let known = |unit: &str| UNITS.binary_search(&unit).is_ok();
    known(&lower)
        || lower.strip_suffix('s').is_some_and(known)
        || lower
            .strip_suffix("ies")
            .is_some_and(|stem| known(&format!("{stem}y")))
        || lower.strip_suffix("es").is_some_and(known)
}

/// The number and its unit with the words of its clause before it, and one after.
fn around(words: &[&str], index: usize, taken: usize) -> String {
    let before = words[..index].iter().rev().take(WORDS_BEFORE);
    let before = before
        .take_while(|word| !word.ends_with(CLAUSE_ENDS))
        .count();
    let end = index + taken;
    let goes_on = end < words.len() && !words[end - 1].ends_with(CLAUSE_ENDS);
    let joined = words[index - before..end + usize::from(goes_on)].join(" ");
    let clause = joined.trim_end_matches(CLAUSE_ENDS);
    match clause.chars().count() <= super::LONGEST / 2 {
        true => clause.to_owned(),
        false => words[index..end].join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_units_are_in_order() {
        assert!(UNITS.is_sorted());
    }

    #[test]
    fn numbers_are_found_with_their_units_and_words() {
        let text = "The cache holds 512 MB. Tokens expire after 24-hour sessions, retries stop at 3 times, \
                    and it costs $5 or 99.9% of that; version 2 of 7. Wait 250ms, 1_000 req/s, 5 min.";
        assert_eq!(
            numbers(text),
            [
                "The cache holds 512 MB",
                "Tokens expire after 24-hour sessions",
                "retries stop at 3 times",
                "and it costs $5 or",
                "and it costs $5 or 99.9% of",
                "Wait 250ms",
                "1_000 req/s",
                "5 min",
            ]
        );
    }

    #[test]
    fn a_number_that_counts_nothing_is_none() {
        for text in [
            "It is 7.",
            "v1.2.3 of it",
            "In 2024, days went by.",
            "part 12 of",
            "a1 b2",
        ] {
            assert_eq!(numbers(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn commands_are_typed_quoted_or_in_a_shell() {
        let text = "Run `cargo test -p x`, not `cargo` or `make_it`.\n$ ./deploy now\n\
                    ```sh\ngit push origin main\n# a comment\n```\n```rust\nlet git = 1;\n```";
        let expected = ["cargo test -p x", "./deploy now", "git push origin main"];
        assert_eq!(commands(text), expected);
    }

    #[test]
    fn a_decision_says_so_and_asks_nothing() {
        let text = "We decided to drop refresh tokens. Why must it be so? The sky is blue today. \
                    - Never write to main.";
        assert_eq!(
            decisions(text),
            [
                "We decided to drop refresh tokens.",
                "- Never write to main."
            ]
        );
    }

    #[test]
    fn sentences_end_where_the_next_begins() {
        assert_eq!(
            sentences("See e.g. the file a.rs for it. Then go on with it! # Not a heading"),
            [
                "See e.g. the file a.rs for it.",
                "Then go on with it!",
                "# Not a heading"
            ]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(10), ..ProptestConfig::default() })]
        #[test]
        fn no_text_is_too_strange(text in "\\PC*", marks in "[`$.%0-9a-z \\n-]{0,120}") {
            for text in [text, marks] {
                prop_assert!(numbers(&text).len() <= MOST);
                for found in commands(&text).into_iter().chain(decisions(&text)) {
                    prop_assert!(text.contains(found));
                }
            }
        }
    }
}
