//! The plugin `vault`: notes in Markdown, their links and tags.

mod links;
mod types;

use std::collections::BTreeMap;
use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use dodona_proto::SourceKind;

use crate::library::{FileRow, Library, Shelf};
use crate::passage::Passages;
use crate::search::Question;
use links::Links;
use types::{
    Backlinks, Edge, Graph, ListParams, NoteParams, NoteRef, NoteText, Notes, SearchParams, Tag,
    Tags,
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

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let vault = Arc::new(Vault {
                library: Arc::clone(&self.library),
            });
            Ok(Contribution::new().methods(vault.plugin_methods()?))
        })
    }
}

struct Vault {
    library: Arc<Library>,
}

impl Vault {
    async fn fresh(&self, ctx: &CallCtx) -> Result<Arc<Shelf>, CallError> {
        let shelf = self.library.shelf(ctx).await?;
        shelf.freshen(ctx).await?;
        Ok(shelf)
    }
}

#[plugin(name = "vault")]
impl Vault {
    /// Finds the passages of notes that answer a question, best first.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["oracle", "librarian"]))]
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

    /// Reads a note.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["oracle", "librarian"]))]
    async fn read(&self, ctx: &CallCtx, p: NoteParams) -> Result<NoteText, CallError> {
        let shelf = self.library.shelf(ctx).await?;
        let (source, text) = shelf.quote(&p.path, 1, None).await?;
        Ok(NoteText { source, text })
    }

    /// Lists the notes of a folder and everything below it.
    #[method(scope = "vault:read", tool(category = "vault", agents = ["oracle", "librarian"]))]
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

    /// Lists the notes that link to a note.
    #[method(scope = "vault:read", tool(category = "vault"))]
    async fn backlinks(&self, ctx: &CallCtx, p: NoteParams) -> Result<Backlinks, CallError> {
        let shelf = self.fresh(ctx).await?;
        let links = Links::new(&notes(&shelf).await?, shelf.catalogue.aliases().await?);
        let all = shelf.catalogue.links().await?;
        let pointing = all
            .iter()
            .filter(|link| links.resolve(&link.path, &link.target) == Some(p.path.as_str()));
        Ok(Backlinks {
            backlinks: pointing.map(Into::into).collect(),
        })
    }

    /// Lists the tags, with the notes that have them.
    #[method(scope = "vault:read", tool(category = "vault"))]
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
        let links = Links::new(&notes, shelf.catalogue.aliases().await?);
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
}

async fn notes(shelf: &Shelf) -> Result<Vec<FileRow>, CallError> {
    let mut files = shelf.catalogue.files().await?;
    files.retain(|file| file.kind == SourceKind::Note);
    Ok(files)
}
