//! The terms of a plan as the index has them.
//!
//! The dictionaries are asked once for each term: who finds candidates, who ranks them and who
//! tells rare from common all need the same, and to ask took longer than to answer.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentReader, Term};

use super::query::Plan;
use super::schema::Fields;
use super::tuning::FIELDS;

/// Where the postings of a term are, by segment.
pub(super) type Places = Vec<Option<TermInfo>>;

/// What the index knows of the terms of a plan.
pub(super) struct Terms {
    by_text: HashMap<String, usize>,
    /// In the order of `by_text`, each by field.
    found: Vec<[Places; FIELDS]>,
    /// In the order of the plan.
    pub(super) names: Vec<Places>,
    pub(super) stats: Stats,
}

/// One field of one segment.
pub(super) struct Opened {
    pub(super) inverted: Arc<InvertedIndexReader>,
    pub(super) norms: FieldNormReader,
}

impl Opened {
    pub(super) fn new(segment: &SegmentReader, field: Field) -> tantivy::Result<Self> {
        Ok(Self {
            inverted: segment.inverted_index(field)?,
            norms: segment.get_fieldnorms_reader(field)?,
        })
    }
}

impl Terms {
    pub(super) fn read(searcher: &Searcher, fields: &Fields, plan: &Plan) -> tantivy::Result<Self> {
        let mut by_text = HashMap::new();
        let mut texts: Vec<&str> = Vec::new();
        for variant in plan.units.iter().flat_map(|unit| &unit.variants) {
            by_text.entry(variant.text.clone()).or_insert_with(|| {
                texts.push(&variant.text);
                texts.len() - 1
            });
        }
        let mut found: Vec<[Places; FIELDS]> = vec![Default::default(); texts.len()];
        let mut names: Vec<Places> = vec![Places::new(); plan.names.len()];
        for segment in searcher.segment_readers() {
            for (at, field) in fields.ranked().into_iter().enumerate() {
                let inverted = segment.inverted_index(field)?;
                for (text, found) in texts.iter().zip(&mut found) {
                    let term = Term::from_field_text(field, text);
                    found[at].push(inverted.get_term_info(&term)?);
                }
            }
            let inverted = segment.inverted_index(fields.name)?;
            for ((name, _), found) in plan.names.iter().zip(&mut names) {
                let term = Term::from_field_text(fields.name, name);
                found.push(inverted.get_term_info(&term)?);
            }
        }
        Ok(Self {
            by_text,
            found,
            names,
            stats: Stats::read(searcher, fields)?,
        })
    }

    /// The number of a text of the plan, by which it is found here.
    pub(super) fn number(&self, text: &str) -> usize {
        self.by_text[text]
    }

    /// How many texts there are.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Where a text is in one of the ranked fields.
    pub(super) fn places(&self, number: usize, field: usize) -> &Places {
        &self.found[number][field]
    }

    /// How rare a text is: by the field in which it is most frequent. Zero when it is nowhere.
    pub(super) fn rarity(&self, text: &str) -> f32 {
        let fields = self.found[self.number(text)].iter();
        match fields.map(count).max().unwrap_or_default() {
            0 => 0.0,
            most => self.stats.rarity(most),
        }
    }
}

/// How many passages have a term.
pub(super) fn count(places: &Places) -> u64 {
    let counts = places.iter().flatten();
    counts.map(|info| u64::from(info.doc_freq)).sum()
}

/// The size of the index, which tells what is rare and what is long.
pub(super) struct Stats {
    passages: f32,
    /// How many terms a passage has on average: in the ranked fields, and in names.
    pub(super) mean: [f32; FIELDS],
    pub(super) mean_name: f32,
}

impl Stats {
    fn read(searcher: &Searcher, fields: &Fields) -> tantivy::Result<Self> {
        let segments = searcher.segment_readers();
        let passages: u32 = segments.iter().map(SegmentReader::max_doc).sum();
        let passages = passages.max(1) as f32;
        let mean_of = |field| -> tantivy::Result<f32> {
            let mut tokens = 0;
            for segment in segments {
                tokens += segment.inverted_index(field)?.total_num_tokens();
            }
            Ok(tokens as f32 / passages)
        };
        let mut mean = [0.0; FIELDS];
        for (mean, field) in mean.iter_mut().zip(fields.ranked()) {
            *mean = mean_of(field)?;
        }
        Ok(Self {
            passages,
            mean,
            mean_name: mean_of(fields.name)?,
        })
    }

    /// How rare something is that so many passages have.
    pub(super) fn rarity(&self, count: u64) -> f32 {
        let count = (count as f32).min(self.passages);
        (1.0 + (self.passages - count + 0.5) / (count + 0.5)).ln()
    }
}
