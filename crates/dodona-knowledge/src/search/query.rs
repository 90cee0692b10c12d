//! From a question to the terms to look for. Nothing in it is syntax except double quotes.

use std::collections::BTreeSet;

use tantivy::tokenizer::Token;

use super::analyzer::{plain, squash, stemming, terms};
use super::stop::is_stop;
use super::tuning::Tuning;
use super::{sense, short};

/// What is read of a question: more is a pasted file, whose beginning says enough.
const MAX_TEXT_BYTES: usize = 8 * 1024;
const MAX_UNITS: usize = 64;
const MAX_PHRASES: usize = 8;
const MAX_PHRASE_TERMS: usize = 32;
/// A question of more words than this is not a name written with spaces.
const MAX_NAME_WORDS: usize = 5;

/// One way to write what is looked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variant {
    pub(super) text: String,
    /// The share of the unit's weight that it earns.
    pub(super) share: f32,
    pub(super) place: Where,
}

/// Where a term is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Anywhere,
    /// Only in the names of symbols: elsewhere the word says something else.
    Symbols,
}

/// Something to look for, with the other ways in which it may be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    /// The first is as asked.
    pub(super) variants: Vec<Variant>,
    /// Where in the question it stood; none for what was put together from several words.
    pub(super) place: Option<usize>,
    pub(super) weight: f32,
}

/// What a question asks for.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) units: Vec<Unit>,
    /// Each must occur, as terms with their distance from the first.
    pub(super) phrases: Vec<Vec<(usize, String)>>,
    /// Names that a symbol may have exactly, with how sure that is.
    pub(super) names: Vec<(String, f32)>,
    /// The word that may not be finished yet, unstemmed, and its unit.
    pub(super) unfinished: Option<(usize, String)>,
}

/// Reads a question.
pub(super) fn plan(text: &str, tuning: &Tuning) -> Plan {
    let text = head(text);
    let (phrases, bare) = quoted(text);
    let mut stemmer = stemming();
    let limit = MAX_UNITS * 2;
    let stems = terms(&mut stemmer, &bare, limit);
    let words = terms(&mut plain(), &bare, limit);
    let keep_stops = stems
        .iter()
        .zip(&words)
        .all(|(s, w)| s.position_length > 1 || is_stop(&w.text));
    let mut builder = Builder {
        seen: BTreeSet::new(),
        plan: Plan::default(),
    };
    for (stem, word) in stems.iter().zip(&words) {
        builder.add(stem, word, keep_stops, tuning);
    }
    builder.join(&words, tuning);
    let mut plan = builder.plan;
    plan.phrases = phrases
        .iter()
        .filter_map(|phrase| required(&terms(&mut stemmer, phrase, MAX_PHRASE_TERMS)))
        .collect();
    plan.names = names(text, &words, keep_stops);
    plan.unfinished = unfinished(text, &words, &plan.units);
    plan
}

struct Builder {
    seen: BTreeSet<String>,
    plan: Plan,
}

impl Builder {
    fn push(&mut self, text: String, place: Option<usize>, weight: f32) -> Option<&mut Unit> {
        if text.is_empty() || self.plan.units.len() >= MAX_UNITS || !self.seen.insert(text.clone())
        {
            return None;
        }
        self.plan.units.push(Unit {
            variants: vec![Variant {
                text,
                share: 1.0,
                place: Where::Anywhere,
            }],
            place,
            weight,
        });
        self.plan.units.last_mut()
    }

    /// Adds a word, or an identifier as a whole.
    fn add(&mut self, stem: &Token, word: &Token, keep_stops: bool, tuning: &Tuning) {
        if stem.position_length > 1 {
            self.push(stem.text.clone(), None, tuning.whole);
        } else if keep_stops || !is_stop(&word.text) {
            let (shorts, senses) = (short::others(&stem.text), sense::of(&stem.text));
            let unit = self.push(stem.text.clone(), Some(stem.position), 1.0);
            if let Some(unit) = unit {
                let variant = |place, share| {
                    move |other: &str| Variant {
                        text: other.to_owned(),
                        share,
                        place,
                    }
                };
                let shorts = shorts.map(variant(Where::Anywhere, tuning.short));
                let senses = senses.map(variant(Where::Symbols, tuning.sense));
                unit.variants.extend(shorts.chain(senses));
            }
        }
    }

    /// Adds neighbouring words written together: "file system" also asks for `file_system` and
    /// `filesystem`.
    fn join(&mut self, words: &[Token], tuning: &Tuning) {
        let parts: Vec<&Token> = words.iter().filter(|w| w.position_length == 1).collect();
        let mut stemmer = stemming();
        for pair in parts.windows(2) {
            let stops = pair.iter().filter(|w| is_stop(&w.text)).count();
            if stops < 2 {
                let joined = format!("{}{}", pair[0].text, pair[1].text);
                for token in terms(&mut stemmer, &joined, 1) {
                    self.push(token.text, None, tuning.joined);
                }
            }
        }
    }
}

/// The names that the question may be, or contain: all of it, if it is short, and identifiers
/// written as such.
fn names(text: &str, words: &[Token], keep_stops: bool) -> Vec<(String, f32)> {
    let mut out: Vec<(String, f32)> = Vec::new();
    let simple: Vec<&Token> = words.iter().filter(|w| w.position_length == 1).collect();
    if simple.len() <= MAX_NAME_WORDS {
        out.push((squash(&mut plain(), text), 1.0));
    }
    let content: Vec<&&Token> = simple
        .iter()
        .filter(|w| keep_stops || !is_stop(&w.text))
        .collect();
    if content.len() <= MAX_NAME_WORDS {
        out.push((content.iter().map(|w| w.text.as_str()).collect(), 1.0));
    }
    for word in words {
        if word.position_length > 1 {
            out.push((word.text.clone(), 1.0));
        }
    }
    let mut seen = BTreeSet::new();
    out.retain(|(name, _)| !name.is_empty() && seen.insert(name.clone()));
    out.truncate(MAX_UNITS);
    out
}

/// The last word, if the text ends with it: somebody may still be typing.
fn unfinished(text: &str, words: &[Token], units: &[Unit]) -> Option<(usize, String)> {
    let word = words.last()?;
    let typing = text.chars().next_back().is_some_and(char::is_alphanumeric);
    let index = units.iter().position(|u| u.place == Some(word.position))?;
    (typing && word.text.chars().count() >= 2).then(|| (index, word.text.clone()))
}

/// Takes the quoted parts out of a question, and gives the question without its quotes. A quote
/// that is not closed is an ordinary character.
fn quoted(text: &str) -> (Vec<&str>, String) {
    let mut pieces: Vec<&str> = text.split(['"', '“', '”']).collect();
    let last = pieces.len().saturating_sub(1);
    let phrases = pieces
        .iter()
        .enumerate()
        .filter(|(i, _)| i % 2 == 1 && *i < last)
        .map(|(_, piece)| *piece)
        .take(MAX_PHRASES)
        .collect();
    pieces.retain(|piece| !piece.is_empty());
    (phrases, pieces.join(" "))
}

/// The terms of a phrase: the parts, since the whole of an identifier stands at the same place.
fn required(tokens: &[Token]) -> Option<Vec<(usize, String)>> {
    let parts: Vec<(usize, String)> = tokens
        .iter()
        .filter(|t| t.position_length == 1)
        .map(|t| (t.position, t.text.clone()))
        .collect();
    (!parts.is_empty()).then_some(parts)
}

fn head(text: &str) -> &str {
    let mut end = MAX_TEXT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Vec<String> {
        let units = plan(text, &Tuning::default()).units;
        let placed = units.into_iter().filter(|u| u.place.is_some());
        placed.map(|u| u.variants[0].text.clone()).collect()
    }

    #[test]
    fn a_question_is_reduced_to_what_it_says() {
        for (text, expected) in [
            ("How are rules evaluated?", vec!["rule", "evalu"]),
            ("what is the definition of X", vec!["x"]),
            ("what is this", vec!["what", "is", "this"]),
            (
                "foo AND NOT body:bar^3 ~",
                vec!["foo", "not", "bodi", "bar", "3"],
            ),
            ("\"hello world\" again", vec!["hello", "world", "again"]),
            ("parseQuery", vec!["pars", "queri"]),
            ("…", vec![]),
        ] {
            assert_eq!(asked(text), expected, "{text:?}");
        }
    }

    #[test]
    fn only_closed_quotes_make_phrases() {
        let phrases = |text| plan(text, &Tuning::default()).phrases.len();
        assert_eq!(phrases("\"hello world\" again"), 1);
        assert_eq!(phrases("\"hello world again"), 0);
        assert_eq!(phrases("\"\" \"...\""), 0);
        assert_eq!(phrases("“hello world” and \"more\""), 2);
    }

    #[test]
    fn a_plan_has_a_bound() {
        let text: String = (0..100_000).map(|n| format!("word{n} \"q{n}\" ")).collect();
        let plan = plan(&text, &Tuning::default());
        assert!(plan.units.len() <= MAX_UNITS && plan.phrases.len() <= MAX_PHRASES);
    }
}
