//! The plugin `code`: source code, its definitions and where they are used.

mod grep;
mod history;
mod map;
pub(crate) mod render;
mod types;

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, ErrorCode, Plugin, PluginContext, plugin};
use dodona_proto::SourceKind;

use crate::library::{Library, Shelf};
use crate::passage::Passages;
use crate::search::Question;
use types::{
    Blame, BlameParams, DefinitionParams, Definitions, FileText, GrepParams, LogParams, Logged,
    MapParams, Matches, ReadParams, ReferenceParams, References, RepoMap, SearchParams,
};

/// The plugin.
pub(crate) struct CodePlugin {
    library: Arc<Library>,
}

impl CodePlugin {
    pub(crate) fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

impl Plugin for CodePlugin {
    fn name(&self) -> &'static str {
        "code"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn description(&self) -> &'static str {
        "Searches and reads the project's code and its history."
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let code = Arc::new(Code {
                library: Arc::clone(&self.library),
            });
            let methods = code.plugin_methods()?.into_iter();
            Ok(Contribution::new().methods(methods.map(render::with_renderer)))
        })
    }
}

struct Code {
    library: Arc<Library>,
}

impl Code {
    async fn fresh(&self, ctx: &CallCtx) -> Result<Arc<Shelf>, CallError> {
        let shelf = self.library.shelf(ctx).await?;
        shelf.freshen(ctx).await?;
        Ok(shelf)
    }
}

#[plugin(name = "code")]
impl Code {
    /// Finds the functions, types and other passages of code that answer a question, best first.
    #[method(scope = "code:read", tool(category = "code", agents = ["*"]))]
    async fn search(&self, ctx: &CallCtx, p: SearchParams) -> Result<Passages, CallError> {
        let shelf = self.fresh(ctx).await?;
        let question = Question {
            text: p.query,
            kinds: vec![SourceKind::Code, SourceKind::Text],
            language: p.language,
            path: p.path,
            limit: p.limit as usize,
        };
        Ok(shelf.search(question).await?.into())
    }

    /// Find where a function, type or other symbol is defined, by its exact name.
    #[method(scope = "code:read", tool(category = "code", agents = ["*"]))]
    async fn find_definition(
        &self,
        ctx: &CallCtx,
        p: DefinitionParams,
    ) -> Result<Definitions, CallError> {
        let shelf = self.fresh(ctx).await?;
        // `Type::method` and `module.function` are found by their last name.
        let name = p.symbol.rsplit(['.', ':']).next().unwrap_or(&p.symbol);
        let found = shelf
            .catalogue
            .definitions(name, p.scope.as_deref())
            .await?;
        Ok(Definitions {
            definitions: found.into_iter().map(Into::into).collect(),
        })
    }

    /// Finds where a symbol is used, by its exact name.
    #[method(scope = "code:read", tool(category = "code", agents = ["*"]))]
    async fn find_references(
        &self,
        ctx: &CallCtx,
        p: ReferenceParams,
    ) -> Result<References, CallError> {
        let shelf = self.fresh(ctx).await?;
        let name = p.symbol.rsplit(['.', ':']).next().unwrap_or(&p.symbol);
        let found = shelf.catalogue.references(name, p.limit).await?;
        Ok(References {
            references: found.into_iter().map(Into::into).collect(),
        })
    }

    /// Draws a map of the code: the files and the symbols in them that others use most, as much
    /// as fits.
    #[method(scope = "code:read", tool(category = "code", agents = ["*"]))]
    async fn repo_map(&self, ctx: &CallCtx, p: MapParams) -> Result<RepoMap, CallError> {
        let shelf = self.fresh(ctx).await?;
        let symbols = shelf
            .catalogue
            .ranked_symbols(p.scope.as_deref().unwrap_or_default())
            .await?;
        Ok(map::draw(symbols, p.max_tokens))
    }

    /// Read a file of the project, or some lines of it, with line numbers.
    #[method(scope = "code:read", tool(category = "code", agents = ["*"]))]
    async fn read(&self, ctx: &CallCtx, p: ReadParams) -> Result<FileText, CallError> {
        if p.to.is_some_and(|to| to < p.from) {
            return Err(CallError::new(
                ErrorCode::InvalidParams,
                "`to` lies before `from`",
            ));
        }
        let shelf = self.library.shelf(ctx).await?;
        let (source, text, next_line) = shelf.quote(&p.path, p.from, p.to).await?;
        Ok(FileText {
            source,
            text,
            next_line,
        })
    }

    /// Find the lines of text files that match a regular expression.
    #[method(scope = "code:read", tool(category = "code", agents = ["*"]))]
    async fn grep(&self, ctx: &CallCtx, p: GrepParams) -> Result<Matches, CallError> {
        grep::run(self.fresh(ctx).await?.as_ref(), p).await
    }

    /// Finds commits by what their messages say, best first, or lists the newest: why something
    /// was done is often told there.
    #[method(scope = "code:read", tool(category = "code", agents = ["*"]))]
    async fn log(&self, ctx: &CallCtx, p: LogParams) -> Result<Logged, CallError> {
        history::log(self.fresh(ctx).await?.as_ref(), p).await
    }

    /// Tells which commit each line of a file came with, and who wrote it.
    #[method(scope = "code:read", tool(category = "code", agents = ["*"]))]
    async fn blame(&self, ctx: &CallCtx, p: BlameParams) -> Result<Blame, CallError> {
        history::blame(self.library.shelf(ctx).await?.as_ref(), p).await
    }
}
