//! `agent.chat`: from a question to its answer.
//!
//! A query waits for the queries before it in its conversation. Then [`QueryRun::run_turns`] runs
//! turns: assemble the request, call the model, account for it, run its tools, until it answers.

mod arguments;
mod assemble;
mod choice;
mod cite;
mod compact;
mod cut;
mod emit;
mod ending;
mod fire;
mod history;
mod inherited;
mod preload;
mod present;
mod question;
mod queue;
mod repeats;
mod report;
mod role;
mod run;
mod schema;
mod summarize;
mod tools;
mod turn;
mod types;

use std::sync::Arc;
use std::time::Duration;

use dodona_llm::{Model, RequestDigest};
use dodona_plugin::hooks::Hooks;
use dodona_plugin::store::StreamRedactor;
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::{Message, NOTICES, QuerySnapshot, Usage};
use serde_json::Value;
use tokio::sync::watch;

use crate::agent::Agent;
use crate::conversation::{Counter, DEFAULT_AGENT, ExchangeOrigin, NewQuery, Owner, Query};
use arguments::ArgumentStream;
use assemble::PromptPrefix;
use choice::Choice;
use cite::Citations;
use ending::QueryError;
use question::FittedQuestion;
use repeats::Repeats;
use turn::{ModelOutput, TurnUsage};

pub(crate) use assemble::{
    Frame, PromptParams, PromptShown, messages_then, show as show_prompt, snapshot_before,
};
pub(crate) use choice::ToolCounts;
pub(crate) use compact::{Compactor, Shortened};
pub(crate) use cut::line_end;
pub(crate) use history::messages as last_messages;
pub(crate) use inherited::InheritedByCall;
pub(crate) use queue::Queue;
pub(crate) use role::{Delegations, Role};
pub(crate) use tools::{Tool, Toolbox};
pub(crate) use turn::RawOutput;
pub(crate) use types::{AgentResponse, ChatParams};

/// Answers a question as the agent that it is addressed to.
pub(crate) async fn answer(
    agent: &Agent,
    ctx: &CallCtx,
    p: ChatParams,
) -> Result<AgentResponse, CallError> {
    let role = addressee(agent, ctx, p.agent_id.as_deref(), p.context_id.as_deref()).await?;
    // A nested call gets no tools that the agent above it lacks.
    let (above, _) = agent.delegations.above(&ctx.call_id);
    let role = role.within(above);
    if role.is_main() {
        return answer_as(agent, ctx, ctx, p, role).await;
    }
    let path_name = role.path_name();
    let mut response = None;
    let kept = &mut response;
    // Tools run on the agent's own path, which says who wrote what. The answer is the call's own.
    let work = ctx.scope(&path_name, |tool_ctx| async move {
        *kept = Some(answer_as(agent, ctx, &tool_ctx, p, role).await?);
        Ok(Value::Null)
    });
    work.await?;
    response.ok_or_else(|| CallError::new(ErrorCode::Internal, "the agent returned no response"))
}

/// The agent that a question is addressed to: the one named, or that of the conversation, or the
/// main agent.
pub(crate) async fn addressee(
    agent: &Agent,
    ctx: &CallCtx,
    agent_id: Option<&str>,
    context: Option<&str>,
) -> Result<Role, CallError> {
    let name = match (agent_id, context) {
        (Some(name), _) => name.to_owned(),
        (None, None) => DEFAULT_AGENT.to_owned(),
        (None, Some(context)) => {
            let owner = Owner::of(ctx)?;
            agent.conversations.agent_of(&owner, context).await?
        }
    };
    Role::find(agent, ctx, &name).await.map_err(|error| {
        match agent_id.is_some() || error.code != ErrorCode::InvalidParams {
            true => error,
            false => error.hint(
                "the conversation belongs to this agent; define it again, or ask in another one",
            ),
        }
    })
}

/// How long a cancelled query waits for running tools. Half of the time after which the hub drops a
/// cancelled call, so that the end of the query is still stored.
const TOOLS_GRACE: Duration = Duration::from_millis(25);

/// Answers a question as one of the agents, and stores what was said whatever happens. Tools are
/// called with `tool_ctx`, everything else is the call's own.
pub(crate) async fn answer_as(
    agent: &Agent,
    ctx: &CallCtx,
    tool_ctx: &CallCtx,
    mut p: ChatParams,
    role: Role,
) -> Result<AgentResponse, CallError> {
    let owner = Owner::of(ctx)?;
    let model = agent.model(p.model.as_deref().or(role.model()))?;
    let hooks = agent.host.hooks();
    let mut toolbox = Toolbox::load(ctx, p.tools, &hooks, &role).await;
    let effects = toolbox.take_effects();
    let toolbox = Arc::new(toolbox);
    let _at_hand = agent
        .toolboxes
        .enter(&tool_ctx.call_id, Arc::clone(&toolbox));
    let _limit = (!role.is_main()).then(|| {
        let names = Arc::new(toolbox.names());
        agent.delegations.enter(&tool_ctx.call_id, names)
    });
    let key = agent
        .conversations
        .queue_key(&owner, p.context_id.as_deref(), role.name())
        .await?;
    let _place = agent.queue.enter(ctx, key).await?;
    let asked = (&model, &role);
    let context = p.context_id.as_deref();
    let FittedQuestion { text, cut } = question::fit(
        agent,
        &owner,
        asked,
        context,
        std::mem::take(&mut p.message),
    )
    .await?;
    p.message.clone_from(&text);
    let question = text;
    let query = begin(agent, ctx, &owner, (&model, &toolbox, &role), p).await?;
    query.runs_in(&ctx.call_id);
    if let Some(cut) = cut {
        query.keep_text(&cut.handle, "question", cut.whole).await?;
        emit::notification(ctx, &cut.notice).await?;
    }
    let tools = (model, toolbox, hooks);
    let mut work = QueryRun::new(agent, (ctx, tool_ctx), role, tools, query, question);
    let mut tools_running = work.tools_running.subscribe();
    let stopped = async {
        tool_ctx.cancel.cancelled().await;
        // Tools that are about to end do so first, and their results are stored.
        let ended = tools_running.wait_for(|running| !running);
        let _ = tokio::time::timeout(TOOLS_GRACE, ended).await;
    };
    let answering = async {
        work.apply_effects(effects).await?;
        work.run_turns().await
    };
    let outcome = tokio::select! {
        biased;
        () = stopped => Err(QueryError::cancelled()),
        outcome = answering => outcome,
    };
    work.end(outcome).await
}

async fn begin(
    agent: &Agent,
    ctx: &CallCtx,
    owner: &Owner,
    (model, toolbox, role): (&Arc<dyn Model>, &Toolbox, &Role),
    p: ChatParams,
) -> Result<Query, CallError> {
    let new = NewQuery {
        context: p.context_id,
        agent: Some(role.name().to_owned()),
        question: p.message,
        model: model.name().to_owned(),
        counter: counter(model),
        tools: toolbox.names(),
        token_budget: role.token_budget(agent, model),
        call: Some(ctx.call_id),
    };
    Ok(agent.conversations.begin_ahead(owner, new).await?)
}

/// Counts as a model does.
pub(crate) fn counter(model: &Arc<dyn Model>) -> Counter {
    let counter = model.counter();
    Arc::new(move |message| counter.count_message(message) as u64)
}

/// The state of a running query: its identity, its handles, and what its turns leave to the next one.
struct QueryRun<'c> {
    agent: &'c Agent,
    ctx: &'c CallCtx,
    /// Calls tools. Its path names the agent where that is not the main one.
    tool_ctx: &'c CallCtx,
    role: Role,
    model: Arc<dyn Model>,
    toolbox: Arc<Toolbox>,
    /// Which of its tools the model is told of.
    choice: Choice,
    /// The same from the query's beginning to its end.
    hooks: Arc<Hooks>,
    query: Query,
    question: String,
    /// The messages of the newest request, without what plugins made of them.
    plain: Vec<Message>,
    /// The same as it was sent, where plugins changed it.
    changed: Option<RequestDigest>,
    /// What the model said to it, where plugins changed that.
    heard: Option<RawOutput>,
    /// Whether tools have run since the last request.
    ran_tools: bool,
    /// True while tools run: a cancelled query ends after the results of its tools are stored.
    tools_running: Arc<watch::Sender<bool>>,
    /// What is the same in every request.
    basis: PromptPrefix,
    citations: Citations,
    repeats: Repeats,
    /// What all requests took.
    usage: Usage,
    /// What that cost, in millionths of a dollar, where every price is known.
    cost_micros: Option<u64>,
    snapshot: QuerySnapshot,
    /// What the newest request took, until it is told.
    took: Option<TurnUsage>,
    /// The turn of the request that is open, until its answer is complete.
    open_turn: Option<u32>,
    /// What was received of that answer.
    output: ModelOutput,
    /// What was shown of an answer that is not complete.
    partial: String,
    /// Hold back ends of text and reasoning that could be the start of a secret.
    text_redactor: StreamRedactor,
    reasoning_redactor: StreamRedactor,
    /// The arguments of tool calls that the model is writing.
    arguments: ArgumentStream,
}

impl<'c> QueryRun<'c> {
    fn new(
        agent: &'c Agent,
        (ctx, tool_ctx): (&'c CallCtx, &'c CallCtx),
        role: Role,
        (model, toolbox, hooks): (Arc<dyn Model>, Arc<Toolbox>, Arc<Hooks>),
        query: Query,
        question: String,
    ) -> Self {
        let mut snapshot = assemble::first_snapshot(agent, ctx, &query);
        snapshot.turn.max_iterations = role.max_turns(agent);
        Self {
            agent,
            ctx,
            tool_ctx,
            role,
            model,
            toolbox,
            choice: Choice::default(),
            hooks,
            query,
            question,
            plain: Vec::new(),
            changed: None,
            heard: None,
            ran_tools: false,
            tools_running: Arc::new(watch::Sender::new(false)),
            basis: PromptPrefix::default(),
            citations: Citations::default(),
            repeats: Repeats::default(),
            usage: Usage::default(),
            cost_micros: Some(0),
            snapshot,
            took: None,
            open_turn: None,
            output: ModelOutput::default(),
            partial: String::new(),
            text_redactor: StreamRedactor::new(agent.redactor.clone()),
            reasoning_redactor: StreamRedactor::new(agent.redactor.clone()),
            arguments: ArgumentStream::new(agent.redactor.clone()),
        }
    }

    /// Runs turns until the model answers, the query is stopped, or the turn limit is reached.
    async fn run_turns(&mut self) -> Result<AgentResponse, QueryError> {
        self.session_resolved().await?;
        self.query_received().await?;
        self.prepare().await?;
        self.preload().await?;
        let most = self.role.max_turns(self.agent);
        for turn in 1..=most {
            self.take_steering(turn).await?;
            let input = self.assemble(turn).await?;
            let input = self.apply_request_hooks(input).await?;
            let input = self.compact_if_due(turn, input).await?;
            let input = self.deliver_notices(turn, input).await?;
            let input = self.fit_window(turn, input).await?;
            let output = self.call_model(turn, input).await?;
            let output = self.apply_response_hooks(output).await?;
            self.account(turn, &output)?;
            if !output.calls.is_empty() {
                self.run_tools(turn, output).await?;
                continue;
            }
            let output = output.checked(&self.model)?;
            if let Some(response) = self.complete(turn, output).await? {
                return Ok(response);
            }
            // The user sent a message while the model was answering. The answer is stored, and
            // another turn includes the message.
        }
        self.answer_without_tools(most).await
    }

    /// The last request at the turn limit: the model answers from what is there, without tools.
    async fn answer_without_tools(&mut self, most: u32) -> Result<AgentResponse, QueryError> {
        let turn = most + 1;
        self.take_steering(turn).await?;
        let notice = format!("{NOTICES}\n- [limit] {LAST_TURN}");
        let appended = self.query.append_own(turn, ExchangeOrigin::Notice, notice);
        let appended = appended.await?;
        self.stored(&appended);
        let mut input = self.assemble(turn).await?;
        input.options.without_tools = true;
        let input = self.apply_request_hooks(input).await?;
        let output = self.call_model(turn, input).await?;
        let mut output = self.apply_response_hooks(output).await?;
        self.account(turn, &output)?;
        // A model that calls tools all the same gets no further turn.
        output.calls.clear();
        self.complete_at_limit(turn, output).await
    }
}

/// What the model reads at the turn limit.
const LAST_TURN: &str = "This is the last turn of this query, and tools are no longer available. \
    Answer the question now from what you have. Say what is missing or uncertain.";
