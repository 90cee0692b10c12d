//! One index of everything in a project.
//!
//! A question becomes a plan (`query`), the plan's terms are looked up (`terms`) and find
//! candidates (`candidates`), those are ranked (`rank`) and the ones to show picked (`pick`). The
//! index holds nothing that cannot be made again from the files.

mod analyzer;
mod at;
mod candidates;
mod pick;
mod place;
mod prefix;
mod query;
mod rank;
mod schema;
mod sense;
mod short;
mod stop;
mod terms;
#[cfg(test)]
mod tests;
mod tuning;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use dodona_proto::SourceKind;
use tantivy::indexer::IndexWriterOptions;
use tantivy::{Index, IndexReader, IndexWriter, Term};

use self::pick::Picked;
use self::schema::Fields;
use self::terms::Terms;

pub use self::tuning::Tuning;
pub use crate::parse::Chunk;

use crate::parse;

/// What a write may buffer before it goes to the disk. More would only make fewer segments.
const WRITE_BUFFER: usize = 32 * 1024 * 1024;

/// A file's passages, to take the place of those that were there.
#[derive(Debug, Clone)]
pub struct FileChunks {
    /// The path below the project's root.
    pub path: String,
    /// What the file is.
    pub kind: SourceKind,
    /// The language of code.
    pub language: Option<&'static str>,
    /// The title of a note, the name of another file.
    pub title: String,
    /// Empty when the file is gone.
    pub chunks: Vec<Chunk>,
}

impl FileChunks {
    /// The passages of a text, as the file of that path would have them.
    pub fn of(path: &str, text: &str) -> Self {
        let parsed = parse::parse(path, text);
        Self {
            path: path.to_owned(),
            kind: parse::kind_of(path),
            language: parsed.language,
            title: parsed.title,
            chunks: parsed.chunks,
        }
    }
}

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Words or a question; double quotes ask for a phrase, nothing else is syntax.
    pub text: String,
    /// Only these kinds; all when empty.
    pub kinds: Vec<SourceKind>,
    /// Only this language.
    pub language: Option<String>,
    /// Only below this path.
    pub path: Option<String>,
    /// How many passages at most.
    pub limit: usize,
}

/// A passage that answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The path below the project's root.
    pub path: String,
    /// What the file is.
    pub kind: SourceKind,
    /// The language of code.
    pub language: Option<String>,
    /// The title of a note, the name of another file.
    pub title: String,
    /// The headings or containers above the passage.
    pub heading: String,
    /// The name of the function, type or section.
    pub symbol: String,
    /// The first line, from 1.
    pub line_start: u32,
    /// The last line.
    pub line_end: u32,
    /// The text of those lines.
    pub text: String,
    /// Larger is better, and only that.
    pub score: f32,
}

/// Why the index did not do its part. It can always be rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It could not be opened, and not be made anew.
    #[error("could not open the search index")]
    Open(#[source] tantivy::TantivyError),
    /// What was to be written is not there.
    #[error("could not write to the search index")]
    Write(#[source] tantivy::TantivyError),
    /// It could not be searched.
    #[error("could not read the search index")]
    Read(#[source] tantivy::TantivyError),
}

/// The index of one project.
pub struct SearchIndex {
    index: Index,
    reader: IndexReader,
    fields: Fields,
    /// Held while writing. The writer itself lives only that long: at rest it would keep its
    /// threads, its buffers and the lock that another process may want.
    writing: Mutex<()>,
    dir: PathBuf,
    recreated: bool,
}

impl SearchIndex {
    /// Opens the index in a directory. One that cannot be read, or that another version wrote,
    /// is thrown away and made anew, which `was_recreated` then tells.
    pub fn open(dir: &Path) -> Result<Self, IndexError> {
        let (index, reader, fields, recreated) = place::open(dir).map_err(IndexError::Open)?;
        Ok(Self {
            index,
            reader,
            fields,
            writing: Mutex::new(()),
            dir: dir.to_owned(),
            recreated,
        })
    }

    /// Whether opening made a new index: everything has to be indexed then. Until there is a first
    /// passage, so does every other opening.
    pub fn was_recreated(&self) -> bool {
        self.recreated
    }

    /// How many passages there are.
    pub fn passage_count(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Whether every file of the index still has the checksum it was written with. Reads all of
    /// it, so this is for a check that was asked for.
    pub fn is_sound(&self) -> Result<bool, IndexError> {
        let damaged = self.index.validate_checksum().map_err(IndexError::Read)?;
        Ok(damaged.is_empty())
    }

    /// Replaces the passages of files and makes that durable and visible. All of it happens, or
    /// nothing: a process that dies on the way leaves what was there.
    pub fn replace(&self, files: Vec<FileChunks>) -> Result<(), IndexError> {
        if files.is_empty() {
            return Ok(());
        }
        // A panic while writing left nothing behind that the lock protects.
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.recreated {
            place::keep(&self.dir).map_err(|error| IndexError::Write(error.into()))?;
        }
        self.write(&files).map_err(IndexError::Write)
    }

    fn write(&self, files: &[FileChunks]) -> tantivy::Result<()> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(WRITE_BUFFER)
            .build();
        let mut writer: IndexWriter = self.index.writer_with_options(options)?;
        // A process that was killed while it committed left files that no commit knows. The same
        // work done again has the same names for them, and would find them in its way.
        writer.garbage_collect_files().wait()?;
        for file in files {
            writer.delete_term(Term::from_field_text(self.fields.path, &file.path));
            for chunk in &file.chunks {
                writer.add_document(self.fields.document(file, chunk))?;
            }
        }
        writer.commit()?;
        // Visible before merging, which may take longer than the write itself.
        self.reader.reload()?;
        writer.wait_merging_threads()?;
        self.reader.reload()
    }

    /// The passages that answer best, best first. Any text is a question; none is an error.
    pub fn search(&self, question: &Question) -> Result<Vec<Hit>, IndexError> {
        self.search_tuned(question, &Tuning::default())
    }

    /// The same with other numbers, for measuring what they do.
    pub fn search_tuned(
        &self,
        question: &Question,
        tuning: &Tuning,
    ) -> Result<Vec<Hit>, IndexError> {
        self.answer(question, tuning).map_err(IndexError::Read)
    }

    fn answer(&self, question: &Question, tuning: &Tuning) -> tantivy::Result<Vec<Hit>> {
        let searcher = self.reader.searcher();
        let mut plan = query::plan(&question.text, tuning);
        if question.limit == 0 || plan.units.is_empty() {
            return Ok(Vec::new());
        }
        prefix::complete(&searcher, &self.fields, &mut plan, tuning)?;
        let terms = Terms::read(&searcher, &self.fields, &plan)?;
        let found = candidates::find(&searcher, &self.fields, &plan, &terms, question, tuning)?;
        let mut ranked = rank::score(&searcher, &self.fields, &plan, &terms, &found, tuning)?;
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut picked = Picked::new(question.limit);
        // Passages of one score are read together, so that path and line decide among them
        // and not where the index happens to keep them.
        for equals in ranked.chunk_by(|a, b| a.0 == b.0) {
            if picked.is_full() {
                break;
            }
            let mut hits = equals
                .iter()
                .map(|(score, address)| Ok(self.fields.hit(&searcher.doc(*address)?, *score)))
                .collect::<tantivy::Result<Vec<Hit>>>()?;
            hits.sort_by(|a, b| (&a.path, a.line_start).cmp(&(&b.path, b.line_start)));
            hits.into_iter().for_each(|hit| picked.offer(hit));
        }
        Ok(picked.finish())
    }
}
