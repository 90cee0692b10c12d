//! What a client can ask of us.

#![expect(
    deprecated,
    reason = "clients before 2026-07-28 set a level for logs and subscribe to resources one by one"
)]

use std::borrow::Cow;
use std::sync::Arc;

use dodona_proto::{CallError, ErrorCode};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, Reference,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, ServiceError, SubscriptionContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use serde_json::json;

use super::catalogue::Catalogue;
use super::changes::{Changes, News};
use super::client::{self, Client, Kept};
use super::desk::{Desk, Here, There};
use super::groups::Groups;
use super::http::Visit;
use super::subscriptions::{self, Subscriptions};
use super::{call, catalogue, page, prompts, resources};

const INSTRUCTIONS: &str = "Dodona knows this project: its Markdown notes, threads of decisions, \
    source code and history. Search before you answer questions about the project, and cite what \
    you found by path and lines. `vault_*` tools read and write notes (every write can be undone), \
    `thread_*` tools keep what was decided and why, `code_*` tools find definitions, uses and \
    history, and `ask` has Dodona search by itself and answer with citations. Notes are also \
    resources. Some calls wait until a person has agreed, or are refused by a rule of the project; \
    what a rule says is meant for you.";

/// What a client talks to. rmcp makes one for each session, and for each request of those without.
#[derive(Clone)]
pub(super) struct Endpoint {
    way: Way,
    kept: Arc<Kept>,
}

#[derive(Clone)]
enum Way {
    /// To the hub in this process. Who asks comes with each request.
    Http(Arc<Here>),
    /// To a hub behind our own wire, for one client.
    Stdio(Arc<There>, Groups),
}

/// What it takes to carry a request out.
struct Visited {
    desk: Desk,
    catalogue: Arc<Catalogue>,
    client: Client,
}

impl Endpoint {
    pub(super) fn http(here: Arc<Here>) -> Self {
        Self::new(Way::Http(here))
    }

    pub(super) fn stdio(there: Arc<There>, groups: Groups) -> Self {
        Self::new(Way::Stdio(there, groups))
    }

    fn new(way: Way) -> Self {
        let kept = Arc::default();
        Self { way, kept }
    }

    /// Through what a request is carried out, and which tools its client wants.
    fn visit(&self, extensions: &rmcp::model::Extensions) -> Result<(Desk, Groups), ErrorData> {
        match &self.way {
            Way::Stdio(there, groups) => Ok((Desk::There(Arc::clone(there)), groups.clone())),
            Way::Http(here) => {
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

    /// The same with what is offered, and what its client can do.
    async fn visited(&self, context: &RequestContext<RoleServer>) -> Result<Visited, ErrorData> {
        let (desk, groups) = self.visit(&context.extensions)?;
        let catalogue = desk.catalogue(&groups).await.map_err(unreachable)?;
        let client = Client::of(context, &self.kept, catalogue.may_agree());
        Ok(Visited {
            desk,
            catalogue,
            client,
        })
    }
}

impl ServerHandler for Endpoint {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
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
        let Visited { catalogue, .. } = self.visited(&context).await?;
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
        let mut visited = self.visited(&context).await?;
        if visited.catalogue.get(&request.name).is_none() {
            // It may have come since.
            visited.desk.forget();
            visited = self.visited(&context).await?;
        }
        let work = visited.catalogue.get(&request.name);
        let work = work.ok_or_else(|| unknown(&request.name))?;
        call::run(&visited.desk, &visited.client, work, request, &context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let visited = self.visited(&context).await?;
        let cursor = request.and_then(|request| request.cursor);
        resources::list(&visited.desk, &visited.catalogue, cursor.as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let visited = self.visited(&context).await?;
        resources::templates(&visited.desk, &visited.catalogue).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let v = self.visited(&context).await?;
        resources::read(&v.desk, &v.client, &v.catalogue, request, &context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let visited = self.visited(&context).await?;
        let cursor = request.and_then(|request| request.cursor);
        prompts::list(&visited.desk, &visited.catalogue, cursor.as_deref()).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let v = self.visited(&context).await?;
        prompts::get(&v.desk, &v.client, &v.catalogue, request, &context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let (desk, _) = self.visit(&context.extensions)?;
        let argument = request.argument;
        let completion = match request.r#ref {
            Reference::Resource(form) => {
                resources::complete(&desk, &form.uri, &argument.name, &argument.value).await?
            }
            // What prompts ask for is said in one's own words.
            _ => CompletionInfo::default(),
        };
        Ok(CompleteResult::new(completion))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !client::has_session(&context) {
            // Each request says its own.
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.kept.listen_from(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let visited = self.visited(&context).await?;
        let uris = [request.uri];
        let (mut now, _) = subscriptions::look(&visited.desk, &visited.catalogue, &uris).await;
        let [uri] = uris;
        let version = now.remove(&uri).flatten();
        // Only what is there can change.
        let version = version.ok_or_else(|| resources::missing(&uri))?;
        match self.kept.subscriptions.add(&uri, Some(version)) {
            true => Ok(()),
            false => Err(ErrorData::invalid_request(
                format!(
                    "{} resources are all that a client can subscribe to",
                    subscriptions::MOST
                ),
                None,
            )),
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.kept.subscriptions.remove(&request.uri);
        Ok(())
    }

    /// From here on a client with a session hears when tools, prompts and notes come and go.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Ok((desk, groups)) = self.visit(&context.extensions) else {
            return;
        };
        let (peer, kept) = (context.peer, Arc::clone(&self.kept));
        tokio::spawn(async move {
            let subscriptions = &kept.subscriptions;
            let mut changes = Changes::of(desk, groups, subscriptions).await;
            while !peer.is_transport_closed() {
                let news = changes.look(subscriptions).await;
                if tell(&peer, news).await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.truncate(subscriptions::MOST);
        }
        Some(accepted)
    }

    /// The same for a client without a session, which says what it wants to hear.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (desk, groups) = self.visit(&context.request_context().extensions)?;
        let wanted = context.accepted();
        let subscriptions = Subscriptions::default();
        let uris = wanted.resource_subscriptions.clone().unwrap_or_default();
        if let Ok(catalogue) = desk.catalogue(&groups).await {
            let (now, _) = subscriptions::look(&desk, &catalogue, &uris).await;
            for (uri, version) in now {
                subscriptions.add(&uri, version);
            }
        }
        let mut changes = Changes::of(desk, groups, &subscriptions).await;
        loop {
            let news = tokio::select! {
                () = context.cancelled() => return Ok(()),
                news = changes.look(&subscriptions) => news,
            };
            if pass_on(&context, news).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Tells a client with a session what is new.
async fn tell(peer: &Peer<RoleServer>, news: News) -> Result<(), ServiceError> {
    if news.installed {
        peer.notify_tool_list_changed().await?;
        peer.notify_prompt_list_changed().await?;
    }
    if news.installed || news.notes {
        peer.notify_resource_list_changed().await?;
    }
    for uri in news.updated {
        let updated = ResourceUpdatedNotificationParam::new(uri);
        peer.notify_resource_updated(updated).await?;
    }
    Ok(())
}

/// Tells a client without a session what is new of what it wanted to hear.
async fn pass_on(
    context: &SubscriptionContext,
    news: News,
) -> Result<(), rmcp::service::SubscriptionSendError> {
    let (wanted, sink) = (context.accepted(), context.sink());
    let wants = |wanted: Option<bool>| wanted == Some(true);
    if news.installed && wants(wanted.tools_list_changed) {
        sink.notify_tool_list_changed().await?;
    }
    if news.installed && wants(wanted.prompts_list_changed) {
        sink.notify_prompt_list_changed().await?;
    }
    if (news.installed || news.notes) && wants(wanted.resources_list_changed) {
        sink.notify_resource_list_changed().await?;
    }
    for uri in news.updated {
        sink.notify_resource_updated(uri).await?;
    }
    Ok(())
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
