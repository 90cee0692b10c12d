//! Passages in the answers of tools.

use dodona_proto::Message;
use serde_json::Value;

use super::definition::{self, Telling};
use super::excerpt::Span;
use super::words;

/// The least part of a question's words that a passage must have to count as an answer.
const LEAST_SHARE: f32 = 0.4;

/// The least a passage must weigh beside the best one to be worth quoting.
const LEAST_OF_BEST: f32 = 0.3;

/// What the names of files end with that people read.
const PROSE: &[&str] = &["adoc", "markdown", "md", "org", "rst", "txt"];

/// A passage that a search found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The number under which it is cited.
    pub(super) cite: u64,
    /// What it is called: a heading, or a symbol of code.
    heading: String,
    /// What it is a part of.
    name: String,
    pub(super) text: String,
    pub(super) path: String,
    /// Its first line in the file, from 1.
    pub(super) line_start: Option<u32>,
    score: f32,
    /// Its place in the list of its search.
    place: usize,
}

impl Found {
    /// How much a passage is what the question is after, beside how well it matches. A test only has
    /// the words.
    fn fits(&self, wish: &Wish) -> f32 {
        match wish {
            _ if self.is_test() => 1.0,
            Wish::Definition(term) => self.defines(term),
            Wish::Explanation(term) if self.is_prose() && self.is_named(term) => 3.0,
            Wish::Reasons if self.is_commit() => 2.0,
            Wish::Reasons if words::gives_reasons(&self.text) => 1.5,
            Wish::Steps if self.is_prose() && words::has_steps(&self.text) => 1.8,
            // Code says how it is done, and seldom why or what a person has to do.
            Wish::Reasons | Wish::Steps if !self.is_prose() => 0.6,
            Wish::Decision if self.is_memory() => 2.0,
            Wish::Anything
            | Wish::Explanation(_)
            | Wish::Steps
            | Wish::Reasons
            | Wish::Decision => 1.0,
        }
    }

    /// How much it says what something is: a sentence that defines it does, the place where it is
    /// declared, a chapter about it; what merely has its name does less.
    fn defines(&self, term: &[String]) -> f32 {
        let told = definition::told(&self.text, term).map(|told| told.how);
        let named = self.is_named(term);
        match self.is_prose() {
            true => match told {
                Some(Telling::Definition) => 6.0,
                _ if named => 2.5,
                Some(Telling::Statement | Telling::Entry) => 2.0,
                None => 1.0,
            },
            false if words::declares(&self.text, term) => 3.0,
            false if told == Some(Telling::Definition) => 2.0,
            false if named => 1.2,
            false => 1.0,
        }
    }

    /// Whether it goes before all others, however well those match: a short question has few words to
    /// match, and one sentence that answers it.
    fn opens(&self, wish: &Wish) -> bool {
        let Wish::Definition(term) = wish else {
            return false;
        };
        let told = definition::told(&self.text, term);
        self.is_prose() && told.is_some_and(|told| told.how == Telling::Definition)
    }

    fn is_named(&self, term: &[String]) -> bool {
        [&self.heading, &self.name]
            .iter()
            .any(|name| words::is_name(name, term))
    }

    fn is_test(&self) -> bool {
        let in_tests = self
            .path
            .split(['/', '.', '_', '-'])
            .any(|part| part == "test" || part == "tests");
        in_tests
            || ["#[test]", "::test]", "def test_"]
                .iter()
                .any(|mark| self.text.contains(mark))
    }

    fn is_prose(&self) -> bool {
        let (_, extension) = self.path.rsplit_once('.').unwrap_or_default();
        PROSE.contains(&extension) || self.is_memory()
    }

    /// How much a passage explains, beside how well it matches: prose is written to explain, and
    /// a test repeats the words of what it tests.
    fn trust(&self) -> f32 {
        match (self.is_test(), self.is_prose()) {
            (true, _) => 0.4,
            (false, true) => 1.3,
            (false, false) => 1.0,
        }
    }
}

/// What a question is after.
#[derive(Debug, PartialEq)]
pub(super) enum Wish {
    Anything,
    /// What this is.
    Definition(Vec<String>),
    /// How this works.
    Explanation(Vec<String>),
    /// What a person has to do.
    Steps,
    /// Why something is as it is.
    Reasons,
    /// What was decided.
    Decision,
}

impl Wish {
    pub(super) fn of(question: &str) -> Self {
        if let Some(term) = words::asked_how(question) {
            return Self::Explanation(term);
        }
        match words::asked_what(question) {
            Some(term) => Self::Definition(term),
            None if words::asks_for_steps(question) => Self::Steps,
            None if words::asks_for_reasons(question) => Self::Reasons,
            None if words::asks_for_decisions(question) => Self::Decision,
            None => Self::Anything,
        }
    }
}

/// Lines of a file that were read.
pub(super) struct Lines {
    /// The number under which they are cited.
    pub(super) cite: u64,
    pub(super) text: String,
    path: String,
    line_start: u32,
}

impl Lines {
    /// Whether a span is among them.
    pub(super) fn hold(&self, span: &Span) -> bool {
        let length = u32::try_from(self.text.lines().count()).unwrap_or(u32::MAX);
        self.path == span.path
            && self.line_start <= span.from
            && span.to < self.line_start.saturating_add(length)
    }
}

impl Found {
    /// Whether it can be read as a file: neither the message of a commit, nor an entry of a thread, nor
    /// something of a conversation.
    pub(super) fn is_file(&self) -> bool {
        !["commit:", "thread:", "context:"]
            .iter()
            .any(|kind| self.path.starts_with(kind))
    }

    /// The language of code, as Markdown names it; none for what people read.
    pub(super) fn language(&self) -> Option<&str> {
        if !self.is_file() || self.is_prose() {
            return None;
        }
        let (_, extension) = self.path.rsplit_once('.').unwrap_or_default();
        Some(match extension {
            "rs" => "rust",
            "py" => "python",
            plain if plain.chars().all(char::is_alphanumeric) => plain,
            _ => "",
        })
    }

    /// Whether it is something that was said: in a thread or in a conversation.
    fn is_memory(&self) -> bool {
        ["thread:", "context:"]
            .iter()
            .any(|kind| self.path.starts_with(kind))
    }

    /// Whether it is the message of a commit.
    fn is_commit(&self) -> bool {
        self.path.starts_with("commit:")
    }
}

/// The lines that a tool read; none if it did something else.
pub(super) fn lines(message: &Message) -> Option<Lines> {
    let result = result(message)?;
    let source = &result["source"];
    Some(Lines {
        cite: result["cite"].as_u64()?,
        text: result["text"].as_str()?.to_owned(),
        path: source["path"].as_str()?.to_owned(),
        line_start: number(&source["line_start"])?,
    })
}

fn result(message: &Message) -> Option<Value> {
    match message {
        Message::Tool { content, .. } => serde_json::from_str(content).ok(),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// Why a tool did not answer; none if it did.
pub(super) fn failure(message: &Message) -> Option<String> {
    let failed = result(message)?;
    // Every error has a code beside it; what was found may well be called so.
    failed["code"].as_str()?;
    failed["error"].as_str().map(str::to_owned)
}

/// The passages of one tool's answer; none if it is something else.
pub(super) fn in_result(message: &Message) -> Vec<Found> {
    let Some(result) = result(message) else {
        return Vec::new();
    };
    let list = |name: &str| result[name].as_array().map(Vec::as_slice);
    let passages = list("passages").or(list("commits")).unwrap_or_default();
    passages
        .iter()
        .enumerate()
        .filter_map(|(place, passage)| read(passage, place))
        .collect()
}

fn read(passage: &Value, place: usize) -> Option<Found> {
    let title = passage["source"]["title"].as_str().unwrap_or_default();
    let heading = passage["heading"].as_str().unwrap_or_default();
    Some(Found {
        cite: passage["cite"].as_u64()?,
        heading: heading.to_owned(),
        name: title.to_owned(),
        text: passage["text"].as_str()?.to_owned(),
        path: passage["source"]["path"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        line_start: number(&passage["source"]["line_start"]),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a score needs no more than an f32"
        )]
        score: passage["score"].as_f64().unwrap_or_default() as f32,
        place,
    })
}

/// Puts the best first and drops what does not answer: passages that share too few words with
/// the question, and what another says in nearly the same words. The searches score alike, so their scores compare.
pub(super) fn rank(found: &mut Vec<Found>, words: &[String], wish: &Wish) {
    #[expect(clippy::cast_precision_loss, reason = "a question has few words")]
    let share = |passage: &Found| {
        let text = format!("{} {} {}", passage.heading, passage.name, passage.text);
        words::in_text(&text, words) as f32 / words.len().max(1) as f32
    };
    let mut scored: Vec<(f32, Found)> = found
        .drain(..)
        .map(|passage| (share(&passage), passage))
        .collect();
    scored.retain(|(share, _)| *share >= LEAST_SHARE);
    let about_tests = words.iter().any(|word| word == "test");
    let weight = |(share, passage): &(f32, Found)| {
        let trust = if about_tests { 1.0 } else { passage.trust() };
        passage.score * (0.5 + share) * trust * passage.fits(wish)
    };
    let best = scored.iter().map(weight).fold(0.0, f32::max);
    scored.retain(|passage| weight(passage) >= best * LEAST_OF_BEST);
    scored.sort_by(|a, b| {
        let opens = b.1.opens(wish).cmp(&a.1.opens(wish));
        opens
            .then(weight(b).total_cmp(&weight(a)))
            .then(a.1.place.cmp(&b.1.place))
    });
    for (_, passage) in scored {
        if found
            .iter()
            .all(|kept| !words::are_alike(&kept.text, &passage.text))
        {
            found.push(passage);
        }
    }
}

/// A passage as a search would tell of it.
#[cfg(test)]
pub(super) fn passage(path: &str, line: u32, text: &str) -> Found {
    let passage = serde_json::json!({
        "cite": 1,
        "source": { "path": path, "line_start": line },
        "text": text,
        "score": 1.0,
    });
    read(&passage, 0).expect("a passage")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str, text: &str, score: f32) -> Found {
        let passage =
            json!({ "cite": 1, "source": { "path": path }, "text": text, "score": score });
        read(&passage, 0).expect("a passage")
    }

    #[test]
    fn prose_comes_before_code_and_code_before_its_tests() {
        let words = words::of_question("How are rules evaluated?");
        let text = |n| format!("rules are evaluated {n}");
        let mut all = vec![
            found("src/tests.rs", &text(1), 12.0),
            found("src/rules.rs", &text(2), 10.0),
            found("docs/rules.md", &text(3), 9.0),
            found("docs/cake.md", "flour and sugar", 99.0),
            found("docs/copy.md", &text(3), 9.0),
            found("docs/aside.md", &text(4), 1.0),
        ];
        rank(&mut all, &words, &Wish::Anything);
        let paths: Vec<&str> = all.iter().map(|passage| passage.path.as_str()).collect();
        assert_eq!(paths, ["docs/rules.md", "src/rules.rs", "src/tests.rs"]);
    }

    /// Which comes first for a question, of passages that match alike.
    fn first(question: &str, passages: &[(&str, &str, &str)]) -> String {
        let found = passages.iter().enumerate().map(|(place, (path, heading, text))| {
            let passage = json!({
                "cite": 1, "source": { "path": path }, "heading": heading, "text": text, "score": 5.0,
            });
            read(&passage, place).expect("a passage")
        });
        let mut found: Vec<Found> = found.collect();
        rank(
            &mut found,
            &words::of_question(question),
            &Wish::of(question),
        );
        found[0].path.clone()
    }

    #[test]
    fn what_something_is_is_told_by_its_definition() {
        let passages = [
            (
                "docs/use.md",
                "Using it",
                "The hook registry was used by us everywhere.",
            ),
            (
                "src/registry.rs",
                "HookRegistry",
                "/// Keeps hooks.\npub struct HookRegistry;",
            ),
        ];
        assert_eq!(
            first("What is a hook registry?", &passages),
            "src/registry.rs"
        );
        assert_eq!(
            first("Where is the hook registry used?", &passages),
            "docs/use.md"
        );
        let passages = [
            (
                "docs/use.md",
                "Using it",
                "We put hooks into our registry, the hook registry.",
            ),
            (
                "docs/words.md",
                "Words",
                "A hook registry is where hooks are.",
            ),
        ];
        assert_eq!(
            first("What is the hook registry?", &passages),
            "docs/words.md"
        );
    }

    #[test]
    fn a_definition_comes_before_what_merely_has_the_name() {
        let told = (
            "docs/journal.md",
            "What is kept",
            "The journal is an append-only log of all that happened.",
        );
        let declared = ("src/log.rs", "Journal", "pub struct Journal {");
        let getter = ("src/hub.rs", "Hub.journal", "pub fn journal(&self)");
        let implemented = ("src/log.rs", "Journal", "impl Drop for Journal {");
        let tested = ("tests/log.rs", "journal", "async fn journal() {}");
        let question = "What is the journal?";
        let fields = (
            "docs/fields.md",
            "Journal",
            "| journal | journal | journal |",
        );
        assert_eq!(
            first(question, &[getter, declared, fields, told]),
            "docs/journal.md"
        );
        assert_eq!(
            first(question, &[getter, implemented, declared]),
            "src/log.rs"
        );
        assert_eq!(first(question, &[tested, getter]), "src/hub.rs");
    }

    #[test]
    fn how_something_works_is_told_by_the_chapter_about_it() {
        let passages = [
            ("src/compact.rs", "compact", "/// Compaction, compacted."),
            (
                "docs/compaction.md",
                "Compaction",
                "Old turns become a summary.",
            ),
        ];
        let question = "How does compaction work?";
        assert_eq!(first(question, &passages), "docs/compaction.md");
    }

    #[test]
    fn what_to_do_is_told_by_steps() {
        let passages = [
            (
                "src/rule.rs",
                "add_rule",
                "/// Adds a rule.\nfn add_rule() {}",
            ),
            (
                "docs/rules.md",
                "Rules",
                "Whoever adds a rule owns the rule.",
            ),
            (
                "docs/add.md",
                "A rule",
                "To add a rule:\n\n1. Write it.\n2. Save it.",
            ),
        ];
        assert_eq!(first("How do I add a rule?", &passages), "docs/add.md");
        assert_eq!(first("Where is a rule added?", &passages), "docs/rules.md");
    }

    #[test]
    fn what_was_decided_is_told_by_what_was_said() {
        let passages = [
            (
                "docs/tokens.md",
                "Refresh tokens",
                "Refresh tokens are long-lived tokens of which we had some.",
            ),
            (
                "context:0198#decision-1",
                "",
                "We dropped the refresh tokens: no shared store at the edge.",
            ),
        ];
        for (question, path) in [
            (
                "What did we decide about refresh tokens?",
                "context:0198#decision-1",
            ),
            ("What are refresh tokens?", "docs/tokens.md"),
        ] {
            assert_eq!(first(question, &passages), path, "{question}");
        }
    }

    #[test]
    fn why_something_is_so_is_told_by_its_history() {
        let passages = [
            (
                "docs/tokens.md",
                "Tokens",
                "We dropped the refresh tokens. They are gone.",
            ),
            (
                "commit:1f2e",
                "Ann · 2026-03-03",
                "Drop refresh tokens: no shared store at the edge",
            ),
        ];
        assert_eq!(
            first("Why did we drop refresh tokens?", &passages),
            "commit:1f2e"
        );
    }
}
