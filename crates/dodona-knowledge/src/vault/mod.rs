//! The plugin `vault`: notes in Markdown, their links and tags.
//!
//! Reading goes through the library like everything else. For writing, `text`, `rewrite` and
//! `overview` say what a note shall be, the `scribe` changes files (`apply`, `disk`) after it has
//! written down what it does in the `ledger`, and `undo` and `past` read that.

mod apply;
mod change;
mod disk;
mod error;
mod ledger;
mod links;
mod moving;
mod outside;
mod overview;
mod past;
mod path;
mod render;
mod rewrite;
mod scribe;
mod scribes;
mod text;
mod types;
mod undo;
mod writing;

use std::collections::BTreeMap;
use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Method, Plugin, PluginContext, plugin};
use dodona_proto::SourceKind;

use crate::library::{FileRow, Library, Shelf};
use crate::passage::Passages;
use crate::search::Question;
pub(crate) use ledger::MIGRATIONS;
use links::Links;
use path::NotePath;
use scribe::Scribe;
use scribes::Scribes;
use types::{
    Backlinks, Changes, ChangesParams, DeleteParams, DiffParams, Difference, Done, Edge,
    FollowParams, Followed, Graph, History, HistoryParams, IndexParams, ListParams, MoveParams,
    NoteParams, NoteRef, NoteText, Notes, ReadParams, SearchParams, Tag, Tags, Trash, TrashParams,
    UndoParams, Versions, VersionsParams, WriteParams,
};

/// The plugin.
pub(crate) struct VaultPlugin {
    library: Arc<Library>,
}

impl VaultPlugin {
    pub(crate) fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

impl Plugin for VaultPlugin {
    fn name(&self) -> &'static str {
        "vault"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn description(&self) -> &'static str {
        "Reads, writes, links and undoes changes to notes."
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let scribes = Arc::new(Scribes::new(ctx.db));
            self.library.keep_notes(Arc::clone(&scribes) as _);
            let vault = Arc::new(Vault {
                library: Arc::clone(&self.library),
                scribes,
            });
            let methods = vault.plugin_methods()?.into_iter().map(with_path_check);
            Ok(Contribution::new()
                .methods(methods.map(render::with_renderer))
                .migrations(MIGRATIONS))
        })
    }
}

/// Rejects paths that cannot name a note before the call waits for an approval.
fn with_path_check(method: Method) -> Method {
    let fields: &'static [&'static str] = match method.descriptor().name.as_str() {
        "vault.write" | "vault.delete" => &["path"],
        "vault.move" => &["old_path", "new_path"],
        _ => return method,
    };
    method.checked(move |info, params| {
        let vault = info
            .project
            .as_ref()
            .and_then(|project| project.vault.as_ref());
        let vault = vault.and_then(|vault| vault.to_str());
        for field in fields {
            if let Some(path) = params[*field].as_str() {
                NotePath::parse(path, vault)?;
            }
        }
        Ok(())
    })
}

struct Vault {
    library: Arc<Library>,
    scribes: Arc<Scribes>,
}

impl Vault {
    /// The project's shelf in step with the disk, and who changes its notes.
    async fn desk(&self, ctx: &CallCtx) -> Result<(Arc<Shelf>, Arc<Scribe>), CallError> {
        let shelf = self.fresh(ctx).await?;
        let scribe = self.scribes.of(&shelf).await;
        scribe.open().await?;
        Ok((shelf, scribe))
    }

    async fn fresh(&self, ctx: &CallCtx) -> Result<Arc<Shelf>, CallError> {
        let shelf = self.library.shelf(ctx).await?;
        shelf.freshen(ctx).await?;
        Ok(shelf)
    }
}

#[plugin(name = "vault")]
impl Vault {
    /// Finds the passages of notes that answer a question, best first.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn search(&self, ctx: &CallCtx, p: SearchParams) -> Result<Passages, CallError> {
        let shelf = self.fresh(ctx).await?;
        let question = Question {
            text: p.query,
            kinds: vec![SourceKind::Note],
            limit: p.limit as usize,
            ..Question::default()
        };
        Ok(shelf.search(question).await?.into())
    }

    /// Read a note, or an earlier version of it, with line numbers.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn read(&self, ctx: &CallCtx, p: ReadParams) -> Result<NoteText, CallError> {
        let shelf = self.library.shelf(ctx).await?;
        let scribe = self.scribes.of(&shelf).await;
        scribe.open().await?;
        writing::read(&shelf, &scribe, p).await
    }

    /// List the notes of a folder and its subfolders.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn list(&self, ctx: &CallCtx, p: ListParams) -> Result<Notes, CallError> {
        let folder = p.folder.unwrap_or_default();
        let folder = folder.trim_matches('/');
        let below = |path: &str| {
            folder.is_empty()
                || path
                    .strip_prefix(folder)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        let shelf = self.fresh(ctx).await?;
        let notes = notes(&shelf).await?;
        Ok(Notes {
            notes: notes
                .into_iter()
                .filter(|note| below(&note.path))
                .map(NoteRef::from)
                .collect(),
        })
    }

    /// Tells what version notes have, and what the list of all notes is, so that both can be
    /// compared with what they were.
    #[method(scope = "vault:read")]
    async fn versions(&self, ctx: &CallCtx, p: VersionsParams) -> Result<Versions, CallError> {
        let shelf = self.fresh(ctx).await?;
        Ok(Versions::of(&notes(&shelf).await?, &p.paths))
    }

    /// Lists the notes that link to a note.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn backlinks(&self, ctx: &CallCtx, p: NoteParams) -> Result<Backlinks, CallError> {
        let shelf = self.fresh(ctx).await?;
        let notes = notes(&shelf).await?;
        let paths = notes.iter().map(|note| note.path.as_str());
        let links = Links::new(paths, shelf.catalogue.aliases().await?);
        let all = shelf.catalogue.links().await?;
        let pointing = all
            .iter()
            .filter(|link| links.resolve(&link.path, &link.target) == Some(p.path.as_str()));
        Ok(Backlinks {
            backlinks: pointing.map(Into::into).collect(),
        })
    }

    /// Tells which note a link leads to.
    #[method(scope = "vault:read")]
    async fn follow(&self, ctx: &CallCtx, p: FollowParams) -> Result<Followed, CallError> {
        let shelf = self.fresh(ctx).await?;
        let notes = notes(&shelf).await?;
        let paths = notes.iter().map(|note| note.path.as_str());
        let links = Links::new(paths, shelf.catalogue.aliases().await?);
        Ok(Followed {
            path: links.resolve(&p.from, &p.target).map(str::to_owned),
        })
    }

    /// Lists the tags, with the notes that have them.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn tags(&self, ctx: &CallCtx) -> Result<Tags, CallError> {
        let mut tags: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (tag, path) in self.fresh(ctx).await?.catalogue.tags().await? {
            tags.entry(tag).or_default().push(path);
        }
        Ok(Tags {
            tags: tags
                .into_iter()
                .map(|(tag, notes)| Tag { tag, notes })
                .collect(),
        })
    }

    /// Tells how the notes are linked, and which links lead nowhere.
    #[method(scope = "vault:read")]
    async fn graph(&self, ctx: &CallCtx) -> Result<Graph, CallError> {
        let shelf = self.fresh(ctx).await?;
        let notes = notes(&shelf).await?;
        let paths = notes.iter().map(|note| note.path.as_str());
        let links = Links::new(paths, shelf.catalogue.aliases().await?);
        let (mut edges, mut unresolved) = (Vec::new(), Vec::new());
        for link in &shelf.catalogue.links().await? {
            match links.resolve(&link.path, &link.target) {
                Some(to) => edges.push(Edge {
                    from: link.path.clone(),
                    to: to.to_owned(),
                }),
                None => unresolved.push(link.into()),
            }
        }
        edges.sort();
        edges.dedup();
        Ok(Graph {
            notes: notes.into_iter().map(NoteRef::from).collect(),
            edges,
            unresolved,
        })
    }

    /// Create a note or replace its text. Its frontmatter is kept unless the text has its own. The
    /// change can be undone.
    #[method(scope = "vault:write", mutates, tool(category = "vault", agents = ["oracle", "librarian"], approval = "agents"))]
    async fn write(&self, ctx: &CallCtx, p: WriteParams) -> Result<Done, CallError> {
        let (shelf, scribe) = self.desk(ctx).await?;
        writing::write(ctx, &shelf, &scribe, p).await
    }

    /// Moves or renames a note. Every link to it, and every link in it, leads where it did.
    #[method(scope = "vault:write", mutates, tool(category = "vault", agents = ["oracle", "librarian"], approval = "agents"))]
    async fn r#move(&self, ctx: &CallCtx, p: MoveParams) -> Result<Done, CallError> {
        let (shelf, scribe) = self.desk(ctx).await?;
        writing::r#move(ctx, &shelf, &scribe, p).await
    }

    /// Deletes a note. It stays in the trash, from where it can be brought back.
    #[method(scope = "vault:write", mutates, tool(category = "vault", agents = ["oracle", "librarian"], approval = "agents"))]
    async fn delete(&self, ctx: &CallCtx, p: DeleteParams) -> Result<Done, CallError> {
        let (shelf, scribe) = self.desk(ctx).await?;
        writing::delete(ctx, &shelf, &scribe, p).await
    }

    /// Writes a list of the notes of a folder and those below it, as its `index.md`. In an index
    /// that is there only the list is replaced.
    #[method(scope = "vault:write", mutates, tool(category = "vault", agents = ["oracle", "librarian"], approval = "agents"))]
    async fn create_index(&self, ctx: &CallCtx, p: IndexParams) -> Result<Done, CallError> {
        let (shelf, scribe) = self.desk(ctx).await?;
        writing::create_index(ctx, &shelf, &scribe, p).await
    }

    /// Takes changes back: the newest one of a note, one by its number, or all of a query as one
    /// step; or brings back a version of a note. What somebody changed since is never written over.
    #[method(scope = "vault:write", mutates, tool(category = "vault", agents = ["oracle", "librarian"], approval = "agents"))]
    async fn undo(&self, ctx: &CallCtx, p: UndoParams) -> Result<Done, CallError> {
        let (shelf, scribe) = self.desk(ctx).await?;
        writing::undo(ctx, &shelf, &scribe, p).await
    }

    /// Tells what happened to a note: when, by whom and in which query, newest first.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn history(&self, ctx: &CallCtx, p: HistoryParams) -> Result<History, CallError> {
        let (shelf, scribe) = self.desk(ctx).await?;
        shelf.check_open(&p.path)?;
        let history = scribe.ledger.history(&p.path, p.limit).await?;
        Ok(History {
            history: history.into_iter().map(Into::into).collect(),
        })
    }

    /// Tells the newest changes of all notes, or those of one query.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn changes(&self, ctx: &CallCtx, p: ChangesParams) -> Result<Changes, CallError> {
        let (_, scribe) = self.desk(ctx).await?;
        let changes = scribe.ledger.changes(p.query, p.limit).await?;
        Ok(Changes {
            changes: changes.into_iter().map(Into::into).collect(),
        })
    }

    /// Tells what is other between two versions of a note, as a unified diff.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn diff(&self, ctx: &CallCtx, p: DiffParams) -> Result<Difference, CallError> {
        let (shelf, scribe) = self.desk(ctx).await?;
        shelf.check_open(&p.path)?;
        Ok(past::diff(&scribe, &p.path, p.from.as_deref(), p.to.as_deref()).await?)
    }

    /// Lists the notes that are gone; `vault.undo` brings one back.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["*"]))]
    async fn trash(&self, ctx: &CallCtx, p: TrashParams) -> Result<Trash, CallError> {
        let (_, scribe) = self.desk(ctx).await?;
        let gone = scribe.ledger.gone(p.limit).await?;
        Ok(Trash {
            notes: gone.into_iter().map(Into::into).collect(),
        })
    }
}

async fn notes(shelf: &Shelf) -> Result<Vec<FileRow>, CallError> {
    let mut files = shelf.catalogue.files().await?;
    files.retain(|file| file.kind == SourceKind::Note);
    Ok(files)
}
