//! Known items: questions of which one passage is known to be the answer.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use dodona_knowledge::search::FileChunks;

/// Items of a set, at most; half of them are for tuning.
const MOST: usize = 1_000;

/// What counts as one answer: a page, a section, a function, however many passages it has.
pub(crate) type Group = usize;

/// The answer that a passage belongs to, by path and first line.
pub(crate) type Groups = HashMap<(String, u32), Group>;

/// A question, and the answer that it was taken from.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) question: String,
    /// The file and the line from which it was taken.
    pub(crate) path: String,
    pub(crate) line: u32,
    pub(crate) group: Group,
}

/// The two halves of a set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Half {
    /// On which the numbers of the ranking were chosen.
    Tuned,
    /// Which nothing was chosen on: what is reported.
    Held,
}

/// A corpus with its known items.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) files: Vec<FileChunks>,
    pub(crate) items: Vec<Item>,
    pub(crate) groups: Groups,
}

/// A question with the place of its answer, before passages are known.
pub(crate) struct Known {
    pub(crate) question: String,
    pub(crate) path: String,
    pub(crate) line: u32,
    /// The name that the passage must have to be the answer, if it must have one.
    pub(crate) symbol: Option<String>,
}

/// How passages make up answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    /// All passages of a file are one answer.
    File,
    /// Passages that follow each other under one name are one.
    Symbol,
}

impl Set {
    /// Puts a set together: questions that are asked twice have two answers and are left out.
    pub(crate) fn new(
        name: &'static str,
        files: Vec<FileChunks>,
        known: Vec<Known>,
        answer: Answer,
        groups: Groups,
    ) -> Self {
        let mut count: HashMap<String, usize> = HashMap::new();
        for item in &known {
            *count.entry(item.question.to_lowercase()).or_default() += 1;
        }
        let by_path: HashMap<&str, &FileChunks> = files
            .iter()
            .map(|file| (file.path.as_str(), file))
            .collect();
        let found = known.into_iter().filter_map(|item| {
            let file = by_path.get(item.path.as_str())?;
            let mut chunks = file.chunks.iter();
            let chunk = match answer {
                Answer::File => chunks.next(),
                Answer::Symbol => {
                    chunks.find(|chunk| (chunk.line_start..=chunk.line_end).contains(&item.line))
                }
            }?;
            let named = item
                .symbol
                .as_ref()
                .is_none_or(|name| *name == chunk.symbol);
            (named && count[&item.question.to_lowercase()] == 1).then(|| Item {
                group: groups[&(item.path.clone(), chunk.line_start)],
                question: item.question,
                path: item.path,
                line: item.line,
            })
        });
        let mut items: Vec<Item> = found.collect();
        // Any order that does not follow the files makes a fair sample.
        items.sort_by_key(Item::hash);
        let mut seen = HashSet::new();
        items.retain(|item| seen.insert(item.group));
        items.truncate(MOST);
        Self {
            name,
            files,
            items,
            groups,
        }
    }

    pub(crate) fn half(&self, half: Half) -> Vec<&Item> {
        let of = |item: &&Item| item.half() == half;
        self.items.iter().filter(of).collect()
    }

    pub(crate) fn passages(&self) -> usize {
        self.files.iter().map(|file| file.chunks.len()).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        let chunks = self.files.iter().flat_map(|file| &file.chunks);
        chunks.map(|chunk| chunk.text.len()).sum()
    }
}

impl Item {
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.path, self.line, &self.question).hash(&mut hasher);
        hasher.finish()
    }

    fn half(&self) -> Half {
        if self.hash() >> 7 & 1 == 0 {
            Half::Tuned
        } else {
            Half::Held
        }
    }
}

/// Tells which passages make up one answer.
pub(crate) fn groups(files: &[FileChunks], answer: Answer) -> Groups {
    let mut groups = Groups::new();
    let mut group = 0;
    for file in files {
        let mut before: Option<(&str, &str)> = None;
        group += 1;
        for chunk in &file.chunks {
            let name = (chunk.heading.as_str(), chunk.symbol.as_str());
            let same = before == Some(name) && !chunk.symbol.is_empty();
            if answer == Answer::Symbol && !same {
                group += 1;
            }
            groups.insert((file.path.clone(), chunk.line_start), group);
            before = Some(name);
        }
    }
    groups
}
