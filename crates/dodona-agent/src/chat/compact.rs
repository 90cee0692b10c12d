//! Shortening a conversation that has become too long, before the model is asked again.

use std::sync::Arc;

use dodona_llm::{Model, ModelRequest};
use dodona_plugin::activation::EventDraft;
use dodona_plugin::hooks::{Hooks, point};
use dodona_plugin::{Behalf, CallCtx, CallError, HookHost};
use dodona_proto::hook::{Compacted, Compacting};
use dodona_proto::{PluginEffect, QuerySnapshot, Severity};
use serde_json::json;

use super::QueryRun;
use super::ending::QueryError;
use super::summarize::Summarizer;
use crate::agent::Agent;
use crate::conversation::{Compaction, ContextId, Counter, Plan, SummaryLine};
use crate::notify::notify;

/// The built-in summarizer, by the name that hooks and settings have for it.
pub(crate) const EXTRACTIVE: &str = "extractive";

/// When it is time: at this many hundredths of the budget.
const DUE_AT: u64 = 90;

/// A conversation that is shortened on somebody's behalf.
pub(crate) struct Compactor<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) ctx: &'a CallCtx,
    pub(crate) hooks: &'a Hooks,
    pub(crate) context: ContextId,
    pub(crate) snapshot: QuerySnapshot,
    pub(crate) counter: Counter,
}

/// A conversation that was shortened.
pub(crate) struct Shortened {
    pub(crate) compaction: Compaction,
    /// Who made the summary.
    pub(crate) summarizer: String,
}

impl Compactor<'_> {
    /// Shortens it; `None` where there is nothing to gain.
    pub(crate) async fn run(&self) -> Result<Option<Shortened>, CallError> {
        let conversations = &self.agent.conversations;
        let keep = self.agent.options.keep_turns;
        let Some(mut plan) = conversations.plan_compaction(&self.context, keep).await? else {
            return Ok(None);
        };
        let summarizer = self.before(&mut plan).await?;
        let (summarizer, told) = self.told(&plan, summarizer).await;
        let lines = self.fold(&plan, told).await?;
        let done = conversations.compact(&plan, lines, &self.counter).await?;
        let Some(compaction) = done else {
            return Ok(None);
        };
        self.after(&compaction, &summarizer).await?;
        Ok(Some(Shortened {
            compaction,
            summarizer,
        }))
    }

    /// Asks plugins what must survive and who summarizes.
    async fn before(&self, plan: &mut Plan) -> Result<String, CallError> {
        let configured = self.agent.options.summarizer.as_deref();
        let configured = configured.unwrap_or(EXTRACTIVE).to_owned();
        if !self.hooks.has_subscribers::<point::PreCompact>() {
            return Ok(configured);
        }
        let shown = Compacting {
            snapshot: Arc::new(self.snapshot.clone()),
            pinned: plan.pinned(),
            summarizer: configured,
        };
        let fired = self.hooks.fire::<point::PreCompact>(shown).await;
        let left_out = plan.pin(fired.payload.pinned, &self.counter);
        if !left_out.is_empty() {
            let texts = left_out.len();
            tracing::warn!(
                texts,
                "a plugin wants more kept than a summary has room for"
            );
        }
        self.apply_effects(fired.effects).await?;
        Ok(fired.payload.summarizer)
    }

    /// What a model tells of what is folded, and who did. One that cannot is done without: the
    /// conversation must become shorter now.
    async fn told(&self, plan: &Plan, name: String) -> (String, Option<Vec<SummaryLine>>) {
        if name == EXTRACTIVE {
            return (name, None);
        }
        let told = match self.agent.model(Some(&name)) {
            Ok(model) => self.ask(plan, &model).await,
            Err(error) => Err(error),
        };
        match told {
            Ok(lines) => (name, Some(lines)),
            Err(error) => {
                tracing::warn!(model = name, error = error.message, "no summary was made");
                (EXTRACTIVE.to_owned(), None)
            }
        }
    }

    async fn ask(
        &self,
        plan: &Plan,
        model: &Arc<dyn Model>,
    ) -> Result<Vec<SummaryLine>, CallError> {
        let summarizer = Summarizer {
            agent: self.agent,
            ctx: self.ctx,
            model,
        };
        let (lines, usage) = summarizer.run(plan).await?;
        let turn = self.snapshot.turn.iteration_count;
        let record = summarizer.record(turn, usage);
        let conversations = &self.agent.conversations;
        conversations.context_usage(&self.context, record).await?;
        Ok(lines)
    }

    /// Counting takes long enough to hold others up.
    async fn fold(
        &self,
        plan: &Plan,
        told: Option<Vec<SummaryLine>>,
    ) -> Result<Vec<SummaryLine>, CallError> {
        let (plan, counter) = (plan.clone(), Counter::clone(&self.counter));
        let folding = tokio::task::spawn_blocking(move || plan.fold(told, &counter));
        folding.await.map_err(|error| {
            let message = "the conversation could not be shortened";
            CallError::plugin("agent.compact", message).log(error.to_string())
        })
    }

    async fn after(&self, done: &Compaction, summarizer: &str) -> Result<(), CallError> {
        let mut snapshot = self.snapshot.clone();
        snapshot.tokens_used = done.after;
        let draft = EventDraft {
            kind: "context.compacted",
            source: "agent",
            severity: Severity::Info,
            payload: json!({
                "snapshot": snapshot,
                "before": done.before,
                "after": done.after,
                "folded": done.folded,
                "exchanges": done.exchanges,
                "lines": done.lines,
                "count": done.count,
                "summarizer": summarizer,
            }),
            behalf: Some(Behalf::of(self.ctx)),
            id: None,
        };
        self.agent.bus.publish(draft).await?;
        let shown = || Compacted {
            snapshot: Arc::new(snapshot),
            before: done.before,
            after: done.after,
        };
        if let Some(fired) = self.hooks.fire_with::<point::PostCompact>(shown).await {
            self.apply_effects(fired.effects).await?;
        }
        Ok(())
    }

    async fn apply_effects(&self, effects: Vec<PluginEffect>) -> Result<(), CallError> {
        if effects.is_empty() {
            return Ok(());
        }
        let host: &dyn HookHost = self.agent.host.as_ref();
        let behalf = Behalf::of(self.ctx);
        let told = host.apply_effects(behalf, effects).await;
        let conversations = &self.agent.conversations;
        Ok(notify(conversations, host, behalf, &self.context, told).await?)
    }
}

impl QueryRun<'_> {
    /// Whether the conversation must become shorter before the model is asked.
    pub(super) fn is_compaction_due(&self) -> bool {
        let (used, budget) = (self.snapshot.tokens_used, self.room());
        // One that quotes has no use for what was said before, and all for what tools will find.
        let due_at = match self.model.quotes() && !self.ran_tools {
            true => DUE_AT / 2,
            false => DUE_AT,
        };
        used * 100 >= budget * due_at || self.query.has_gap()
    }

    /// Makes the conversation shorter, and a request that was assembled from it. What plugins added
    /// to that stays at its end; what they put in its place is theirs. Answers whether it is.
    pub(super) async fn shorten(
        &mut self,
        turn: u32,
        request: &mut ModelRequest,
    ) -> Result<bool, QueryError> {
        self.query.settle().await?;
        if !self.compact().await? {
            return Ok(false);
        }
        self.append_remembered_again(turn).await?;
        let short = self.assemble(turn).await?.messages;
        let long = std::mem::replace(&mut self.plain, short);
        if let Some(added) = request.messages.strip_prefix(&long[..]) {
            let added = added.to_vec();
            request.messages = self.plain.iter().cloned().chain(added).collect();
        }
        Ok(true)
    }

    /// Makes the conversation shorter. Answers whether it is.
    async fn compact(&mut self) -> Result<bool, QueryError> {
        let hooks = Arc::clone(&self.hooks);
        let compactor = Compactor {
            agent: self.agent,
            ctx: self.ctx,
            hooks: &hooks,
            context: self.query.context().clone(),
            snapshot: self.snapshot.clone(),
            counter: Counter::clone(self.query.counter()),
        };
        let Some(Shortened { compaction, .. }) = compactor.run().await? else {
            return Ok(false);
        };
        let (before, after) = (compaction.before, compaction.after);
        self.snapshot.tokens_used = after;
        let message = format!("shortened the conversation from {before} to {after} tokens");
        self.ctx.progress(message, None).await?;
        Ok(true)
    }
}
