//! What ours is compared with, on the same passages.

use std::path::Path;

use aho_corasick::AhoCorasick;
use anyhow::Result;
use dodona_knowledge::search::FileChunks;
use rusqlite::Connection;

/// Where a passage is: its path and its first line.
pub(crate) type Place = (String, u32);

/// SQLite's full text search as it comes: its tokenizer, its BM25, a column for each of our
/// fields, and any of the words.
pub(crate) struct Fts5 {
    db: Connection,
}

impl Fts5 {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let db = Connection::open(path)?;
        db.execute_batch(
            "pragma journal_mode = wal; pragma synchronous = normal;
            create virtual table if not exists passages
                using fts5(path, title, heading, symbol, body, line unindexed)",
        )?;
        Ok(Self { db })
    }

    pub(crate) fn add(&mut self, files: &[FileChunks]) -> Result<()> {
        let tx = self.db.transaction()?;
        {
            let mut insert = tx.prepare_cached(
                "insert into passages (path, title, heading, symbol, body, line) values (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            for file in files {
                for chunk in &file.chunks {
                    insert.execute((
                        &file.path,
                        &file.title,
                        &chunk.heading,
                        &chunk.symbol,
                        &chunk.text,
                        chunk.line_start,
                    ))?;
                }
            }
        }
        Ok(tx.commit()?)
    }

    pub(crate) fn search(&self, question: &str, limit: usize) -> Result<Vec<Place>> {
        let words: Vec<String> = words(question).map(|w| format!("\"{w}\"")).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut select = self.db.prepare_cached(
            "select path, line from passages where passages match ?1 order by rank limit ?2",
        )?;
        let rows = select.query_map((words.join(" OR "), limit as i64), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// What one does without an index: count the words of the question in every passage.
pub(crate) struct Grep {
    passages: Vec<(Place, String)>,
}

impl Grep {
    pub(crate) fn new(files: &[FileChunks]) -> Self {
        let passages = files.iter().flat_map(|file| {
            let place = |line| (file.path.clone(), line);
            let chunks = file.chunks.iter();
            chunks.map(move |chunk| (place(chunk.line_start), chunk.text.clone()))
        });
        Self {
            passages: passages.collect(),
        }
    }

    pub(crate) fn search(&self, question: &str, limit: usize) -> Result<Vec<Place>> {
        let words: Vec<&str> = words(question).collect();
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(&words)?;
        let mut counted: Vec<(usize, &Place)> = self
            .passages
            .iter()
            .map(|(place, text)| (finder.find_iter(text).count(), place))
            .filter(|(count, _)| *count > 0)
            .collect();
        counted.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        counted.truncate(limit);
        Ok(counted
            .into_iter()
            .map(|(_, place)| place.clone())
            .collect())
    }
}

fn words(question: &str) -> impl Iterator<Item = &str> {
    question
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}
