//! What a client can ask of us.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{CallError, ErrorCode};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use super::desk::{Desk, Here, Installed, There};
use super::groups::Groups;
use super::http::Visit;
use super::{call, catalogue, notes, page};

/// How often it is looked whether other tools are installed.
const LOOK: Duration = Duration::from_secs(1);

const INSTRUCTIONS: &str = "Dodona knows this project: its Markdown notes, threads of decisions, \
    source code and history. Search before you answer questions about the project, and cite what \
    you found by path and lines. `vault_*` tools read and write notes (every write can be undone), \
    `thread_*` tools keep what was decided and why, `code_*` tools find definitions, uses and \
    history, and `ask` has Dodona search by itself and answer with citations. Notes are also \
    resources. Some calls wait until a person has agreed, or are refused by a rule of the project; \
    what a rule says is meant for you.";

/// What a client talks to. Cheap to clone: rmcp makes one for each session, and for each request
/// of those without.
#[derive(Clone)]
pub(super) enum Endpoint {
    /// Of the hub in this process. Who asks comes with each request.
    Http(Arc<Here>),
    /// Of a hub behind our own wire, for one client.
    Stdio(Arc<There>, Groups),
}

impl Endpoint {
    /// Through what a request is carried out, and which tools its client wants.
    fn visit(&self, extensions: &rmcp::model::Extensions) -> Result<(Desk, Groups), ErrorData> {
        match self {
            Self::Stdio(there, groups) => Ok((Desk::There(Arc::clone(there)), groups.clone())),
            Self::Http(here) => {
                let visit = extensions
                    .get::<http::request::Parts>()
                    .and_then(|parts| parts.extensions.get::<Visit>());
                // The route lets nobody in without.
                let visit = visit.ok_or_else(|| ErrorData::internal_error("nobody asks", None))?;
                let desk = Desk::Here(Arc::clone(here), visit.caller.clone());
                Ok((desk, visit.groups.clone()))
            }
        }
    }

    /// What to look at for changes; nobody's rights matter for that.
    fn desk(&self, extensions: &rmcp::model::Extensions) -> Option<Desk> {
        self.visit(extensions).ok().map(|(desk, _)| desk)
    }
}

impl ServerHandler for Endpoint {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .build();
        let about = Implementation::new("dodona", env!("CARGO_PKG_VERSION"))
            .with_title("Dodona")
            .with_description("Notes, decisions, code and history of a project, with citations");
        ServerConfig::new(capabilities)
            .with_server_info(about)
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[
            ProtocolVersion::V_2025_06_18,
            ProtocolVersion::V_2025_11_25,
            ProtocolVersion::V_2026_07_28,
        ])
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (desk, groups) = self.visit(&context.extensions)?;
        let catalogue = desk.catalogue(&groups).await.map_err(unreachable)?;
        let cursor = request.and_then(|request| request.cursor);
        let (page, next) = page::of(
            catalogue.tools(),
            |offered| &offered.tool.name,
            cursor.as_deref(),
            catalogue::PAGE,
        )?;
        let tools = page.iter().map(|offered| offered.tool.clone()).collect();
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next;
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (desk, groups) = self.visit(&context.extensions)?;
        let mut catalogue = desk.catalogue(&groups).await.map_err(unreachable)?;
        if catalogue.get(&request.name).is_none() {
            // It may have come since.
            desk.forget();
            catalogue = desk.catalogue(&groups).await.map_err(unreachable)?;
        }
        let work = catalogue
            .get(&request.name)
            .ok_or_else(|| unknown(&request.name))?;
        let result = call::run(&desk, work, request.arguments, &context).await?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (desk, _) = self.visit(&context.extensions)?;
        let cursor = request.and_then(|request| request.cursor);
        notes::list(&desk, cursor.as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(notes::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (desk, _) = self.visit(&context.extensions)?;
        Ok(notes::read(&desk, &request.uri).await?.into())
    }

    /// From here on a client with a session hears when tools come and go.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(desk) = self.desk(&context.extensions) else {
            return;
        };
        let peer = context.peer;
        tokio::spawn(async move {
            let mut changes = Changes::of(desk).await;
            while !peer.is_transport_closed() {
                if changes.look().await && peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    /// The same for a client without a session.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(desk) = self.desk(&context.request_context().extensions) else {
            return Ok(());
        };
        let mut changes = Changes::of(desk).await;
        loop {
            let is_other = tokio::select! {
                () = context.cancelled() => return Ok(()),
                is_other = changes.look() => is_other,
            };
            if is_other && context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Looks at what is installed.
struct Changes {
    desk: Desk,
    seen: Option<Installed>,
}

impl Changes {
    async fn of(desk: Desk) -> Self {
        let seen = desk.installed().await.ok();
        Self { desk, seen }
    }

    /// After a while, whether something else is installed than at the last look.
    async fn look(&mut self) -> bool {
        tokio::time::sleep(LOOK).await;
        // A server that cannot be reached has not changed its tools.
        let Ok(now) = self.desk.installed().await else {
            return false;
        };
        let is_other = self.seen.as_ref().is_some_and(|seen| *seen != now);
        self.seen = Some(now);
        if is_other {
            self.desk.forget();
        }
        is_other
    }
}

fn unknown(name: &str) -> ErrorData {
    let name: String = name.chars().take(100).collect();
    ErrorData::invalid_params(
        format!("there is no tool `{name}`"),
        Some(
            json!({ "hint": "list the tools again; `dodona mcp --tools` says which are offered" }),
        ),
    )
}

/// The hub could not be asked.
fn unreachable(error: CallError) -> ErrorData {
    let data = json!({ "code": error.code, "hint": error.hint_text() });
    match error.code {
        ErrorCode::Interrupted => ErrorData::internal_error(error.message, Some(data)),
        _ => ErrorData::new(rmcp::model::ErrorCode(-32000), error.message, Some(data)),
    }
}
