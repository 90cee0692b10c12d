//! The second step of a search: the candidates, looked at closely.
//!
//! BM25F: a term's occurrences in all fields are weighed together before they saturate, so that
//! a term found in four fields does not count as four terms. `look` reads what the index knows of
//! the candidates, `signs` makes of it what speaks for a passage; the score is their weighted sum.

mod look;
mod signs;

use tantivy::{DocAddress, Searcher};

use self::look::{Look, Seen};
use self::signs::Files;
use super::query::{Plan, Unit};
use super::schema::Fields;
use super::terms::Terms;
use super::tuning::Tuning;

/// Scores candidates, which come sorted by address.
pub(super) fn score(
    searcher: &Searcher,
    fields: &Fields,
    plan: &Plan,
    terms: &Terms,
    candidates: &[DocAddress],
    tuning: &Tuning,
) -> tantivy::Result<Vec<(f32, DocAddress)>> {
    let units = plan.units.iter();
    let forms: Vec<Vec<f32>> = units.map(|unit| rarities(terms, unit)).collect();
    let rarity: Vec<f32> = forms
        .iter()
        .map(|all| all.iter().copied().fold(0.0, f32::max))
        .collect();
    let mut all: Vec<Seen> = Vec::with_capacity(candidates.len());
    for group in candidates.chunk_by(|a, b| a.segment_ord == b.segment_ord) {
        let mut look = Look::new(searcher, fields, tuning, terms, group, plan.units.len())?;
        look.at_files()?;
        for (index, unit) in plan.units.iter().enumerate() {
            look.at_unit(index, unit, &forms[index])?;
        }
        for ((_, sure), places) in plan.names.iter().zip(&terms.names) {
            look.at_name(places, *sure)?;
        }
        all.append(&mut look.seen);
    }
    let files = Files::of(&all, &rarity);
    let scored = all.iter().map(|seen| {
        let signs = signs::of(seen, plan, &rarity, &files);
        (signs.weighed(tuning), seen.address)
    });
    Ok(scored.collect())
}

/// How rare each form of a unit is. A rare other form is not worth more than the word that was
/// asked for, if that exists.
fn rarities(terms: &Terms, unit: &Unit) -> Vec<f32> {
    let variants = unit.variants.iter();
    let mut all: Vec<f32> = variants.map(|form| terms.rarity(&form.text)).collect();
    let asked = all.first().copied().unwrap_or_default();
    if asked > 0.0 {
        all.iter_mut()
            .for_each(|rarity| *rarity = rarity.min(asked));
    }
    all
}
