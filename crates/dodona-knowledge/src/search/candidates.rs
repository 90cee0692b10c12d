//! The first step of a search: the passages worth a closer look.
//!
//! A union of plain terms is what tantivy answers fastest (it skips blocks that cannot win), so
//! this step only sums term scores; what makes a good order is left to `rank`.

use tantivy::collector::TopDocs;
use tantivy::query::TermQuery;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, Searcher, Term};

use super::Question;
use super::query::{Plan, Where};
use super::schema::Fields;
use super::tuning::Tuning;

/// Whatever the limit, no more than this is looked at.
const MAX_CANDIDATES: usize = 5_000;

/// Finds the candidates, in the order of their addresses.
pub(super) fn find(
    searcher: &Searcher,
    fields: &Fields,
    plan: &Plan,
    question: &Question,
    tuning: &Tuning,
) -> tantivy::Result<Vec<DocAddress>> {
    let wanted = BooleanQuery::new(optional(searcher, fields, plan, tuning)?);
    let mut clauses = filters(fields, question);
    clauses.extend(plan.phrases.iter().map(|phrase| {
        let anywhere = fields
            .ranked()
            .map(|field| (Occur::Should, phrase_in(field, phrase)));
        unscored(Box::new(BooleanQuery::new(anywhere.into())))
    }));
    let query = if clauses.is_empty() {
        wanted
    } else {
        clauses.push((Occur::Must, Box::new(wanted)));
        BooleanQuery::new(clauses)
    };
    let count = question
        .limit
        .saturating_mul(2)
        .clamp(tuning.candidates, MAX_CANDIDATES);
    let collector = TopDocs::with_limit(count).order_by_score();
    let mut found: Vec<DocAddress> = searcher
        .search(&query, &collector)?
        .into_iter()
        .map(|(_, address)| address)
        .collect();
    found.sort_unstable();
    Ok(found)
}

type Clause = (Occur, Box<dyn Query>);

/// Every term in every field where it occurs.
fn optional(
    searcher: &Searcher,
    fields: &Fields,
    plan: &Plan,
    tuning: &Tuning,
) -> tantivy::Result<Vec<Clause>> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut add = |term: Term, boost: f32| -> tantivy::Result<()> {
        if searcher.doc_freq(&term)? > 0 {
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            let boosted = BoostQuery::new(Box::new(query), boost);
            clauses.push((Occur::Should, Box::new(boosted)));
        }
        Ok(())
    };
    for unit in &plan.units {
        for variant in &unit.variants {
            for (field, boost) in fields.ranked().into_iter().zip(tuning.boost) {
                if variant.place == Where::Symbols && field != fields.symbol {
                    continue;
                }
                // The square root: a term is looked for in five fields, whose scores add up here.
                add(
                    Term::from_field_text(field, &variant.text),
                    unit.weight * variant.share * boost.sqrt(),
                )?;
            }
        }
    }
    for (name, sure) in &plan.names {
        add(Term::from_field_text(fields.name, name), *sure)?;
    }
    Ok(clauses)
}

/// What a passage must be, which says nothing about how well it answers.
fn filters(fields: &Fields, question: &Question) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let exact = |field, text: &str| -> Box<dyn Query> {
        let term = Term::from_field_text(field, text);
        Box::new(TermQuery::new(term, IndexRecordOption::Basic))
    };
    if !question.kinds.is_empty() {
        let kinds = question.kinds.iter();
        let any = kinds.map(|kind| (Occur::Should, exact(fields.kind, kind.as_str())));
        clauses.push(unscored(Box::new(BooleanQuery::new(any.collect()))));
    }
    if let Some(language) = &question.language {
        clauses.push(unscored(exact(fields.language, &language.to_lowercase())));
    }
    let below = question.path.as_deref().unwrap_or_default();
    let below = below.trim_start_matches("./").trim_end_matches('/');
    if !matches!(below, "" | ".") {
        clauses.push(unscored(exact(fields.within, below)));
    }
    clauses
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

fn unscored(query: Box<dyn Query>) -> Clause {
    (Occur::Must, Box::new(ConstScoreQuery::new(query, 0.0)))
}
