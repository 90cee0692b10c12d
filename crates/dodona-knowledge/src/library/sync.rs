//! Bringing index and catalogue in step with the disk.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dodona_plugin::{CallCtx, CallError};
use dodona_proto::SourceKind;
use tokio::time::Instant;

use super::catalogue::{Entry, FileRow};
use super::git::{Commit, Git};
use super::meaning::Effort;
use super::scan::{self, Found, Skipped, Tree};
use super::shelf::{COMMIT, Shelf, THREAD, blocking, hash_of, index_error};
use crate::parse::{self, Chunk, Parsed};
use crate::search::{FileChunks, IndexError};

/// How many files one step takes in: the price of a commit is shared, and a step is short enough
/// to be cancelled and shown as progress.
const STEP: usize = 200;

/// How much of a project's history can be searched.
const MAX_COMMITS: usize = 20_000;

/// How much of a commit's message can be searched.
const MAX_MESSAGE: usize = 16 << 10;

/// What a look at the disk found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) files: u64,
    pub(crate) notes: u64,
    pub(crate) changed: u64,
    pub(crate) removed: u64,
    /// Commits that were new.
    pub(crate) commits: u64,
    pub(crate) skipped: Skipped,
}

impl Synced {
    /// Whether anything is other than before.
    pub(crate) fn is_news(&self) -> bool {
        self.changed + self.removed + self.commits > 0
    }
}

/// A file that was read anew.
struct Read {
    row: FileRow,
    parsed: Parsed,
    chunks: FileChunks,
}

/// What became of some files.
#[derive(Default)]
struct Part {
    read: Vec<Read>,
    /// Path, size and time of those whose text is what it was.
    touched: Vec<(String, u64, i64)>,
    skipped: Skipped,
}

/// A file that is on the disk, and what is known of it.
struct Seen {
    file: Found,
    kind: SourceKind,
    /// The hash it had when it was read last.
    hash: Option<String>,
}

impl Shelf {
    /// Brings index and catalogue in step with the disk. What is done when it is cancelled stays
    /// done.
    pub(crate) async fn sync(&self, ctx: &CallCtx) -> Result<Synced, CallError> {
        let mut looked = self.looked.lock().await;
        let synced = self.look(Some(ctx), Effort::All).await?;
        *looked = Some(Instant::now());
        Ok(synced)
    }

    /// One look, with the lock held. Tells a call how far it is, where there is one.
    pub(super) async fn look(
        &self,
        ctx: Option<&CallCtx>,
        effort: Effort,
    ) -> Result<Synced, CallError> {
        let vault = self.vault_root()?;
        self.touched.store(false, Ordering::Release);
        if let Some(watch) = self.watch.get() {
            watch.take_changed();
        }
        let (root, options) = (self.root.clone(), Arc::clone(&self.options));
        let Tree {
            files,
            dirs,
            mut skipped,
        } = blocking(move || scan::walk(&root, &options.files)).await?;
        self.cover(dirs).await;
        let mut synced = Synced {
            files: files.len() as u64,
            ..Synced::default()
        };
        let (changed, gone) = self.compare(files, vault.as_deref(), &mut synced).await?;
        synced.removed = gone.len() as u64;
        self.forget(gone).await?;
        let total = changed.len();
        let mut done = 0;
        let mut changed = changed.into_iter();
        while done < total {
            if total > STEP {
                tell(ctx, "indexing", "files", done, total).await?;
            }
            let step: Vec<Seen> = changed.by_ref().take(STEP).collect();
            done += step.len();
            synced.changed += self.take_in(step, &mut skipped).await?;
        }
        synced.skipped = skipped;
        self.tell_keeper().await;
        self.take_in_threads().await?;
        synced.commits = self.look_at_history(ctx).await;
        if synced.is_news() {
            *self.vectors.lock().await = None;
        }
        self.embed_new(ctx, effort).await;
        Ok(synced)
    }

    /// Whoever keeps what notes were is told. Where that fails the files can be searched all the
    /// same, and the next look tells again.
    async fn tell_keeper(&self) {
        let Some(keeper) = self.told.keeper.get() else {
            return;
        };
        if let Err(error) = keeper.looked(self).await {
            tracing::warn!(root = %self.root.display(), %error, "what notes were was not kept");
        }
    }

    /// Which files are other than they were, and which are gone.
    async fn compare(
        &self,
        files: Vec<Found>,
        vault: Option<&str>,
        synced: &mut Synced,
    ) -> Result<(Vec<Seen>, Vec<String>), CallError> {
        let rows = self.catalogue.files().await?;
        let mut known: HashMap<String, FileRow> = rows
            .into_iter()
            .map(|file| (file.path.clone(), file))
            .collect();
        let mut changed = Vec::new();
        for file in files {
            let kind = kind_of(&file.path, vault);
            synced.notes += u64::from(kind == SourceKind::Note);
            let before = known.remove(&file.path);
            let same = before.as_ref().is_some_and(|row| {
                row.size == file.size && row.mtime_ns == file.mtime_ns && row.kind == kind
            });
            if !same {
                let hash = before.filter(|row| row.kind == kind).map(|row| row.hash);
                changed.push(Seen { file, kind, hash });
            }
        }
        Ok((changed, known.into_keys().collect()))
    }

    /// Reads files and puts them where they are found. The index first: if the process ends in
    /// between, the catalogue still says that they are to be read.
    async fn take_in(&self, files: Vec<Seen>, skipped: &mut Skipped) -> Result<u64, CallError> {
        let (root, index) = (self.root.clone(), Arc::clone(&self.index));
        let (entries, touched, more) = blocking(move || -> Result<_, IndexError> {
            let mut more = Skipped::default();
            let (mut entries, mut chunks, mut touched) = (Vec::new(), Vec::new(), Vec::new());
            for part in read_all(&root, files) {
                more.add(&part.skipped);
                touched.extend(part.touched);
                for read in part.read {
                    chunks.push(read.chunks);
                    entries.push(Entry {
                        file: read.row,
                        parsed: read.parsed,
                    });
                }
            }
            index.replace(chunks)?;
            Ok((entries, touched, more))
        })
        .await?
        .map_err(index_error)?;
        skipped.add(&more);
        let changed = entries.len() as u64;
        self.catalogue.replace(entries, Vec::new()).await?;
        self.catalogue.touch(touched).await?;
        Ok(changed)
    }

    async fn forget(&self, gone: Vec<String>) -> Result<(), CallError> {
        if gone.is_empty() {
            return Ok(());
        }
        self.replace(gone.iter().cloned().map(gone_file).collect())
            .await?;
        Ok(self.catalogue.replace(Vec::new(), gone).await?)
    }

    /// Lets go of what the index has and the catalogue does not know. A process that was killed
    /// between the two leaves that; a file that is then deleted would be found for ever.
    pub(super) async fn forget_strays(&self) -> Result<(), CallError> {
        let index = Arc::clone(&self.index);
        let mut strays = blocking(move || index.paths())
            .await?
            .map_err(index_error)?;
        for path in self.catalogue.paths().await? {
            strays.remove(&path);
        }
        // Entries of threads are only ever added, and known elsewhere.
        strays.retain(|path| !path.starts_with(THREAD));
        if strays.iter().any(|path| path.starts_with(COMMIT)) {
            for id in self.catalogue.commit_ids().await? {
                strays.remove(&format!("{COMMIT}{id}"));
            }
        }
        self.replace(strays.into_iter().map(gone_file).collect())
            .await
    }

    pub(super) async fn replace(&self, files: Vec<FileChunks>) -> Result<(), CallError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.replace(files))
            .await?
            .map_err(index_error)
    }

    /// Takes in the commits since the last look. A history that cannot be read is no reason not
    /// to search the files.
    async fn look_at_history(&self, ctx: Option<&CallCtx>) -> u64 {
        let Some(git) = &self.git else { return 0 };
        match self.take_in_history(git, ctx).await {
            Ok(commits) => commits,
            Err(error) => {
                tracing::warn!(root = %self.root.display(), %error, "the history was not read");
                0
            }
        }
    }

    async fn take_in_history(&self, git: &Git, ctx: Option<&CallCtx>) -> Result<u64, CallError> {
        let Some(head) = git.head().await? else {
            return Ok(0);
        };
        let range = match self.catalogue.head().await? {
            Some(known) if known == head => return Ok(0),
            Some(known) if git.is_before(&known, &head).await? => format!("{known}..{head}"),
            Some(_) => {
                self.forget_history().await?;
                head.clone()
            }
            None => head.clone(),
        };
        // In a part of a repository only the commits that touched it count.
        let part = (!self.root.join(".git").exists()).then_some(".");
        let commits = git.log(&range, part, MAX_COMMITS).await?;
        let total = commits.len();
        for (step, commits) in commits.chunks(STEP * 5).enumerate() {
            if total > STEP * 5 {
                tell(ctx, "indexing", "commits", step * STEP * 5, total).await?;
            }
            self.replace(commits.iter().map(commit_chunks).collect())
                .await?;
            self.catalogue.add_commits(commits.to_vec(), None).await?;
        }
        self.catalogue.add_commits(Vec::new(), Some(head)).await?;
        Ok(total as u64)
    }

    /// The history was rewritten: what was taken in of it is let go, in the index first.
    async fn forget_history(&self) -> Result<(), CallError> {
        let ids = self.catalogue.commit_ids().await?;
        let gone = ids.into_iter().map(|id| gone_file(format!("{COMMIT}{id}")));
        self.replace(gone.collect()).await?;
        Ok(self.catalogue.drop_commits().await?)
    }
}

/// What a file is. Markdown outside of the vault is text like any other.
pub(super) fn kind_of(path: &str, vault: Option<&str>) -> SourceKind {
    match (parse::kind_of(path), vault) {
        (SourceKind::Note, Some(vault)) if !Path::new(path).starts_with(vault) => SourceKind::Text,
        (kind, _) => kind,
    }
}

/// Tells a call how far it is, where there is one.
pub(super) async fn tell(
    ctx: Option<&CallCtx>,
    doing: &str,
    what: &str,
    done: usize,
    total: usize,
) -> Result<(), CallError> {
    let Some(ctx) = ctx else { return Ok(()) };
    #[expect(clippy::cast_precision_loss, reason = "a percentage needs no more")]
    let share = done as f32 / total as f32 * 100.0;
    ctx.progress(format!("{doing} {done} of {total} {what}"), Some(share))
        .await
}

/// Reads files on every core there is, in parts that keep their order.
fn read_all(root: &Path, mut files: Vec<Seen>) -> Vec<Part> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let size = files.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        while files.len() > size {
            let part = files.split_off(files.len() - size);
            others.push(scope.spawn(|| read_part(root, part)));
        }
        let mut parts = vec![read_part(root, files)];
        for other in others.into_iter().rev() {
            let part = other.join();
            parts.push(part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        parts
    })
}

fn read_part(root: &Path, files: Vec<Seen>) -> Part {
    let mut part = Part::default();
    for seen in files {
        let text = scan::read(root, &seen.file.path, &mut part.skipped);
        let hash = text.as_deref().map(hash_of);
        if hash.is_some() && hash == seen.hash {
            let Found {
                path,
                size,
                mtime_ns,
            } = seen.file;
            part.touched.push((path, size, mtime_ns));
        } else {
            let read = read(seen, text.as_deref(), hash.unwrap_or_default());
            part.read.push(read);
        }
    }
    part
}

/// A file that has text is parsed; one that has not is known, so that it is not read again, and
/// has nothing to be found.
fn read(seen: Seen, text: Option<&str>, hash: String) -> Read {
    let Seen { file, kind, .. } = seen;
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
        hash,
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

/// A commit's message as one passage.
fn commit_chunks(commit: &Commit) -> FileChunks {
    let end = commit.message.floor_char_boundary(MAX_MESSAGE);
    let text = commit.message[..end].lines().collect::<Vec<_>>().join("\n");
    let day = commit.date.get(..10).unwrap_or_default();
    FileChunks {
        path: format!("{COMMIT}{}", commit.id),
        kind: SourceKind::Commit,
        language: None,
        title: commit.subject().to_owned(),
        chunks: vec![Chunk {
            line_start: 1,
            line_end: u32::try_from(text.lines().count().max(1)).unwrap_or(u32::MAX),
            heading: format!("{} · {day}", commit.author),
            symbol: String::new(),
            text,
        }],
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
