//! The second step of a search: the candidates, looked at closely.
//!
//! BM25F: a term's occurrences in all fields are weighed together before they saturate, so that
//! a term found in four fields does not count as four terms. On top come the share of the
//! question that is present, neighbours that stay neighbours, and a symbol with the very name.

use std::collections::HashMap;

use tantivy::postings::Postings;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader, Term};

use super::query::{Plan, Unit};
use super::schema::{FILE, Fields};
use super::tuning::{BODY, FIELDS, SYMBOL, Tuning};

/// How far from the asked distance two words still count as neighbours.
const NEAR: u32 = 4;
/// Keeps the positions of different fields far from each other.
const FIELD_SHIFT: u32 = 26;

/// What is known of a candidate.
struct Seen {
    address: DocAddress,
    /// What each unit earned.
    earned: Vec<f32>,
    /// Where each unit that has a place in the question stands.
    positions: Vec<Vec<u32>>,
    /// What the symbol's name earned.
    name: f32,
    /// The file it is in.
    file: u64,
    /// Which units the symbol has, and how many words.
    in_symbol: Vec<bool>,
    symbol_length: u32,
}

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
    let mut all = Vec::with_capacity(candidates.len());
    for group in candidates.chunk_by(|a, b| a.segment_ord == b.segment_ord) {
        let mut look = Look {
            segment: searcher.segment_reader(group[0].segment_ord),
            searcher,
            fields,
            tuning,
            stats: &stats,
            seen: blank(group, plan.units.len()),
        };
        for (index, unit) in plan.units.iter().enumerate() {
            look.unit(index, unit, &forms[index])?;
        }
        for (name, sure) in &plan.names {
            look.name(name, *sure)?;
        }
        look.files()?;
        all.append(&mut look.seen);
    }
    let files = files(&all);
    let scored = all.iter().map(|seen| {
        let around: f32 = files.get(&seen.file).map_or(0.0, |best| best.iter().sum());
        let score = sum(seen, plan, &rarity, tuning) + tuning.file * around;
        (score, seen.address)
    });
    Ok(scored.collect())
}

/// What each unit earned at best in each file.
fn files(all: &[Seen]) -> HashMap<u64, Vec<f32>> {
    let mut files: HashMap<u64, Vec<f32>> = HashMap::new();
    for seen in all {
        let best = files
            .entry(seen.file)
            .or_insert_with(|| vec![0.0; seen.earned.len()]);
        for (best, earned) in best.iter_mut().zip(&seen.earned) {
            *best = best.max(*earned);
        }
    }
    files
}

fn blank(group: &[DocAddress], units: usize) -> Vec<Seen> {
    let one = |address: &DocAddress| Seen {
        address: *address,
        earned: vec![0.0; units],
        positions: vec![Vec::new(); units],
        name: 0.0,
        file: 0,
        in_symbol: vec![false; units],
        symbol_length: 0,
    };
    group.iter().map(one).collect()
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
        for (text, _) in &unit.variants {
            all.push(self.term_rarity(searcher, fields, text)?);
        }
        let asked = all.first().copied().unwrap_or_default();
        if asked > 0.0 {
            all.iter_mut()
                .for_each(|rarity| *rarity = rarity.min(asked));
        }
        Ok(all)
    }
}

/// A look at the candidates of one segment.
struct Look<'a> {
    segment: &'a SegmentReader,
    searcher: &'a Searcher,
    fields: &'a Fields,
    tuning: &'a Tuning,
    stats: &'a Stats,
    seen: Vec<Seen>,
}

impl Look<'_> {
    fn unit(&mut self, index: usize, unit: &Unit, forms: &[f32]) -> tantivy::Result<()> {
        for ((text, share), rarity) in unit.variants.iter().zip(forms) {
            if *rarity <= 0.0 {
                continue;
            }
            let mut weights = vec![0.0; self.seen.len()];
            for at in 0..FIELDS {
                self.field(index, unit, text, at, &mut weights)?;
            }
            let worth = unit.weight * share * rarity;
            for (seen, weight) in self.seen.iter_mut().zip(weights) {
                let earned = worth * weight / (weight + self.tuning.saturation);
                seen.earned[index] = seen.earned[index].max(earned);
            }
        }
        Ok(())
    }

    /// Adds up the occurrences of a term in one field, by their worth.
    fn field(
        &mut self,
        index: usize,
        unit: &Unit,
        text: &str,
        at: usize,
        weights: &mut [f32],
    ) -> tantivy::Result<()> {
        let field: Field = self.fields.ranked()[at];
        let inverted = self.segment.inverted_index(field)?;
        let option = match unit.place {
            Some(_) => IndexRecordOption::WithFreqsAndPositions,
            None => IndexRecordOption::WithFreqs,
        };
        let term = Term::from_field_text(field, text);
        let Some(mut postings) = inverted.read_postings(&term, option)? else {
            return Ok(());
        };
        let norms = self.segment.get_fieldnorms_reader(field)?;
        let (boost, b) = (self.tuning.boost[at], self.tuning.length[at]);
        let mut buffer = Vec::new();
        for (seen, weight) in self.seen.iter_mut().zip(weights) {
            let doc = seen.address.doc_id;
            if postings.doc() < doc {
                postings.seek(doc);
            }
            if postings.doc() != doc {
                continue;
            }
            let length = norms.fieldnorm(doc) as f32 / self.stats.average[at];
            *weight += boost * postings.term_freq() as f32 / (1.0 - b + b * length);
            if at == SYMBOL {
                seen.in_symbol[index] = true;
                seen.symbol_length = norms.fieldnorm(doc);
            }
            if unit.place.is_some() {
                postings.positions(&mut buffer);
                let shift = (at as u32) << FIELD_SHIFT;
                seen.positions[index].extend(buffer.iter().map(|p| shift + p));
            }
        }
        Ok(())
    }

    /// Notes which file each candidate is in.
    fn files(&mut self) -> tantivy::Result<()> {
        let column = self.segment.fast_fields().u64(FILE)?;
        for seen in &mut self.seen {
            seen.file = column.first(seen.address.doc_id).unwrap_or_default();
        }
        Ok(())
    }

    fn name(&mut self, name: &str, sure: f32) -> tantivy::Result<()> {
        let term = Term::from_field_text(self.fields.name, name);
        let inverted = self.segment.inverted_index(self.fields.name)?;
        let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::Basic)? else {
            return Ok(());
        };
        let worth = sure * self.stats.rarity(self.searcher.doc_freq(&term)?);
        for seen in &mut self.seen {
            let doc = seen.address.doc_id;
            if postings.doc() < doc {
                postings.seek(doc);
            }
            if postings.doc() == doc {
                seen.name = seen.name.max(worth);
            }
        }
        Ok(())
    }
}

/// The score of a candidate.
fn sum(seen: &Seen, plan: &Plan, rarity: &[f32], tuning: &Tuning) -> f32 {
    let terms: f32 = seen.earned.iter().sum();
    let placed = |index: &usize| plan.units[*index].place.is_some();
    let all: Vec<usize> = (0..plan.units.len()).filter(placed).collect();
    let asked: f32 = all.iter().map(|i| rarity[*i]).sum();
    let present = all.iter().filter(|i| seen.earned[**i] > 0.0);
    let present: f32 = present.map(|i| rarity[*i]).sum();
    let share = if asked > 0.0 { present / asked } else { 0.0 };
    let near: f32 = all
        .windows(2)
        .map(|pair| {
            let gap =
                plan.units[pair[1]].place.unwrap_or(0) - plan.units[pair[0]].place.unwrap_or(0);
            let apart = apart(
                &seen.positions[pair[0]],
                &seen.positions[pair[1]],
                gap as u32,
            );
            let worth = rarity[pair[0]].min(rarity[pair[1]]);
            apart.map_or(0.0, |d| worth / (1.0 + d as f32))
        })
        .sum();
    terms * (1.0 + tuning.coverage * share * share)
        + tuning.proximity * near
        + tuning.name * seen.name
        + tuning.named * named(seen, plan, rarity)
}

/// How rare the words are that the symbol shares with the question, by the share of its words
/// that they are.
fn named(seen: &Seen, plan: &Plan, rarity: &[f32]) -> f32 {
    let hits =
        (0..plan.units.len()).filter(|i| seen.in_symbol[*i] && plan.units[*i].place.is_some());
    let (mut count, mut worth) = (0, 0.0);
    for index in hits {
        count += 1;
        worth += rarity[index];
    }
    // An identifier of several parts is there as a whole, too.
    let words = match seen.symbol_length {
        0 | 1 => 1,
        more => more - 1,
    };
    worth * (count as f32 / words as f32).min(1.0)
}

/// How far two words are from standing `gap` apart, if they are near at all.
fn apart(first: &[u32], second: &[u32], gap: u32) -> Option<u32> {
    let mut second = second.to_vec();
    second.sort_unstable();
    let mut best = NEAR + 1;
    for position in first {
        let ideal = position + gap;
        let at = second.partition_point(|p| *p < ideal);
        let around = second[at.saturating_sub(1)..].iter().take(2);
        best = around.map(|p| p.abs_diff(ideal)).fold(best, u32::min);
    }
    (best <= NEAR).then_some(best)
}

const _: () = assert!(BODY < FIELDS && FIELDS < 1 << (32 - FIELD_SHIFT));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_measured_from_where_they_should_stand() {
        assert_eq!(apart(&[3], &[4], 1), Some(0));
        assert_eq!(apart(&[3, 90], &[1, 93], 1), Some(2));
        assert_eq!(apart(&[3], &[40], 1), None);
        assert_eq!(apart(&[], &[4], 1), None);
        assert_eq!(apart(&[5], &[4], 1), Some(2));
    }
}
