//! The plugin `thread`: what people and agents thought, decided and found out, in the order they
//! did.
//!
//! Entries are only ever added. They are found together with notes and code, and cited like them.

mod book;
mod entry;
mod error;
mod render;
mod types;

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{
    BoxFuture, CallCtx, CallError, Contribution, ErrorCode, Plugin, PluginContext, plugin,
};
use dodona_proto::SourceKind;

use crate::library::{Library, Shelf, ThreadSource, hash_of};
use crate::passage::Passages;
use crate::resolve::{ResolveParams, Resolved};
use crate::search::{FileChunks, Question};
pub(crate) use book::MIGRATIONS;
use book::{Book, Draft};
use types::{
    ArchiveParams, ListParams, PushParams, Pushed, ReadParams, SeekParams, ThreadText, Threads,
};

/// The plugin.
pub(crate) struct ThreadPlugin {
    library: Arc<Library>,
}

impl ThreadPlugin {
    pub(crate) fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

impl Plugin for ThreadPlugin {
    fn name(&self) -> &'static str {
        "thread"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn description(&self) -> &'static str {
        "Keeps threads of thoughts, findings and decisions."
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let book = Book::new(ctx.db);
            self.library.find_threads(Arc::new(book.clone()));
            let threads = Arc::new(ThreadMethods {
                library: Arc::clone(&self.library),
                book,
            });
            Ok(Contribution::new()
                .methods(
                    threads
                        .plugin_methods()?
                        .into_iter()
                        .map(render::with_renderer),
                )
                .migrations(MIGRATIONS))
        })
    }
}

impl ThreadSource for Book {
    fn since<'a>(
        &'a self,
        shelf: &'a Shelf,
        id: i64,
    ) -> BoxFuture<'a, Result<Vec<(i64, FileChunks)>, CallError>> {
        Box::pin(async move {
            let entries = self.since(shelf.project.as_str(), id).await?;
            Ok(entries
                .iter()
                .map(|entry| (entry.id, entry.passages()))
                .collect())
        })
    }
}

struct ThreadMethods {
    library: Arc<Library>,
    book: Book,
}

#[plugin(name = "thread")]
impl ThreadMethods {
    /// Writes an entry at the end of a thread: a thought, a decision with its reasons, something that
    /// was found out, or what follows from it. The first entry makes the thread.
    #[method(scope = "thread:write", mutates, tool(category = "thread", agents = ["oracle", "librarian"]))]
    async fn push(&self, ctx: &CallCtx, p: PushParams) -> Result<Pushed, CallError> {
        let shelf = self.library.shelf(ctx).await?;
        let draft = Draft {
            thread: p.thread_id,
            entry_type: p.entry_type,
            content: p.content,
        };
        let entry = self.book.push(ctx, shelf.project.as_str(), draft).await?;
        shelf.touch();
        Ok(entry.into())
    }

    /// Reads the newest entries of a thread, oldest first.
    #[method(scope = "thread:read", tool(category = "thread", agents = ["*"]))]
    async fn read(&self, ctx: &CallCtx, p: ReadParams) -> Result<ThreadText, CallError> {
        let project = project(ctx)?;
        let entries = self
            .book
            .read(&project, &p.thread_id, p.before, p.limit)
            .await?;
        Ok(ThreadText {
            thread_id: p.thread_id,
            entries: entries.into_iter().map(Into::into).collect(),
        })
    }

    /// Finds the entries of threads that answer a question, best first: what was decided, and why.
    #[method(scope = "thread:read", tool(category = "thread", agents = ["*"]))]
    async fn seek(&self, ctx: &CallCtx, p: SeekParams) -> Result<Passages, CallError> {
        let shelf = self.library.shelf(ctx).await?;
        shelf.freshen(ctx).await?;
        let question = Question {
            text: p.query,
            kinds: vec![SourceKind::Thread],
            limit: p.limit as usize,
            ..Question::default()
        };
        Ok(shelf.search(question).await?.into())
    }

    /// Lists the threads of the project, the one with the newest entry first.
    #[method(scope = "thread:read", tool(category = "thread", agents = ["*"]))]
    async fn list(&self, ctx: &CallCtx, p: ListParams) -> Result<Threads, CallError> {
        let threads = self.book.list(&project(ctx)?, p.status).await?;
        Ok(Threads {
            threads: threads.into_iter().map(Into::into).collect(),
        })
    }

    /// Puts a thread away: nothing more is written to it, and lists leave it out. It is still read and
    /// found.
    #[method(scope = "thread:write", mutates, tool(category = "thread", agents = ["oracle", "librarian"], approval = "agents"))]
    async fn archive(&self, ctx: &CallCtx, p: ArchiveParams) -> Result<Threads, CallError> {
        let project = project(ctx)?;
        self.book
            .archive(&project, &p.thread_id, p.archived)
            .await?;
        let mut threads = self.book.list(&project, types::Status::All).await?;
        threads.retain(|thread| thread.id == p.thread_id);
        Ok(Threads {
            threads: threads.into_iter().map(Into::into).collect(),
        })
    }

    /// Turns a citation of an entry back into text.
    #[method(scope = "thread:read")]
    async fn resolve(&self, ctx: &CallCtx, p: ResolveParams) -> Result<Resolved, CallError> {
        let source = p.source;
        let (thread, n) = entry::of_path(&source.path).ok_or_else(|| {
            CallError::new(
                ErrorCode::InvalidParams,
                "the source is not an entry of a thread",
            )
        })?;
        let entry = self.book.entry(&project(ctx)?, thread, n).await?;
        let (from, to) = (source.line_start.max(1), source.line_end);
        let lines: Vec<&str> = entry
            .content
            .lines()
            .skip(from as usize - 1)
            .take(to.saturating_sub(from) as usize + 1)
            .collect();
        let text = lines.join("\n");
        Ok(Resolved {
            stale: hash_of(&text) != source.hash,
            text,
        })
    }
}

/// The project that a call is about.
fn project(ctx: &CallCtx) -> Result<String, CallError> {
    Ok(crate::library::project(ctx)?.id.to_string())
}
