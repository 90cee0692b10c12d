//! Passages in the answers of tools.

use dodona_proto::Message;
use serde_json::Value;

use super::words;

/// The least part of a question's words that a passage must have to count as an answer.
const LEAST_SHARE: f32 = 0.4;

/// The least a passage must weigh beside the best one to be worth quoting.
const LEAST_OF_BEST: f32 = 0.3;

/// A passage that a search found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The number under which it is cited.
    pub(super) cite: u64,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) path: String,
    /// Its first line in the file, from 1.
    pub(super) line_start: Option<u32>,
    line_end: u32,
    score: f32,
    /// Its place in the list of its search.
    place: usize,
}

impl Found {
    /// How much a passage explains, beside how well it matches: prose is written to explain, and
    /// a test repeats the words of what it tests.
    fn trust(&self) -> f32 {
        let in_tests = self
            .path
            .split(['/', '.', '_', '-'])
            .any(|part| part == "test" || part == "tests");
        let is_test = in_tests
            || ["#[test]", "::test]", "def test_"]
                .iter()
                .any(|mark| self.text.contains(mark));
        let is_prose = self.path.ends_with(".md") || self.path.starts_with("thread:");
        match (is_test, is_prose) {
            (true, _) => 0.4,
            (false, true) => 1.3,
            (false, false) => 1.0,
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

impl Found {
    /// Whether lines that were read are some of this passage.
    pub(super) fn holds(&self, lines: &Lines) -> bool {
        self.path == lines.path
            && self
                .line_start
                .is_some_and(|start| (start..=self.line_end).contains(&lines.line_start))
    }

    /// Whether it can be read as a file: neither the message of a commit nor an entry of a thread.
    pub(super) fn is_file(&self) -> bool {
        !["commit:", "thread:"]
            .iter()
            .any(|kind| self.path.starts_with(kind))
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
        title: format!("{heading} {title}").trim().to_owned(),
        text: passage["text"].as_str()?.to_owned(),
        path: passage["source"]["path"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        line_start: number(&passage["source"]["line_start"]),
        line_end: number(&passage["source"]["line_end"]).unwrap_or_default(),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a score needs no more than an f32"
        )]
        score: passage["score"].as_f64().unwrap_or_default() as f32,
        place,
    })
}

/// Puts the best first and drops what does not answer: passages that share too few words with
/// the question, and second copies. The searches score alike, so their scores compare.
pub(super) fn rank(found: &mut Vec<Found>, words: &[String]) {
    #[expect(clippy::cast_precision_loss, reason = "a question has few words")]
    let share = |passage: &Found| {
        let text = format!("{} {}", passage.title, passage.text);
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
        passage.score * (0.5 + share) * trust
    };
    let best = scored.iter().map(weight).fold(0.0, f32::max);
    scored.retain(|passage| weight(passage) >= best * LEAST_OF_BEST);
    scored.sort_by(|a, b| {
        weight(b)
            .total_cmp(&weight(a))
            .then(a.1.place.cmp(&b.1.place))
    });
    for (_, passage) in scored {
        if found.iter().all(|kept| kept.text != passage.text) {
            found.push(passage);
        }
    }
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
        rank(&mut all, &words);
        let paths: Vec<&str> = all.iter().map(|passage| passage.path.as_str()).collect();
        assert_eq!(paths, ["docs/rules.md", "src/rules.rs", "src/tests.rs"]);
    }
}
