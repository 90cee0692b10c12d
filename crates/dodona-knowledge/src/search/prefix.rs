//! The last word of a question, while it is still being typed.

use std::collections::BTreeMap;

use tantivy::{Searcher, Term};

use super::analyzer::{stemming, terms};
use super::query::{Plan, Variant, Where};
use super::schema::Fields;
use super::tuning::Tuning;

/// How many ways to finish a word are tried.
const MAX_COMPLETIONS: usize = 12;
/// How many terms of a segment are looked at for them: "a" begins very many.
const MAX_SCANNED: usize = 2_000;
/// In a longer question a last word that exists is taken for finished: looking for its
/// continuations costs more than it ever found.
const MAX_TYPED_WORDS: usize = 3;
/// Endings that undo what stemming would do to a word cut in the middle ("evaluat" + "e").
const ENDINGS: [&str; 4] = ["e", "ed", "ing", "ion"];

/// Adds the words that begin with the unfinished one to its unit.
pub(super) fn complete(
    searcher: &Searcher,
    fields: &Fields,
    plan: &mut Plan,
    tuning: &Tuning,
) -> tantivy::Result<()> {
    let Some((index, word)) = plan.unfinished.clone() else {
        return Ok(());
    };
    let words = plan.units.iter().filter(|u| u.place.is_some()).count();
    let Some(unit) = plan.units.get_mut(index) else {
        return Ok(());
    };
    let asked = Term::from_field_text(fields.body, &unit.variants[0].text);
    let exists = searcher.doc_freq(&asked)? > 0;
    let share = tuning.prefix[usize::from(!exists)];
    if share <= 0.0 || (exists && words > MAX_TYPED_WORDS) {
        return Ok(());
    }
    let mut found = longer(searcher, fields, &word)?;
    if !exists {
        let mut stemmer = stemming();
        for ending in ENDINGS {
            for token in terms(&mut stemmer, &format!("{word}{ending}"), 1) {
                let term = Term::from_field_text(fields.body, &token.text);
                found.push((token.text, searcher.doc_freq(&term)?));
            }
        }
    }
    // The most frequent first: what somebody types is more likely a common word. Equal counts
    // go by the alphabet, so that the same question has the same answer.
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (text, count) in found.into_iter().take(MAX_COMPLETIONS) {
        if count > 0 && unit.variants.iter().all(|known| known.text != text) {
            unit.variants.push(Variant {
                text,
                share,
                place: Where::Anywhere,
            });
        }
    }
    Ok(())
}

fn longer(searcher: &Searcher, fields: &Fields, word: &str) -> tantivy::Result<Vec<(String, u64)>> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for segment in searcher.segment_readers() {
        for field in [fields.body, fields.symbol, fields.title, fields.heading] {
            let inverted = segment.inverted_index(field)?;
            let mut stream = inverted.terms().range().ge(word.as_bytes()).into_stream()?;
            for _ in 0..MAX_SCANNED {
                if !stream.advance() || !stream.key().starts_with(word.as_bytes()) {
                    break;
                }
                if let Ok(text) = std::str::from_utf8(stream.key()) {
                    let count = u64::from(stream.value().doc_freq);
                    *counts.entry(text.to_owned()).or_default() += count;
                }
            }
        }
    }
    Ok(counts.into_iter().collect())
}
