//! One project: its files, its index, its catalogue, kept in step.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::{Project, Source, SourceKind};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::catalogue::{Catalogue, Entry, FileRow};
use super::paths;
use super::scan::{self, Found, Skipped};
use crate::parse::{self, Parsed};
use crate::search::{FileChunks, Hit, IndexError, Question, SearchIndex};

/// How many files one step takes in: the price of a commit is shared, and a step is short enough
/// to be cancelled and shown as progress.
const STEP: usize = 200;

/// How long what was seen on the disk is believed.
const FRESH: Duration = Duration::from_secs(2);

/// What a look at the disk found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) files: u64,
    pub(crate) changed: u64,
    pub(crate) removed: u64,
    pub(crate) skipped: Skipped,
}

/// A project that is searched.
pub(crate) struct Shelf {
    root: PathBuf,
    index: Arc<SearchIndex>,
    pub(crate) catalogue: Catalogue,
    /// When the disk was last looked at. Held while it is being looked at: one look at a time.
    looked: Mutex<Option<Instant>>,
}

/// A file that was read anew.
struct Read {
    row: FileRow,
    parsed: Parsed,
    chunks: FileChunks,
}

impl Shelf {
    pub(super) async fn open(
        project: &Project,
        db: dodona_plugin::store::Db,
        dir: &Path,
    ) -> Result<Self, CallError> {
        let root = project.root.canonicalize().map_err(|error| {
            CallError::new(
                ErrorCode::NotFound,
                format!(
                    "the project's directory `{}` is gone",
                    project.root.display()
                ),
            )
            .log(error)
        })?;
        let dir = dir.to_owned();
        let index = blocking(move || SearchIndex::open(&dir))
            .await?
            .map_err(index_error)?;
        let catalogue = Catalogue::new(db, &project.id);
        if index.was_recreated() {
            catalogue.clear().await?;
        }
        Ok(Self {
            root,
            index: Arc::new(index),
            catalogue,
            looked: Mutex::new(None),
        })
    }

    /// Brings index and catalogue in step with the disk, unless that was done a moment ago.
    pub(crate) async fn freshen(&self, ctx: &CallCtx) -> Result<(), CallError> {
        let mut looked = self.looked.lock().await;
        if looked.is_none_or(|at| at.elapsed() > FRESH) {
            self.look(ctx).await?;
            *looked = Some(Instant::now());
        }
        Ok(())
    }

    /// Brings index and catalogue in step with the disk. What is done when it is cancelled stays
    /// done.
    pub(crate) async fn sync(&self, ctx: &CallCtx) -> Result<Synced, CallError> {
        let mut looked = self.looked.lock().await;
        let synced = self.look(ctx).await?;
        *looked = Some(Instant::now());
        Ok(synced)
    }

    async fn look(&self, ctx: &CallCtx) -> Result<Synced, CallError> {
        let root = self.root.clone();
        let (found, mut skipped) = blocking(move || {
            let mut skipped = Skipped::default();
            (scan::walk(&root, &mut skipped), skipped)
        })
        .await?;
        let mut known: HashMap<String, FileRow> = self
            .catalogue
            .files()
            .await?
            .into_iter()
            .map(|file| (file.path.clone(), file))
            .collect();
        let mut synced = Synced {
            files: found.len() as u64,
            ..Synced::default()
        };
        let mut changed = Vec::new();
        for file in found {
            let before = known.remove(&file.path);
            if before
                .as_ref()
                .is_none_or(|row| row.size != file.size || row.mtime_ns != file.mtime_ns)
            {
                changed.push((file, before.map(|row| row.hash)));
            }
        }
        let gone: Vec<String> = known.into_keys().collect();
        synced.removed = gone.len() as u64;
        self.forget(gone).await?;
        let total = changed.len();
        for (step, files) in changed.chunks(STEP).enumerate() {
            if total > STEP {
                #[expect(clippy::cast_precision_loss, reason = "a percentage needs no more")]
                let done = (step * STEP) as f32 / total as f32 * 100.0;
                ctx.progress(
                    format!("indexing {} of {total} files", step * STEP),
                    Some(done),
                )
                .await?;
            }
            synced.changed += self.take_in(files.to_vec(), &mut skipped).await?;
        }
        synced.skipped = skipped;
        Ok(synced)
    }

    /// Reads files and puts them where they are found. The index first: if the process ends in
    /// between, the catalogue still says that they are to be read.
    async fn take_in(
        &self,
        files: Vec<(Found, Option<String>)>,
        skipped: &mut Skipped,
    ) -> Result<u64, CallError> {
        let (root, index) = (self.root.clone(), Arc::clone(&self.index));
        let (reads, touched, more) = blocking(move || -> Result<_, IndexError> {
            let mut more = Skipped::default();
            let (mut reads, mut touched) = (Vec::new(), Vec::new());
            for (file, hash) in files {
                let text = scan::read(&root, &file.path, &mut more);
                match text {
                    Some(text) if hash.as_deref() == Some(&hash_of(&text)) => {
                        touched.push((file.path, file.size, file.mtime_ns))
                    }
                    text => reads.push(read(file, text.as_deref())),
                }
            }
            let chunks = reads.iter_mut().map(|read: &mut Read| {
                std::mem::replace(&mut read.chunks, gone_file(String::new()))
            });
            index.replace(chunks.collect())?;
            Ok((reads, touched, more))
        })
        .await?
        .map_err(index_error)?;
        skipped.add(&more);
        let changed = reads.len() as u64;
        let entries = reads
            .into_iter()
            .map(|read| Entry {
                file: read.row,
                parsed: read.parsed,
            })
            .collect();
        self.catalogue.replace(entries, Vec::new()).await?;
        self.catalogue.touch(touched).await?;
        Ok(changed)
    }

    async fn forget(&self, gone: Vec<String>) -> Result<(), CallError> {
        if gone.is_empty() {
            return Ok(());
        }
        let (index, files) = (
            Arc::clone(&self.index),
            gone.iter().cloned().map(gone_file).collect(),
        );
        blocking(move || index.replace(files))
            .await?
            .map_err(index_error)?;
        Ok(self.catalogue.replace(Vec::new(), gone).await?)
    }

    /// The passages that answer best, best first.
    pub(crate) async fn search(&self, question: Question) -> Result<Vec<Hit>, CallError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.search(&question))
            .await?
            .map_err(index_error)
    }

    /// How many passages there are, and whether the index is sound.
    pub(crate) async fn status(&self) -> Result<(u64, bool), CallError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.is_sound().map(|sound| (index.len(), sound)))
            .await?
            .map_err(index_error)
    }

    /// Lines of a file, from 1; all of it without bounds. Answers also with where they end.
    pub(crate) async fn lines(
        &self,
        path: &str,
        from: u32,
        to: Option<u32>,
    ) -> Result<(String, u32, u32), CallError> {
        let file = paths::resolve(&self.root, path)?;
        let path = path.to_owned();
        let text = blocking(move || std::fs::read_to_string(file))
            .await?
            .map_err(|error| {
                CallError::new(
                    ErrorCode::NotFound,
                    format!("`{path}` cannot be read as text"),
                )
                .log(error)
            })?;
        let (from, to) = (from.max(1), to.unwrap_or(u32::MAX));
        let lines: Vec<&str> = text
            .lines()
            .skip(from as usize - 1)
            .take(to.saturating_sub(from) as usize + 1)
            .collect();
        let end = from
            + u32::try_from(lines.len())
                .unwrap_or(u32::MAX)
                .saturating_sub(1);
        Ok((lines.join("\n"), from, end))
    }

    /// Whether what a source cites still stands there.
    pub(crate) async fn holds(&self, source: &Source) -> bool {
        match self
            .lines(&source.path, source.line_start, Some(source.line_end))
            .await
        {
            Ok((text, ..)) => hash_of(&text) == source.hash,
            Err(_) => false,
        }
    }
}

impl Hit {
    /// What an answer cites when it uses this passage.
    pub(crate) fn source(&self) -> Source {
        let title = [&self.symbol, &self.heading, &self.title]
            .into_iter()
            .find(|text| !text.is_empty());
        Source {
            kind: self.kind,
            path: self.path.clone(),
            line_start: self.line_start,
            line_end: self.line_end,
            hash: hash_of(&self.text.lines().collect::<Vec<_>>().join("\n")),
            title: title.cloned(),
        }
    }
}

/// A file that has text is parsed; one that has not is known, so that it is not read again, and
/// has nothing to be found.
fn read(file: Found, text: Option<&str>) -> Read {
    let kind = parse::kind_of(&file.path);
    let mut parsed = text
        .map(|text| parse::parse(&file.path, text))
        .unwrap_or_default();
    let chunks = FileChunks {
        path: file.path.clone(),
        kind,
        language: parsed.language,
        title: parsed.title.clone(),
        chunks: std::mem::take(&mut parsed.chunks),
    };
    let row = FileRow {
        path: file.path,
        size: file.size,
        mtime_ns: file.mtime_ns,
        hash: text.map(hash_of).unwrap_or_default(),
        kind,
        language: parsed.language.map(str::to_owned),
        title: parsed.title.clone(),
    };
    Read {
        row,
        parsed,
        chunks,
    }
}

fn gone_file(path: String) -> FileChunks {
    FileChunks {
        path,
        kind: SourceKind::Text,
        language: None,
        title: String::new(),
        chunks: Vec::new(),
    }
}

/// SHA-256 of a text, in hex.
pub(crate) fn hash_of(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, CallError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        CallError::new(ErrorCode::Internal, "work on the index was lost").log(error)
    })
}

fn index_error(error: IndexError) -> CallError {
    use std::error::Error;
    let inner = error.source().map(ToString::to_string).unwrap_or_default();
    CallError::new(ErrorCode::Storage, error.to_string())
        .hint("delete the index directory; it is made anew")
        .log(inner)
}
