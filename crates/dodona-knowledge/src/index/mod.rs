//! The plugin `search`: the index itself, and questions over all of it.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::store::Durability;
use dodona_plugin::{
    CallCtx, CallError, Contribution, Emitter, ErrorCode, Method, Plugin, PluginContext, plugin,
};
use dodona_proto::SourceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;

use crate::library::{Library, MIGRATIONS, Synced};
use crate::passage::{self, Passages};
use crate::resolve::{ResolveParams, Resolved};
use crate::search::Question;

/// The plugin.
pub(crate) struct SearchPlugin {
    library: Arc<Library>,
}

impl SearchPlugin {
    pub(crate) fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

impl Plugin for SearchPlugin {
    fn name(&self) -> &'static str {
        "search"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn description(&self) -> &'static str {
        "Searches notes, threads and code, and keeps the index."
    }

    /// Built from the project's files.
    fn durability(&self) -> Durability {
        Durability::Rebuildable
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async move {
            self.library.settle(ctx.db, ctx.data_dir.join("indexes"));
            let search = Arc::new(Search {
                library: Arc::clone(&self.library),
            });
            let methods = search.plugin_methods()?.into_iter().map(with_renderer);
            Ok(Contribution::new().methods(methods).migrations(MIGRATIONS))
        })
    }
}

/// Adds the renderer of a method's result.
fn with_renderer(method: Method) -> Method {
    match method.descriptor().name.as_str() {
        "search.query" => method.rendered(passage::render),
        _ => method,
    }
}

struct Search {
    library: Arc<Library>,
}

#[derive(Deserialize, JsonSchema)]
struct QueryParams {
    /// A question, or words.
    query: String,
    /// How many passages at most.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    limit: u32,
    /// Only these kinds. Default: all.
    #[serde(default)]
    kinds: Vec<SourceKind>,
}

fn five() -> u32 {
    5
}

/// What a look at the disk found.
#[derive(Serialize, JsonSchema)]
struct IndexSummary {
    /// Files that are not ignored.
    files: u64,
    /// Notes among them.
    notes: u64,
    /// Files that were new or changed.
    changed: u64,
    /// Files that are gone.
    removed: u64,
    /// Commits that were new.
    commits: u64,
    /// Files that were passed over: too large, binary, generated or unreadable.
    skipped: u64,
}

impl From<Synced> for IndexSummary {
    fn from(synced: Synced) -> Self {
        Self {
            files: synced.files,
            notes: synced.notes,
            commits: synced.commits,
            changed: synced.changed,
            removed: synced.removed,
            skipped: synced.skipped.total(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct IndexParams {
    /// Go on, and tell of every change as it is taken in, until cancelled.
    #[serde(default)]
    watch: bool,
}

#[derive(Serialize, JsonSchema)]
struct IndexStatus {
    /// How many passages can be found.
    passages: u64,
    /// Whether every file of the index has the checksum it was written with.
    sound: bool,
}

#[plugin(name = "search")]
impl Search {
    /// Brings the index of the project in step with its files, and tells what changed.
    #[method(scope = "search:index")]
    async fn index(
        &self,
        ctx: &CallCtx,
        p: IndexParams,
        out: Emitter<IndexSummary>,
    ) -> Result<(), CallError> {
        ctx.progress("looking at the files", None).await?;
        let shelf = self.library.shelf(ctx).await?;
        if !p.watch {
            return out.send(shelf.sync(ctx).await?.into()).await;
        }
        let mut updates = shelf.updates();
        out.send(shelf.sync(ctx).await?.into()).await?;
        loop {
            match updates.recv().await {
                Ok(synced) if synced.is_news() => out.send(synced.into()).await?,
                // What was missed is in the index all the same.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(()),
            }
        }
    }

    /// Search notes, threads, code and other text by meaning and keywords. Returns passages with path
    /// and lines, best first.
    #[method(scope = "search:read", tool(category = "meta", agents = ["*"]))]
    async fn query(&self, ctx: &CallCtx, p: QueryParams) -> Result<Passages, CallError> {
        let shelf = self.library.shelf(ctx).await?;
        shelf.freshen(ctx).await?;
        let question = Question {
            text: p.query,
            kinds: p.kinds,
            limit: p.limit as usize,
            ..Question::default()
        };
        Ok(shelf.search(question).await?.into())
    }

    /// Tells how large the index of the project is, and whether its files are sound; that reads
    /// all of it.
    #[method(scope = "search:read")]
    async fn status(&self, ctx: &CallCtx) -> Result<IndexStatus, CallError> {
        let (passages, sound) = self.library.shelf(ctx).await?.status().await?;
        Ok(IndexStatus { passages, sound })
    }

    /// Turns a citation back into text, and tells whether it changed since.
    #[method(scope = "search:read")]
    async fn resolve(&self, ctx: &CallCtx, p: ResolveParams) -> Result<Resolved, CallError> {
        // Whoever has the text resolves it.
        let elsewhere = match p.source.kind {
            SourceKind::Thread => Some("thread.resolve"),
            SourceKind::Web => Some("web.resolve"),
            SourceKind::Context => Some("agent.resolve"),
            _ => None,
        };
        if let Some(method) = elsewhere {
            let resolved = ctx
                .call(method, serde_json::json!({ "source": p.source }))
                .await;
            return match resolved {
                // It was cited once, and is not there any more.
                Err(error) if error.code == ErrorCode::NotFound => Ok(Resolved::gone()),
                resolved => resolved,
            };
        }
        let shelf = self.library.shelf(ctx).await?;
        let (text, ..) = shelf
            .lines(&p.source.path, p.source.line_start, Some(p.source.line_end))
            .await?;
        Ok(Resolved {
            text,
            stale: !shelf.holds(&p.source).await,
        })
    }
}
