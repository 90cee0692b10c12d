//! The second step of a search: the candidates, looked at closely.
//!
//! BM25F: a term's occurrences in all fields are weighed together before they saturate, so that
//! a term found in four fields does not count as four terms. `look` reads what the index knows of
//! the candidates, `signs` makes of it what speaks for a passage; the score is their weighted sum.

mod look;
mod signs;

use tantivy::{DocAddress, Searcher, SegmentReader, Term};

use self::look::{Look, Seen};
use self::signs::Files;
use super::query::{Plan, Unit};
use super::schema::Fields;
use super::tuning::{FIELDS, Tuning};

/// Scores candidates, which come sorted by address.
pub(super) fn score(
    searcher: &Searcher,
    fields: &Fields,
    plan: &Plan,
    candidates: &[DocAddress],
    tuning: &Tuning,
) -> tantivy::Result<Vec<(f32, DocAddress)>> {
    let stats = Stats::read(searcher, fields)?;
    let forms = plan
        .units
        .iter()
        .map(|unit| stats.rarities(searcher, fields, unit))
        .collect::<tantivy::Result<Vec<Vec<f32>>>>()?;
    let rarity: Vec<f32> = forms
        .iter()
        .map(|all| all.iter().copied().fold(0.0, f32::max))
        .collect();
    let mut all: Vec<Seen> = Vec::with_capacity(candidates.len());
    for group in candidates.chunk_by(|a, b| a.segment_ord == b.segment_ord) {
        let mut look = Look::new(searcher, fields, tuning, &stats, group, plan.units.len());
        look.at_files()?;
        for (index, unit) in plan.units.iter().enumerate() {
            look.at_unit(index, unit, &forms[index])?;
        }
        for (name, sure) in &plan.names {
            look.at_name(name, *sure)?;
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

/// The size of the index, which tells what is rare and what is long.
struct Stats {
    passages: f32,
    average: [f32; FIELDS],
}

impl Stats {
    fn read(searcher: &Searcher, fields: &Fields) -> tantivy::Result<Self> {
        let segments = searcher.segment_readers();
        let passages: u32 = segments.iter().map(SegmentReader::max_doc).sum();
        let passages = passages.max(1) as f32;
        let mut average = [1.0; FIELDS];
        for (mean, field) in average.iter_mut().zip(fields.ranked()) {
            let mut tokens = 0;
            for segment in segments {
                tokens += segment.inverted_index(field)?.total_num_tokens();
            }
            *mean = (tokens as f32 / passages).max(1.0);
        }
        Ok(Self { passages, average })
    }

    fn rarity(&self, count: u64) -> f32 {
        let count = (count as f32).min(self.passages);
        (1.0 + (self.passages - count + 0.5) / (count + 0.5)).ln()
    }

    /// How rare a term is: by the field in which it is most frequent. Zero when it is nowhere.
    fn term_rarity(
        &self,
        searcher: &Searcher,
        fields: &Fields,
        text: &str,
    ) -> tantivy::Result<f32> {
        let mut most = 0;
        for field in fields.ranked() {
            most = searcher
                .doc_freq(&Term::from_field_text(field, text))?
                .max(most);
        }
        Ok(if most == 0 { 0.0 } else { self.rarity(most) })
    }

    /// How rare each form of a unit is. A rare other form is not worth more than the word that
    /// was asked for, if that exists.
    fn rarities(
        &self,
        searcher: &Searcher,
        fields: &Fields,
        unit: &Unit,
    ) -> tantivy::Result<Vec<f32>> {
        let mut all = Vec::with_capacity(unit.variants.len());
        for variant in &unit.variants {
            all.push(self.term_rarity(searcher, fields, &variant.text)?);
        }
        let asked = all.first().copied().unwrap_or_default();
        if asked > 0.0 {
            all.iter_mut()
                .for_each(|rarity| *rarity = rarity.min(asked));
        }
        Ok(all)
    }
}
