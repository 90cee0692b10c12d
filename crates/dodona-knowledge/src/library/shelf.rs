//! One project: its files, its index, its catalogue.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::{Project, ProjectId, Source, SourceKind};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, broadcast};
use tokio::time::Instant;

use super::Told;
use super::access::FileAccess;
use super::catalogue::Catalogue;
use super::git::Git;
use super::part;
use super::paths;
use super::sync::{Synced, kind_of};
use super::threads::NOT_YET;
use super::vectors::Vectors;
use super::watch::Watch;
use crate::Options;
use crate::search::{Hit, IndexError, Question, SearchIndex};

/// What stands before the id of a commit where a path is expected.
pub(crate) const COMMIT: &str = "commit:";

/// What stands before the name of a thread where a path is expected.
pub(crate) const THREAD: &str = "thread:";

/// How many updates a slow listener may be behind before it misses some.
const UPDATES: usize = 16;

/// A project that is searched.
pub(crate) struct Shelf {
    pub(crate) project: ProjectId,
    pub(super) root: PathBuf,
    pub(super) index: Arc<SearchIndex>,
    pub(crate) catalogue: Catalogue,
    pub(crate) git: Option<Git>,
    pub(super) options: Arc<Options>,
    /// When the disk was last looked at. Held while it is being looked at: one look at a time.
    pub(super) looked: Mutex<Option<Instant>>,
    pub(super) watch: OnceLock<Arc<Watch>>,
    /// What looks in the background found.
    pub(super) updates: broadcast::Sender<Synced>,
    /// Every vector, once it was needed; read again when there are others.
    pub(super) vectors: Mutex<Option<Arc<Vectors>>>,
    /// Who keeps what notes were, and knows what is in threads.
    pub(super) told: Told,
    /// The newest entry of a thread that can be found; [`NOT_YET`] before the first look.
    pub(super) threads_until: AtomicI64,
    /// We changed files ourselves since the last look.
    pub(super) touched: AtomicBool,
}

impl Shelf {
    pub(super) async fn open(
        project: &Project,
        db: dodona_plugin::store::Db,
        dir: &Path,
        options: Arc<Options>,
        told: Told,
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
        // A directory that was replaced by a link since it was registered leads somewhere that the
        // hub has not checked.
        if root != project.root {
            let message = format!(
                "the project's directory `{}` has become a link",
                project.root.display()
            );
            return Err(CallError::new(ErrorCode::Forbidden, message)
                .hint("register the directory that it points to"));
        }
        let dir = dir.to_owned();
        let index = blocking(move || SearchIndex::open(&dir))
            .await?
            .map_err(index_error)?;
        let catalogue = Catalogue::new(db, &project.id);
        if index.was_recreated() {
            catalogue.clear().await?;
        }
        let shelf = Self {
            project: project.id.clone(),
            git: Git::around(&root),
            root,
            index: Arc::new(index),
            catalogue,
            options,
            looked: Mutex::new(None),
            watch: OnceLock::new(),
            updates: broadcast::channel(UPDATES).0,
            vectors: Mutex::new(None),
            told,
            threads_until: AtomicI64::new(NOT_YET),
            touched: AtomicBool::new(false),
        };
        shelf.forget_strays().await?;
        Ok(shelf)
    }

    /// The passages whose words answer best, best first.
    pub(super) async fn search_words(&self, question: Question) -> Result<Vec<Hit>, CallError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.search(&question))
            .await?
            .map_err(index_error)
    }

    /// How many passages there are, and whether the index is sound.
    pub(crate) async fn status(&self) -> Result<(u64, bool), CallError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.is_sound().map(|sound| (index.passage_count(), sound)))
            .await?
            .map_err(index_error)
    }

    /// Lines of a file, from 1, as many as fit; the line after them where more follow.
    pub(crate) async fn lines(
        &self,
        path: &str,
        from: u32,
        to: Option<u32>,
    ) -> Result<(String, u32, u32, Option<u32>), CallError> {
        let (from, to) = (from.max(1), to.unwrap_or(u32::MAX));
        let (text, count, next) = match path.starts_with(COMMIT) {
            true => {
                let text = self.text(path).await?;
                let lines: Vec<&str> = text
                    .lines()
                    .skip(from as usize - 1)
                    .take(to.saturating_sub(from) as usize + 1)
                    .collect();
                let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
                (lines.join("\n"), count, None)
            }
            false => {
                let file = self.resolve(path).await?;
                let read = blocking(move || part::read(&file, from, to)).await?;
                let part = read.map_err(|error| not_text(path, error))?;
                (part.text, part.lines, part.next)
            }
        };
        Ok((text, from, from + count.saturating_sub(1), next))
    }

    /// Lines of a file, what cites them, and the line after them where more follow.
    pub(crate) async fn quote(
        &self,
        path: &str,
        from: u32,
        to: Option<u32>,
    ) -> Result<(Source, String, Option<u32>), CallError> {
        let (text, line_start, line_end, next) = self.lines(path, from, to).await?;
        let vault = self.vault_root()?;
        let source = Source {
            kind: kind_of(path, vault.as_deref()),
            path: path.to_owned(),
            line_start,
            line_end,
            hash: hash_of(&text),
            title: None,
        };
        Ok((source, text, next))
    }

    /// SHA-256 of a file, in hex.
    pub(crate) async fn hash_of_file(&self, path: &str) -> Result<String, CallError> {
        let file = self.resolve(path).await?;
        let hashed = blocking(move || part::hash(&file)).await?;
        hashed.map_err(|error| not_text(path, error))
    }

    /// The file of a path that is open.
    async fn resolve(&self, path: &str) -> Result<PathBuf, CallError> {
        let (root, options) = (self.root.clone(), Arc::clone(&self.options));
        let path = path.to_owned();
        blocking(move || paths::resolve(&root, &path, &options.files)).await?
    }

    /// The whole text of a file or of a commit's message.
    pub(crate) async fn text(&self, path: &str) -> Result<String, CallError> {
        if let Some(id) = path.strip_prefix(COMMIT) {
            let commit = self.catalogue.commit(id).await?;
            let missing =
                || CallError::new(ErrorCode::NotFound, format!("there is no commit `{id}`"));
            return Ok(commit.ok_or_else(missing)?.message);
        }
        let file = self.resolve(path).await?;
        let read = blocking(move || std::fs::read_to_string(file)).await?;
        read.map_err(|error| not_text(path, error))
    }

    /// Says that files were changed here, so that the next question looks at them.
    pub(crate) fn touch(&self) {
        self.touched.store(true, Ordering::Release);
    }

    /// The folder of the project that holds its notes; `None` for all of it.
    pub(crate) fn vault_root(&self) -> Result<Option<String>, CallError> {
        (self.options.vault_root)(&self.root)
    }

    /// Which files of the project are open.
    pub(crate) fn access(&self) -> &FileAccess {
        &self.options.files
    }

    /// Refuses a path that is closed.
    pub(crate) fn check_open(&self, path: &str) -> Result<(), CallError> {
        let checked = self.access().check(&self.root, Path::new(path));
        checked.map_err(|why| why.error(path))
    }

    /// The project's directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
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
        let names = match self.kind {
            SourceKind::Commit => [&self.title, &self.symbol, &self.heading],
            _ => [&self.symbol, &self.heading, &self.title],
        };
        let title = match self.kind {
            SourceKind::Thread => Some(format!("{}, {}", self.title, self.heading)),
            _ => names.into_iter().find(|text| !text.is_empty()).cloned(),
        };
        Source {
            kind: self.kind,
            path: self.path.clone(),
            line_start: self.line_start,
            line_end: self.line_end,
            hash: hash_of(&self.text.lines().collect::<Vec<_>>().join("\n")),
            title,
        }
    }
}

fn not_text(path: &str, error: std::io::Error) -> CallError {
    let message = format!("`{path}` cannot be read as text");
    CallError::new(ErrorCode::NotFound, message).log(error)
}

/// SHA-256 of a text, in hex.
pub(crate) fn hash_of(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, CallError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        CallError::new(ErrorCode::Internal, "work on the index was lost").log(error)
    })
}

pub(super) fn index_error(error: IndexError) -> CallError {
    use std::error::Error;
    let inner = error.source().map(ToString::to_string).unwrap_or_default();
    CallError::new(ErrorCode::Storage, error.to_string())
        .hint("delete the index directory; it is made anew")
        .log(inner)
}
