//! The plugin `web`: pages of the public network, and a search over it if one is configured.
//!
//! The shared HTTP client decides where a request may go, `fetch` sends it, `page` and `ink` turn the
//! response into Markdown, `kept` stores it, so that citations can be checked.

mod error;
mod fetch;
mod ink;
mod kept;
mod page;
mod render;
mod search;
mod types;

use std::sync::{Arc, OnceLock};

use dodona_plugin::activation::Activating;
use dodona_plugin::http::{HttpClient, Url};
use dodona_plugin::store::Db;
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use dodona_proto::{Source, SourceKind};
use jiff::Timestamp;

use crate::library::{blocking, hash_of};
use crate::resolve::{ResolveParams, Resolved};
use error::WebError;
use fetch::Fetched;
pub(crate) use kept::MIGRATIONS;
use page::Page;
use search::Engine;
use types::{FetchParams, FetchedPage, SearchParams, SearchResults};

/// How many bytes a token has, roughly.
const BYTES_PER_TOKEN: usize = 4;

/// Options of the web. They are for the user to set, never for a project.
#[derive(Debug, Clone, Default)]
pub struct WebOptions {
    /// Where to search, such as `http://127.0.0.1:8888/search`; without it there is no search.
    pub search_url: Option<String>,
}

/// The plugin.
pub(crate) struct WebPlugin {
    options: WebOptions,
}

impl WebPlugin {
    pub(crate) fn new(options: WebOptions) -> Self {
        Self { options }
    }
}

impl Plugin for WebPlugin {
    fn name(&self) -> &'static str {
        "web"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn description(&self) -> &'static str {
        "Fetches and searches public web pages."
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async move {
            let web = Arc::new(Web {
                db: ctx.db,
                search_url: self.options.search_url.clone(),
                client: ctx.system.http_client.clone(),
                engine: OnceLock::new(),
            });
            let client = web.client.clone();
            Ok(Contribution::new()
                .methods(web.plugin_methods()?.into_iter().map(move |method| {
                    let method = render::with_renderer(method);
                    let client = client.clone();
                    match method.descriptor().name.as_str() {
                        "web.fetch" => method.checked(move |_, params| {
                            let url = params["url"].as_str().unwrap_or_default();
                            client.check(url).map_err(WebError::from)?;
                            Ok(())
                        }),
                        _ => method,
                    }
                }))
                .migrations(MIGRATIONS))
        })
    }
}

struct Web {
    db: Db,
    search_url: Option<String>,
    client: HttpClient,
    engine: OnceLock<Engine>,
}

impl Web {
    fn engine(&self) -> Result<&Engine, WebError> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine);
        }
        let engine = Engine::new(self.search_url.as_ref().ok_or(WebError::NoSearch)?)?;
        Ok(self.engine.get_or_init(|| engine))
    }
}

#[plugin(name = "web")]
impl Web {
    /// Fetches a page of the web as Markdown, with its title and where it came from.
    #[method(scope = "web:read", tool(category = "web", agents = ["oracle"], approval = "agents"))]
    async fn fetch(&self, ctx: &CallCtx, p: FetchParams) -> Result<FetchedPage, CallError> {
        let url = self.client.check(&p.url).map_err(WebError::from)?;
        let fetched = fetch::fetch(&self.client, url).await?;
        let room = p.max_tokens as usize * BYTES_PER_TOKEN;
        let answer = blocking(move || answer(fetched, room)).await?;
        let page = kept::Page {
            user: ctx.principal.user.clone(),
            url: answer.url.clone(),
            hash: answer.source.hash.clone(),
            text: answer.text.clone(),
        };
        kept::keep(&self.db, page).await?;
        Ok(answer)
    }

    /// Searches the web, where a search is configured.
    #[method(scope = "web:read", tool(category = "web", agents = ["oracle"]))]
    async fn search(&self, _ctx: &CallCtx, p: SearchParams) -> Result<SearchResults, CallError> {
        Ok(self.engine()?.ask(&p.query, p.limit).await?)
    }

    /// Turns a citation of a page back into the text that was fetched.
    #[method(scope = "web:read")]
    async fn resolve(&self, ctx: &CallCtx, p: ResolveParams) -> Result<Resolved, CallError> {
        let (user, source) = (&ctx.principal.user, &p.source);
        let found = kept::find(&self.db, user, &source.path, &source.hash).await?;
        let text = found.ok_or(WebError::Forgotten)?;
        Ok(Resolved { text, stale: false })
    }
}

/// A page as it is answered, with as much of it as there is room for.
fn answer(fetched: Fetched, room: usize) -> FetchedPage {
    let (title, text) = text(&fetched.url, &fetched.content_type, fetched.text);
    let end = text.floor_char_boundary(room.min(text.len()));
    let truncated = end < text.len();
    // Not in the middle of a line, where there is another end nearby.
    let end = match truncated {
        true => text[..end]
            .rfind('\n')
            .filter(|line| *line > end / 2)
            .unwrap_or(end),
        false => end,
    };
    let lines: Vec<&str> = text[..end].lines().collect();
    let text = lines.join("\n");
    let url = fetched.url.to_string();
    FetchedPage {
        source: Source {
            kind: SourceKind::Web,
            path: url.clone(),
            line_start: 1,
            line_end: u32::try_from(lines.len().max(1)).unwrap_or(u32::MAX),
            hash: hash_of(&text),
            title: title.clone(),
        },
        url,
        title,
        content_type: fetched.content_type,
        fetched_at: Timestamp::now(),
        truncated,
        text,
    }
}

/// The title of what was fetched, and what it says.
fn text(url: &Url, content_type: &str, text: String) -> (Option<String>, String) {
    match content_type {
        "text/html" | "application/xhtml+xml" => {
            let Page { title, markdown } = page::readable(&text, url);
            (title, markdown)
        }
        _ => (None, text),
    }
}
