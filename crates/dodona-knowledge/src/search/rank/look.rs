//! What the index knows of the candidates of one segment.

use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader};

use crate::search::query::{Unit, Where};
use crate::search::schema::{FILE, Fields, LINE};
use crate::search::terms::{self, Opened, Places, Terms};
use crate::search::tuning::{BODY, FIELDS, SYMBOL, Tuning};

/// Keeps the positions of different fields far from each other.
const FIELD_SHIFT: u32 = 26;

/// What is known of a candidate.
pub(super) struct Seen {
    pub(super) address: DocAddress,
    /// What each unit earned.
    pub(super) earned: Vec<f32>,
    /// Where each unit that has a place in the question stands.
    pub(super) positions: Vec<Vec<u32>>,
    /// What the symbol's name earned.
    pub(super) name: f32,
    /// Which units the symbol has.
    pub(super) in_symbol: Vec<bool>,
    /// How many terms the symbol has, if any unit is among them.
    pub(super) symbol_terms: u32,
    /// How many terms the body has.
    pub(super) body_terms: u32,
    /// The number of the file it is in, and the line where it begins.
    pub(super) file: u64,
    pub(super) line: u64,
}

/// A look at the candidates of one segment.
pub(super) struct Look<'a> {
    segment: &'a SegmentReader,
    ord: usize,
    fields: &'a Fields,
    opened: Vec<Opened>,
    tuning: &'a Tuning,
    terms: &'a Terms,
    pub(super) seen: Vec<Seen>,
}

impl<'a> Look<'a> {
    /// The group is of one segment, in the order of the addresses, and not empty.
    pub(super) fn new(
        searcher: &'a Searcher,
        fields: &'a Fields,
        tuning: &'a Tuning,
        terms: &'a Terms,
        group: &[DocAddress],
        units: usize,
    ) -> tantivy::Result<Self> {
        let segment = searcher.segment_reader(group[0].segment_ord);
        let opened = fields.ranked().map(|field| Opened::new(segment, field));
        let blank = |address: &DocAddress| Seen {
            address: *address,
            earned: vec![0.0; units],
            positions: vec![Vec::new(); units],
            name: 0.0,
            in_symbol: vec![false; units],
            symbol_terms: 0,
            body_terms: 0,
            file: 0,
            line: 0,
        };
        Ok(Self {
            segment,
            ord: group[0].segment_ord as usize,
            fields,
            opened: opened.into_iter().collect::<tantivy::Result<_>>()?,
            tuning,
            terms,
            seen: group.iter().map(blank).collect(),
        })
    }

    /// Notes where each candidate stands, and how long it is.
    pub(super) fn at_files(&mut self) -> tantivy::Result<()> {
        let columns = self.segment.fast_fields();
        let (files, lines) = (columns.u64(FILE)?, columns.u64(LINE)?);
        let lengths = &self.opened[BODY].norms;
        for seen in &mut self.seen {
            let doc = seen.address.doc_id;
            seen.file = files.first(doc).unwrap_or_default();
            seen.line = lines.first(doc).unwrap_or_default();
            seen.body_terms = lengths.fieldnorm(doc);
        }
        Ok(())
    }

    /// Notes what a unit earned, with the rarity of each of its forms.
    pub(super) fn at_unit(
        &mut self,
        index: usize,
        unit: &Unit,
        forms: &[f32],
    ) -> tantivy::Result<()> {
        for (variant, rarity) in unit.variants.iter().zip(forms) {
            if *rarity <= 0.0 {
                continue;
            }
            let mut weights = vec![0.0; self.seen.len()];
            let number = self.terms.number(&variant.text);
            for at in 0..FIELDS {
                if variant.place == Where::Anywhere || at == SYMBOL {
                    self.field(index, unit, number, at, &mut weights)?;
                }
            }
            let worth = unit.weight * variant.share * rarity;
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
        number: usize,
        at: usize,
        weights: &mut [f32],
    ) -> tantivy::Result<()> {
        let Some(info) = &self.terms.places(number, at)[self.ord] else {
            return Ok(());
        };
        let Opened { inverted, norms } = &self.opened[at];
        let option = match unit.place {
            Some(_) => IndexRecordOption::WithFreqsAndPositions,
            None => IndexRecordOption::WithFreqs,
        };
        let mut postings = inverted.read_postings_from_terminfo(info, option)?;
        let (boost, b) = (self.tuning.boost[at], self.tuning.length[at]);
        let mean = self.terms.stats.mean[at].max(1.0);
        let mut buffer = Vec::new();
        for (seen, weight) in self.seen.iter_mut().zip(weights) {
            let doc = seen.address.doc_id;
            if postings.doc() < doc {
                postings.seek(doc);
            }
            if postings.doc() != doc {
                continue;
            }
            let terms = norms.fieldnorm(doc);
            let length = terms as f32 / mean;
            *weight += boost * postings.term_freq() as f32 / (1.0 - b + b * length);
            if at == SYMBOL {
                seen.in_symbol[index] = true;
                seen.symbol_terms = terms;
            }
            if unit.place.is_some() {
                postings.positions(&mut buffer);
                let shift = (at as u32) << FIELD_SHIFT;
                seen.positions[index].extend(buffer.iter().map(|p| shift + p));
            }
        }
        Ok(())
    }

    /// Notes which candidates have exactly a name.
    pub(super) fn at_name(&mut self, places: &Places, sure: f32) -> tantivy::Result<()> {
        let Some(info) = &places[self.ord] else {
            return Ok(());
        };
        let inverted = self.segment.inverted_index(self.fields.name)?;
        let mut postings = inverted.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
        let worth = sure * self.terms.stats.rarity(terms::count(places));
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

const _: () = assert!(BODY < FIELDS && FIELDS < 1 << (32 - FIELD_SHIFT));
