//! The methods about conversations. What is asked in them is `agent.chat`.

pub(crate) mod agents;
mod archive;
pub(crate) mod compact;
mod contexts;
mod fork;
pub(crate) mod models;
mod notify;
pub(crate) mod pin;
mod queries;
mod recall;
mod remember;
pub(crate) mod render;
mod result;
mod seek;
mod show;
mod usage;

use std::sync::{Arc, Weak};

use dodona_plugin::store::Redactor;
use dodona_plugin::{CallCtx, CallError, plugin};

use crate::agent::Agent;
use crate::conversation::{Conversations, Owner, UsageReport};
use crate::keeper::Keeper;
use archive::{ExportParams, Exported, ImportParams};
use contexts::{
    CloseParams, Closed, ContextsParams, ContextsResult, CreateParams, CreateResult, RenameParams,
    Renamed,
};
use fork::{Copied, ForkParams, RewindParams, RewindResult};
use notify::{NotifyParams, NotifyResult};
use queries::{QueriesParams, QueriesResult};
use recall::{RecallParams, Recalled};
use remember::{RememberParams, RememberResult};
use result::{ResultParams, ResultPart};
use seek::{ResolveParams, Resolved, SeekParams, SeekResult};
use show::{ShowParams, ShowResult};
use usage::UsageParams;

/// The conversation that is meant where none is named.
const DEFAULT: &str = "default";

/// The conversations, as callers see them: their own, and about the project of the call.
pub(crate) struct ContextMethods {
    pub(crate) agent: Weak<Agent>,
    pub(crate) conversations: Conversations,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) redactor: Redactor,
}

#[plugin(name = "agent")]
impl ContextMethods {
    /// Lists the conversations of the project, the latest first.
    #[method(scope = "agent:read")]
    async fn contexts(
        &self,
        ctx: &CallCtx,
        p: ContextsParams,
    ) -> Result<ContextsResult, CallError> {
        contexts::list(&self.conversations, &Owner::of(ctx)?, p).await
    }

    /// Create a conversation next to the default one. It creates no agent: `agent.define` does.
    ///
    /// The conversation belongs to the agent `agent_id`, `oracle` by default, and questions with its
    /// `context_id` are answered by that agent. Returns the id of the conversation.
    #[method(scope = "agent:write", mutates)]
    async fn create(&self, ctx: &CallCtx, p: CreateParams) -> Result<CreateResult, CallError> {
        contexts::create(self, ctx, p).await
    }

    /// Tells all about a conversation: its state, what a model is shown of it, and what it
    /// remembers.
    #[method(scope = "agent:read")]
    async fn show(&self, ctx: &CallCtx, p: ShowParams) -> Result<ShowResult, CallError> {
        show::show(&self.conversations, &Owner::of(ctx)?, p).await
    }

    /// Ends a conversation. It can still be read, exported and forked; where it was the default,
    /// the next question begins another one.
    #[method(scope = "agent:write", mutates)]
    async fn close(&self, ctx: &CallCtx, p: CloseParams) -> Result<Closed, CallError> {
        let closed = contexts::close(&self.conversations, &Owner::of(ctx)?, p).await?;
        self.keeper.tell().await?;
        Ok(closed)
    }

    /// Rename a conversation. Names are unique in a project; the default conversation keeps its name.
    #[method(scope = "agent:write", mutates)]
    async fn rename(&self, ctx: &CallCtx, p: RenameParams) -> Result<Renamed, CallError> {
        contexts::rename(&self.conversations, &Owner::of(ctx)?, p).await
    }

    /// Copies a conversation up to an exchange, to go on from there in another way.
    #[method(scope = "agent:write", mutates)]
    async fn fork(&self, ctx: &CallCtx, p: ForkParams) -> Result<Copied, CallError> {
        fork::fork(&self.conversations, &Owner::of(ctx)?, p).await
    }

    /// Takes back an exchange of a conversation and everything after it. The originals stay, and
    /// are part of an export.
    #[method(scope = "agent:write", mutates)]
    async fn rewind(&self, ctx: &CallCtx, p: RewindParams) -> Result<RewindResult, CallError> {
        fork::rewind(&self.conversations, &Owner::of(ctx)?, p).await
    }

    /// Return a whole conversation as one document, which `agent.import` accepts. Secrets are
    /// redacted unless `raw` is set. The format `seed` has the columns of the data model only.
    #[method(scope = "agent:read")]
    async fn export(&self, ctx: &CallCtx, p: ExportParams) -> Result<Exported, CallError> {
        archive::export(&self.conversations, &self.redactor, &Owner::of(ctx)?, p).await
    }

    /// Create a conversation from a document of `agent.export`, in either format.
    #[method(scope = "agent:write", mutates)]
    async fn import(&self, ctx: &CallCtx, p: ImportParams) -> Result<Copied, CallError> {
        archive::import(&self.conversations, &Owner::of(ctx)?, p).await
    }

    /// Remember a decision, a fact or a preference for the rest of the conversation, in one sentence.
    /// Use it for what must not be lost when older messages are summarised.
    #[method(scope = "agent:write", mutates, tool(category = "meta", agents = ["*"]))]
    async fn remember(
        &self,
        ctx: &CallCtx,
        p: RememberParams,
    ) -> Result<RememberResult, CallError> {
        remember::remember(&self.conversations, ctx, p).await
    }

    /// Leave a note that you will read at a later step of this conversation.
    ///
    /// Use it for a reminder that must come up again, such as a step to repeat or a limit to keep.
    /// `deliver_at` says when it is delivered; each note is delivered once. From outside of a query
    /// it reaches the agent with the next question.
    #[method(scope = "agent:write", mutates, tool(category = "meta", agents = ["*"]))]
    async fn notify_self(&self, ctx: &CallCtx, p: NotifyParams) -> Result<NotifyResult, CallError> {
        notify::notify(&self.conversations, ctx, p).await
    }

    /// Reads a message of the conversation as it was said, by the number that a summary gives it.
    ///
    /// A line of a summary ends with such a number, like #12. Use it where the line is not enough.
    #[method(scope = "agent:read", tool(category = "meta", agents = ["*"]))]
    async fn recall(&self, ctx: &CallCtx, p: RecallParams) -> Result<Recalled, CallError> {
        recall::recall(&self.conversations, ctx, p).await
    }

    /// Search what was decided, remembered, pinned or said before, in this and in other
    /// conversations about the project. Returns passages that can be cited.
    #[method(scope = "agent:read", tool(category = "meta", agents = ["*"]))]
    async fn seek(&self, ctx: &CallCtx, p: SeekParams) -> Result<SeekResult, CallError> {
        seek::seek(&self.conversations, ctx, p).await
    }

    /// Turns a citation of a conversation back into text, and tells whether it changed since.
    #[method(scope = "agent:read")]
    async fn resolve(&self, ctx: &CallCtx, p: ResolveParams) -> Result<Resolved, CallError> {
        seek::resolve(&self.conversations, ctx, p).await
    }

    /// Read more of a result that was cut because it was too large.
    #[method(scope = "agent:read", tool(category = "meta", agents = ["*"]))]
    async fn result(&self, ctx: &CallCtx, p: ResultParams) -> Result<ResultPart, CallError> {
        result::part(&self.conversations, &Owner::of(ctx)?, p).await
    }

    /// Lists the queries of a conversation and how each ended, the latest first.
    #[method(scope = "agent:read")]
    async fn queries(&self, ctx: &CallCtx, p: QueriesParams) -> Result<QueriesResult, CallError> {
        queries::list(&self.conversations, &Owner::of(ctx)?, p).await
    }

    /// Sums up what requests to models used and cost, by day, conversation, query, turn, tool,
    /// path or model.
    #[method(scope = "agent:read")]
    async fn usage(&self, ctx: &CallCtx, p: UsageParams) -> Result<UsageReport, CallError> {
        usage::usage(&self.conversations, &Owner::of(ctx)?, p).await
    }
}

/// What a caller named, or the default.
fn named(context: Option<&str>) -> &str {
    context.unwrap_or(DEFAULT)
}
