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

/// A set, indexed by everybody.
pub(crate) struct Indexed {
    pub(crate) ours: SearchIndex,
    pub(crate) fts5: Fts5,
    pub(crate) grep: Grep,
    _folder: tempfile::TempDir,
}

impl Indexed {
    pub(crate) fn new(set: &Set) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let ours = SearchIndex::open(&folder.path().join("ours"))?;
        ours.replace(set.files.clone())?;
        let mut fts5 = Fts5::open(&folder.path().join("fts5.db"))?;
        fts5.add(&set.files)?;
        Ok(Self {
            ours,
            fts5,
            grep: Grep::new(&set.files),
            _folder: folder,
        })
    }

    pub(crate) fn ours(&self, tuning: &Tuning, question: &str, limit: usize) -> Result<Vec<Place>> {
        let question = Question {
            text: question.to_owned(),
            limit,
            ..Question::default()
        };
        let hits = self.ours.search_tuned(&question, tuning)?;
        Ok(hits
            .into_iter()
            .map(|hit| (hit.path, hit.line_start))
            .collect())
    }
}
