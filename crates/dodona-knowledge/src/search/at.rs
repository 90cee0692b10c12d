//! Passages by where they are.

use std::collections::BTreeSet;

use tantivy::collector::DocSetCollector;
use tantivy::query::{AllQuery, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED, Term};

use super::{Hit, IndexError, SearchIndex};

impl SearchIndex {
    /// The passages of a file, in the order of their lines.
    pub(crate) fn passages_of(&self, path: &str) -> Result<Vec<Hit>, IndexError> {
        let read = || -> tantivy::Result<Vec<Hit>> {
            let searcher = self.reader.searcher();
            let term = Term::from_field_text(self.fields.path, path);
            let query = TermQuery::new(term, IndexRecordOption::Basic);
            let found = searcher.search(&query, &DocSetCollector)?;
            let mut hits = found
                .into_iter()
                .map(|address| Ok(self.fields.hit(&searcher.doc(address)?, 0.0)))
                .collect::<tantivy::Result<Vec<Hit>>>()?;
            hits.sort_by_key(|hit| hit.line_start);
            Ok(hits)
        };
        read().map_err(IndexError::Read)
    }

    /// The path of every file that has a passage.
    pub(crate) fn paths(&self) -> Result<BTreeSet<String>, IndexError> {
        let read = || -> tantivy::Result<BTreeSet<String>> {
            let mut paths = BTreeSet::new();
            for segment in self.reader.searcher().segment_readers() {
                let inverted = segment.inverted_index(self.fields.path)?;
                let mut terms = inverted.terms().stream()?;
                while terms.advance() {
                    let option = IndexRecordOption::Basic;
                    let mut found = inverted.read_postings_from_terminfo(terms.value(), option)?;
                    // The dictionary still has what was deleted since it was written.
                    while found.doc() != TERMINATED && segment.is_deleted(found.doc()) {
                        found.advance();
                    }
                    if found.doc() != TERMINATED {
                        paths.insert(String::from_utf8_lossy(terms.key()).into_owned());
                    }
                }
            }
            Ok(paths)
        };
        read().map_err(IndexError::Read)
    }

    /// Every passage, by path and line. Reads all of the index, so this is for a check that was
    /// asked for.
    pub fn all(&self) -> Result<Vec<Hit>, IndexError> {
        let read = || -> tantivy::Result<Vec<Hit>> {
            let searcher = self.reader.searcher();
            let found = searcher.search(&AllQuery, &DocSetCollector)?;
            let mut hits = found
                .into_iter()
                .map(|address| Ok(self.fields.hit(&searcher.doc(address)?, 0.0)))
                .collect::<tantivy::Result<Vec<Hit>>>()?;
            hits.sort_by(|a, b| (&a.path, a.line_start).cmp(&(&b.path, b.line_start)));
            Ok(hits)
        };
        read().map_err(IndexError::Read)
    }
}
