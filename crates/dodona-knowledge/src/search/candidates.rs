//! The first step of a search: the passages worth a closer look.
//!
//! A sum of term scores (BM25) decides; what makes a good order is left to `rank`. The terms are
//! added up one after the other, over all passages of a segment: a question has dozens of them
//! and wants hundreds of candidates, and to skip what cannot win then takes longer than to add.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::TermInfo;
use tantivy::query::{BooleanQuery, EnableScoring, Occur, PhraseQuery, Query, TermQuery, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocId, DocSet, Searcher, SegmentReader, TERMINATED, Term};

use super::Question;
use super::query::{Plan, Where};
use super::schema::Fields;
use super::terms::{self, Opened, Terms};
use super::tuning::{FIELDS, SYMBOL, Tuning};

/// Whatever the limit, no more than this is looked at.
const MAX_CANDIDATES: usize = 5_000;
/// How soon more occurrences stop counting, and how much a field's length counts: as everywhere.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Finds the candidates, in the order of their addresses.
pub(super) fn find(
    searcher: &Searcher,
    fields: &Fields,
    plan: &Plan,
    terms: &Terms,
    question: &Question,
    tuning: &Tuning,
) -> tantivy::Result<Vec<DocAddress>> {
    let required = required(searcher, fields, plan, question)?;
    let wanted = Wanted::new(plan, terms, tuning);
    let count = question
        .limit
        .saturating_mul(2)
        .clamp(tuning.candidates, MAX_CANDIDATES);
    let mut best = Best::new(count);
    for (ord, segment) in (0_u32..).zip(searcher.segment_readers()) {
        let sums = wanted.sums(segment, ord as usize, fields, terms)?;
        let mut offer = |doc: DocId| {
            let score = sums[doc as usize];
            if best.takes(score) && !segment.is_deleted(doc) {
                best.push(score, DocAddress::new(ord, doc));
            }
        };
        match &required {
            None => (0..segment.max_doc()).for_each(offer),
            Some(required) => {
                let mut docs = required.scorer(segment, 1.0)?;
                while docs.doc() != TERMINATED {
                    offer(docs.doc());
                    docs.advance();
                }
            }
        }
    }
    Ok(best.finish())
}

/// What each term of a plan is worth in each field.
struct Wanted {
    /// By the term's number.
    weights: Vec<[f32; FIELDS]>,
    /// In the order of the plan.
    names: Vec<f32>,
    /// What the length of a field comes to, by the byte in which it is kept.
    norms: [Norms; FIELDS],
    name_norms: Norms,
}

type Norms = [f32; 256];

impl Wanted {
    fn new(plan: &Plan, terms: &Terms, tuning: &Tuning) -> Self {
        let stats = &terms.stats;
        let mut weights = vec![[0.0; FIELDS]; terms.len()];
        for unit in &plan.units {
            for variant in &unit.variants {
                let number = terms.number(&variant.text);
                let sums = weights[number].iter_mut().zip(tuning.boost).enumerate();
                for (at, (sum, boost)) in sums {
                    if variant.place == Where::Anywhere || at == SYMBOL {
                        // The square root: a term is looked for in five fields, whose scores
                        // add up here.
                        *sum += unit.weight * variant.share * boost.sqrt();
                    }
                }
            }
        }
        for (number, weights) in weights.iter_mut().enumerate() {
            for (at, weight) in weights.iter_mut().enumerate() {
                *weight *= stats.rarity(terms::count(terms.places(number, at)));
            }
        }
        let names = plan.names.iter().zip(&terms.names);
        Self {
            weights,
            names: names
                .map(|((_, sure), places)| sure * stats.rarity(terms::count(places)))
                .collect(),
            norms: stats.mean.map(norms),
            name_norms: norms(stats.mean_name),
        }
    }

    /// The score of every passage of a segment.
    fn sums(
        &self,
        segment: &SegmentReader,
        ord: usize,
        fields: &Fields,
        terms: &Terms,
    ) -> tantivy::Result<Vec<f32>> {
        let mut sums = vec![0.0; segment.max_doc() as usize];
        for (at, field) in fields.ranked().into_iter().enumerate() {
            let opened = Opened::new(segment, field)?;
            for (number, weights) in self.weights.iter().enumerate() {
                if let Some(info) = &terms.places(number, at)[ord]
                    && weights[at] > 0.0
                {
                    add(&mut sums, &opened, info, weights[at], &self.norms[at])?;
                }
            }
        }
        let opened = Opened::new(segment, fields.name)?;
        for (places, weight) in terms.names.iter().zip(&self.names) {
            if let Some(info) = &places[ord] {
                add(&mut sums, &opened, info, *weight, &self.name_norms)?;
            }
        }
        Ok(sums)
    }
}

/// Adds what a term earns in one field.
fn add(
    sums: &mut [f32],
    opened: &Opened,
    info: &TermInfo,
    weight: f32,
    norms: &Norms,
) -> tantivy::Result<()> {
    let option = IndexRecordOption::WithFreqs;
    let mut blocks = (opened.inverted).read_block_postings_from_terminfo(info, option)?;
    let weight = weight * (1.0 + K1);
    while !blocks.docs().is_empty() {
        for (at, doc) in blocks.docs().iter().enumerate() {
            let count = blocks.freq(at) as f32;
            let norm = norms[usize::from(opened.norms.fieldnorm_id(*doc))];
            sums[*doc as usize] += weight * count / (count + norm);
        }
        blocks.advance();
    }
    Ok(())
}

fn norms(mean: f32) -> Norms {
    std::array::from_fn(|id| {
        let length = FieldNormReader::id_to_fieldnorm(id as u8) as f32;
        K1 * (1.0 - B + B * length / mean)
    })
}

/// The best passages so far. They are offered in the order of their addresses, so that of equals
/// the first ones stay.
struct Best {
    count: usize,
    /// What a passage has to exceed.
    least: f32,
    found: Vec<(f32, DocAddress)>,
}

impl Best {
    fn new(count: usize) -> Self {
        Self {
            count,
            least: 0.0,
            found: Vec::with_capacity(count * 2),
        }
    }

    #[inline]
    fn takes(&self, score: f32) -> bool {
        score > self.least
    }

    fn push(&mut self, score: f32, address: DocAddress) {
        self.found.push((score, address));
        if self.found.len() >= self.count * 2 {
            self.cut();
        }
    }

    /// Lets go of all but the best.
    fn cut(&mut self) {
        if self.found.len() > self.count {
            let order = |a: &(f32, DocAddress), b: &(f32, DocAddress)| {
                b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1))
            };
            let (_, last, _) = self.found.select_nth_unstable_by(self.count - 1, order);
            self.least = last.0;
            self.found.truncate(self.count);
        }
    }

    fn finish(mut self) -> Vec<DocAddress> {
        self.cut();
        let mut addresses: Vec<DocAddress> = self.found.iter().map(|found| found.1).collect();
        addresses.sort_unstable();
        addresses
    }
}

/// What a passage must be, which says nothing about how well it answers; none where it may be
/// any.
fn required(
    searcher: &Searcher,
    fields: &Fields,
    plan: &Plan,
    question: &Question,
) -> tantivy::Result<Option<Box<dyn Weight>>> {
    let mut all = filters(fields, question);
    all.extend(plan.phrases.iter().map(|phrase| {
        let anywhere = fields
            .ranked()
            .map(|field| (Occur::Should, phrase_in(field, phrase)));
        let any: Box<dyn Query> = Box::new(BooleanQuery::new(anywhere.into()));
        any
    }));
    if all.is_empty() {
        return Ok(None);
    }
    let all = all.into_iter().map(|query| (Occur::Must, query)).collect();
    let scoring = EnableScoring::disabled_from_searcher(searcher);
    BooleanQuery::new(all).weight(scoring).map(Some)
}

fn filters(fields: &Fields, question: &Question) -> Vec<Box<dyn Query>> {
    let mut all: Vec<Box<dyn Query>> = Vec::new();
    let exact = |field, text: &str| -> Box<dyn Query> {
        let term = Term::from_field_text(field, text);
        Box::new(TermQuery::new(term, IndexRecordOption::Basic))
    };
    if !question.kinds.is_empty() {
        let kinds = question.kinds.iter();
        let any = kinds.map(|kind| (Occur::Should, exact(fields.kind, kind.as_str())));
        all.push(Box::new(BooleanQuery::new(any.collect())));
    }
    if let Some(language) = &question.language {
        all.push(exact(fields.language, &language.to_lowercase()));
    }
    let below = question.path.as_deref().unwrap_or_default();
    let below = below.trim_start_matches("./").trim_end_matches('/');
    if !matches!(below, "" | ".") {
        all.push(exact(fields.within, below));
    }
    all
}

fn phrase_in(field: Field, phrase: &[(usize, String)]) -> Box<dyn Query> {
    let terms = phrase
        .iter()
        .map(|(offset, text)| (*offset, Term::from_field_text(field, text)));
    match phrase {
        [(_, only)] => Box::new(TermQuery::new(
            Term::from_field_text(field, only),
            IndexRecordOption::Basic,
        )),
        _ => Box::new(PhraseQuery::new_with_offset(terms.collect())),
    }
}
