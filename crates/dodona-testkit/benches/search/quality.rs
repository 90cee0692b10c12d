//! How often, and how high, the known answer is found.

use anyhow::Result;
use dodona_knowledge::search::{Question, SearchIndex, Tuning};

use crate::peers::{Fts5, Grep, Place};
use crate::sets::{Item, Set};

/// Passages asked for, so that ten different answers are among them.
const PASSAGES: usize = 50;
/// Answers looked at.
const ANSWERS: usize = 10;

/// How well a way of searching finds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Score {
    pub(crate) recall_5: f64,
    pub(crate) recall_10: f64,
    pub(crate) mrr_10: f64,
}

/// Asks for every item.
pub(crate) fn score(
    set: &Set,
    items: &[&Item],
    mut search: impl FnMut(&str, usize) -> Result<Vec<Place>>,
) -> Result<Score> {
    let mut score = Score::default();
    for item in items {
        let Some(rank) = rank(set, item, &search(&item.question, PASSAGES)?) else {
            continue;
        };
        score.mrr_10 += 1.0 / rank as f64;
        score.recall_10 += 1.0;
        score.recall_5 += f64::from(rank <= 5);
    }
    let count = items.len().max(1) as f64;
    Ok(Score {
        recall_5: score.recall_5 / count,
        recall_10: score.recall_10 / count,
        mrr_10: score.mrr_10 / count,
    })
}

/// At which place the answer stands, passages of one answer counted once.
pub(crate) fn rank(set: &Set, item: &Item, found: &[Place]) -> Option<usize> {
    let mut seen = Vec::with_capacity(ANSWERS);
    for place in found {
        let group = set.groups.get(place).copied()?;
        if !seen.contains(&group) {
            seen.push(group);
        }
        if group == item.group {
            return (seen.len() <= ANSWERS).then_some(seen.len());
        }
    }
    None
}

/// Our index of a set.
pub(crate) struct Ours {
    index: SearchIndex,
    _folder: tempfile::TempDir,
}

impl Ours {
    pub(crate) fn new(set: &Set) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let index = SearchIndex::open(folder.path())?;
        index.replace(set.files.clone())?;
        Ok(Self {
            index,
            _folder: folder,
        })
    }

    pub(crate) fn search(
        &self,
        tuning: &Tuning,
        question: &str,
        limit: usize,
    ) -> Result<Vec<Place>> {
        let question = Question {
            text: question.to_owned(),
            limit,
            ..Question::default()
        };
        let hits = self.index.search_tuned(&question, tuning)?;
        let places = hits.into_iter().map(|hit| (hit.path, hit.line_start));
        Ok(places.collect())
    }
}

/// How well everybody finds the items of a set.
pub(crate) fn compare(set: &Set, items: &[&Item]) -> Result<[(&'static str, Score); 3]> {
    let ours = Ours::new(set)?;
    let folder = tempfile::tempdir()?;
    let mut fts5 = Fts5::open(&folder.path().join("fts5.db"))?;
    fts5.add(&set.files)?;
    let grep = Grep::new(&set.files);
    let tuning = Tuning::default();
    Ok([
        (
            "dodona",
            score(set, items, |q, n| ours.search(&tuning, q, n))?,
        ),
        ("FTS5", score(set, items, |q, n| fts5.search(q, n))?),
        (
            "grep and count",
            score(set, items, |q, n| grep.search(q, n))?,
        ),
    ])
}
