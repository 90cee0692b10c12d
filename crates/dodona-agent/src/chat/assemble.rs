//! What a model is sent.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use dodona_llm::{BasisDigest, Model, ModelOptions, ModelRequest, ToolOffer};
use dodona_plugin::hooks::Hooks;
use dodona_plugin::hooks::point::SystemPromptExtend;
use dodona_plugin::{CallCtx, CallError, ErrorCode, TrustedFolder};
use dodona_proto::hook::SystemPrompt;
use dodona_proto::{
    ExchangeRange, HistorySnapshot, Message, PluginEffect, QuerySnapshot, TurnSnapshot,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice::Choice;
use super::cite::Citations;
use super::ending::QueryError;
use super::preload::{self, Preloading};
use super::role::Role;
use super::tools::Toolbox;
use super::{QueryRun, addressee, history};
use crate::agent::Agent;
use crate::conversation::{
    ContextId, ExchangeOrigin, KeyDecision, Owner, Query, QueryId, RecordedQuery, RecordedTurn,
};
use crate::definition::Definition;
use crate::prompt::{AgentVariable, InstructionsVariable, Variables};

/// What is the same in every request of a query, byte for byte, so that providers can cache it.
#[derive(Default)]
pub(super) struct PromptPrefix {
    system: String,
    tools: Vec<ToolOffer>,
    /// The tokens of both.
    pub(super) tokens: u64,
    /// What tells both from others.
    pub(super) digest: BasisDigest,
}

/// What is known where no query has begun.
pub(crate) fn snapshot_before(
    agent: &Agent,
    ctx: &CallCtx,
    context: Option<&ContextId>,
) -> QuerySnapshot {
    QuerySnapshot {
        query_id: String::new(),
        context_id: context.map(ToString::to_string).unwrap_or_default(),
        user: ctx.principal.user.clone(),
        project: ctx.project.as_ref().map(|project| project.id.clone()),
        turn: TurnSnapshot {
            number: 0,
            iteration_count: 0,
            max_iterations: agent.options.max_turns,
            token_usage: 0.0,
            context_usage: 0.0,
        },
        tokens_used: 0,
        token_budget: agent.options.token_budget.unwrap_or_default(),
        history: HistorySnapshot::default(),
        exchanges: ExchangeRange::default(),
    }
}

/// What is known before the first turn.
pub(super) fn first_snapshot(agent: &Agent, ctx: &CallCtx, query: &Query) -> QuerySnapshot {
    let begun = query.begun();
    let before = snapshot_before(agent, ctx, Some(query.context()));
    QuerySnapshot {
        query_id: query.id().to_string(),
        turn: TurnSnapshot {
            number: query.turns_before(),
            ..before.turn
        },
        tokens_used: begun.tokens_used,
        token_budget: begun.token_budget,
        history: HistorySnapshot {
            session_started: Some(query.session_started()),
            ..HistorySnapshot::default()
        },
        exchanges: ExchangeRange {
            from: begun.position,
            to: begun.position,
        },
        ..before
    }
}

impl QueryRun<'_> {
    /// Makes what is the same in every request, and finds what earlier queries cited.
    pub(super) async fn prepare(&mut self) -> Result<(), QueryError> {
        let decisions = self.query.take_decisions();
        self.append_remembered(0, &decisions).await?;
        let (agent, ctx, hooks) = (self.agent, self.ctx, &self.hooks);
        let asked = Asked {
            context: self.query.context(),
            query: Some(self.query.id()),
        };
        let now = Timestamp::now();
        let (system, effects) =
            system(agent, ctx, &self.role, hooks, asked, decisions, now).await?;
        self.apply_effects(effects).await?;
        let limit = tools_limit(agent, &self.model);
        self.choice = Choice::of(&self.toolbox, limit, &self.role);
        (self.choice).count(&self.toolbox, &self.model, &agent.tool_counts);
        self.basis = basis(self, system);
        let sources = agent.conversations.sources(self.query.context()).await?;
        self.citations = Citations::of(&self.query.window().await?, sources);
        Ok(())
    }

    /// Adds what is remembered in the conversation and is not shown in its window: what is new since
    /// the last question, or everything after a compaction. It is appended and not part of the system
    /// prompt, so that the beginning of every request stays the same.
    pub(super) async fn append_remembered(
        &mut self,
        turn: u32,
        decisions: &[KeyDecision],
    ) -> Result<(), QueryError> {
        // A model that quotes searches for the last message.
        if decisions.is_empty() || self.model.quotes() {
            return Ok(());
        }
        let window = self.query.window().await?;
        if let Some(text) = remembered_text(decisions, &window) {
            let origin = ExchangeOrigin::Remembered;
            let appended = self.query.append_own(turn, origin, text).await?;
            self.stored(&appended);
        }
        Ok(())
    }

    /// The same after a compaction, with what was remembered in the meantime.
    pub(super) async fn append_remembered_again(&mut self, turn: u32) -> Result<(), QueryError> {
        let decisions = decisions(self.agent, self.ctx, self.query.context()).await?;
        self.append_remembered(turn, &decisions).await
    }

    /// How many tokens the messages of a request may have: the budget of the conversation, or what
    /// the system prompt, the tools and the answer leave of the model's window.
    pub(super) fn room(&self) -> u64 {
        let budget = self.snapshot.token_budget;
        match self.model.context_window() {
            None => budget,
            Some(window) => budget.min(history_room(window, self.basis.tokens)),
        }
    }

    /// Makes a request fit into the model's window by shortening the conversation. What still does
    /// not fit is an error for the user.
    pub(super) async fn fit_window(
        &mut self,
        turn: u32,
        mut request: ModelRequest,
    ) -> Result<ModelRequest, QueryError> {
        let Some(window) = self.model.context_window() else {
            return Ok(request);
        };
        let room = u64::from(window).saturating_sub(answer_room(window));
        if self.request_tokens() <= room {
            return Ok(request);
        }
        self.shorten(turn, &mut request).await?;
        let tokens = self.request_tokens();
        match tokens <= room {
            true => Ok(request),
            false => Err(window_exceeded(self.model.name(), tokens, window).into()),
        }
    }

    /// The tokens of the newest request.
    fn request_tokens(&self) -> u64 {
        self.basis.tokens + self.snapshot.tokens_used
    }

    /// The request of a turn. The snapshot is exact from here on.
    pub(super) async fn assemble(&mut self, turn: u32) -> Result<ModelRequest, QueryError> {
        let mut messages = self.query.window().await?;
        self.toolbox.wrap_calls(&mut messages, &self.basis.tools);
        self.keep_snapshot(turn, &messages);
        Ok(ModelRequest {
            system: self.basis.system.clone(),
            messages,
            tools: self.basis.tools.clone(),
            options: ModelOptions::default(),
        })
    }

    fn keep_snapshot(&mut self, turn: u32, messages: &[Message]) {
        let snapshot = &mut self.snapshot;
        snapshot.turn.number = self.query.turns_before() + u64::from(turn);
        snapshot.turn.iteration_count = turn;
        snapshot.turn.token_usage = part(snapshot.tokens_used, snapshot.token_budget);
        // Without a known window there is no share of it.
        snapshot.turn.context_usage = match self.model.context_window() {
            Some(window) => part(self.basis.tokens + snapshot.tokens_used, u64::from(window)),
            None => 0.0,
        };
        snapshot.history.message_count = messages.len() as u64;
        snapshot.history.messages = Arc::new(Value::Array(history::messages(messages)));
        snapshot.exchanges = self.query.range();
    }
}

/// The number of tools above which a model is offered the core only. A model that quotes is a program
/// and reads no descriptions: it uses the searches that it is offered.
fn tools_limit(agent: &Agent, model: &Arc<dyn Model>) -> usize {
    match model.quotes() {
        true => usize::MAX,
        false => agent.options.tools_limit,
    }
}

/// What an answer and the tokens that a provider adds to a request may take of a window.
fn answer_room(window: u32) -> u64 {
    u64::from(window / 8).min(4_096)
}

fn window_exceeded(model: &str, tokens: u64, window: u32) -> CallError {
    let message = format!(
        "the request has {tokens} tokens, and the context window of `{model}` has {window}, part of which the answer needs"
    );
    CallError::new(ErrorCode::TooLarge, message).hint(format!(
        "ask a shorter question, start a new conversation, use a model with a larger window, or correct `models.{model}.context_window`"
    ))
}

/// How many tokens of a window are left for messages.
fn history_room(window: u32, basis: u64) -> u64 {
    u64::from(window)
        .saturating_sub(basis)
        .saturating_sub(answer_room(window))
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
fn part(some: u64, of: u64) -> f64 {
    some as f64 / of.max(1) as f64
}

fn basis(work: &QueryRun<'_>, system: String) -> PromptPrefix {
    let tools = work.choice.offers(&work.toolbox);
    let counts = &work.agent.tool_counts;
    let told = work.choice.tokens(&work.toolbox, &work.model, counts);
    let tokens = work.model.counter().count(&system) as u64 + told;
    PromptPrefix {
        digest: BasisDigest::of(&system, &tools),
        system,
        tools,
        tokens,
    }
}

/// What surrounded the messages of a query, as it would be made now.
pub(crate) struct Frame {
    pub(crate) system: String,
    toolbox: Toolbox,
    pub(crate) tools: Vec<ToolOffer>,
}

impl Frame {
    /// With what had been decided when the query began.
    pub(crate) async fn then(
        agent: &Agent,
        ctx: &CallCtx,
        role: &Role,
        recorded: &RecordedQuery,
        offers_tools: bool,
    ) -> Result<Self, CallError> {
        let hooks = agent.host.hooks();
        let asked = Asked {
            context: &recorded.context,
            query: Some(&recorded.info.id),
        };
        let mut decisions = decisions(agent, ctx, &recorded.context).await?;
        decisions.retain(|decision| decision.created_at <= recorded.info.started_at);
        let then = recorded.info.started_at;
        let (system, _) = system(agent, ctx, role, &hooks, asked, decisions, then).await?;
        let toolbox = Toolbox::load(ctx, offers_tools, &hooks, role).await;
        let limit = match agent.model(recorded.info.model.as_deref()) {
            Ok(model) => tools_limit(agent, &model),
            Err(_) => agent.options.tools_limit,
        };
        let choice = Choice::of(&toolbox, limit, role);
        Ok(Self {
            system,
            tools: choice.offers(&toolbox),
            toolbox,
        })
    }

    /// The messages of a turn as they were sent, without what plugins changed.
    pub(crate) fn messages(
        &self,
        turn: &RecordedTurn,
        question: &str,
        preloaded: Option<&str>,
    ) -> Vec<Message> {
        let mut messages = messages_then(turn, question, preloaded);
        self.toolbox.wrap_calls(&mut messages, &self.tools);
        messages
    }
}

/// The messages of a turn as they are stored, with what had been looked up for the question.
pub(crate) fn messages_then(
    turn: &RecordedTurn,
    question: &str,
    preloaded: Option<&str>,
) -> Vec<Message> {
    let mut messages = turn.messages.clone();
    preload::add(&mut messages, question, preloaded);
    messages
}

/// What a system prompt is made for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    context: &'a ContextId,
    query: Option<&'a QueryId>,
}

/// How a message begins that has what was remembered.
const REMEMBERED: &str = "Remembered in this conversation and still valid:";

/// What is remembered and not shown in the window. `None` if everything is shown.
fn remembered_text(decisions: &[KeyDecision], window: &[Message]) -> Option<String> {
    let shown = window.iter().filter_map(|message| match message {
        Message::User { content } if content.starts_with(REMEMBERED) => Some(content.as_str()),
        _ => None,
    });
    let shown: Vec<&str> = shown.flat_map(str::lines).collect();
    let mut lines = decisions.iter().map(|decision| line(&decision.text));
    let missing: Vec<String> = lines
        .by_ref()
        .filter(|line| !shown.contains(&line.as_str()))
        .collect();
    (!missing.is_empty()).then(|| format!("{REMEMBERED}\n{}", missing.join("\n")))
}

/// One remembered text on one line.
fn line(text: &str) -> String {
    format!(
        "- {}",
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

/// What has been decided in a conversation.
async fn decisions(
    agent: &Agent,
    ctx: &CallCtx,
    context: &ContextId,
) -> Result<Vec<KeyDecision>, CallError> {
    let owner = Owner::of(ctx)?;
    let conversations = &agent.conversations;
    Ok(conversations
        .decisions(&owner, Some(context.as_str()))
        .await?)
}

/// The system prompt of a conversation, as plugins left it, and what they want beside.
async fn system(
    agent: &Agent,
    ctx: &CallCtx,
    role: &Role,
    hooks: &Hooks,
    asked: Asked<'_>,
    decisions: Vec<KeyDecision>,
    at: Timestamp,
) -> Result<(String, Vec<PluginEffect>), CallError> {
    let decisions = decisions.into_iter().map(|decision| decision.text);
    let variables = variables(agent, ctx, role, decisions.collect(), at).await;
    let prompt = role.prompt(agent, ctx, &variables).await?;
    Ok(extended(ctx, hooks, Some(asked), prompt).await)
}

async fn extended(
    ctx: &CallCtx,
    hooks: &Hooks,
    asked: Option<Asked<'_>>,
    prompt: String,
) -> (String, Vec<PluginEffect>) {
    if !hooks.has_subscribers::<SystemPromptExtend>() {
        return (prompt, Vec::new());
    }
    let shown = SystemPrompt {
        context_id: asked.map(|asked| asked.context.to_string()),
        query_id: asked.and_then(|asked| asked.query).map(ToString::to_string),
        user: ctx.principal.user.clone(),
        project: ctx.project.as_ref().map(|project| project.id.clone()),
        prompt,
    };
    let fired = hooks.fire::<SystemPromptExtend>(shown).await;
    (fired.payload.prompt, fired.effects)
}

/// What the project of a call is called.
pub(super) fn project_name(ctx: &CallCtx) -> Option<&str> {
    let root = ctx.project.as_ref().map(|project| project.root.as_path());
    root.and_then(Path::file_name).and_then(OsStr::to_str)
}

async fn variables<'a>(
    agent: &Agent,
    ctx: &'a CallCtx,
    role: &'a Role,
    decisions: Vec<String>,
    at: Timestamp,
) -> Variables<'a> {
    Variables {
        date: at.to_zoned(TimeZone::system()).date().to_string(),
        folders: top_level(ctx).await,
        instructions: instructions(agent, ctx).await,
        agent: role.name(),
        project: project_name(ctx),
        decisions,
        agents: match role.is_main() {
            true => agents(agent, ctx).await,
            false => Vec::new(),
        },
    }
}

/// The instructions of the project, if somebody trusts it.
async fn instructions(agent: &Agent, ctx: &CallCtx) -> Option<InstructionsVariable> {
    let project = ctx.project.as_ref()?;
    let found = agent.trust.instructions(&project.id).await?;
    let mut text = found.text;
    if found.bytes > text.len() as u64 + 1 {
        let shown = text.len();
        text.push_str(&format!(
            "\n[{shown} of {} bytes of {}; read the rest with code_read]",
            found.bytes, found.file
        ));
    }
    Some(InstructionsVariable {
        path: found.file,
        text,
    })
}

/// The most names of the top level that a prompt has.
const MAX_NAMES: usize = 40;

/// Folders that tools generate and that say nothing about a project.
const GENERATED: [&str; 6] = [
    "target",
    "node_modules",
    "dist",
    "build",
    "__pycache__",
    "venv",
];

/// The names at the top level of the project, folders first. Hidden and generated ones are left
/// out, and so are names that could be read as more than a name.
async fn top_level(ctx: &CallCtx) -> Vec<String> {
    let Some(root) = ctx.project.as_ref().map(|project| project.root.clone()) else {
        return Vec::new();
    };
    let listing = tokio::task::spawn_blocking(move || names_in(&root));
    listing.await.unwrap_or_default()
}

fn names_in(root: &Path) -> Vec<String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_shown = name.len() <= 60
            && !name.starts_with('.')
            && !GENERATED.contains(&name.as_str())
            && name.chars().all(is_plain);
        match entry.file_type() {
            Ok(kind) if is_shown && kind.is_dir() => folders.push(format!("{name}/")),
            Ok(kind) if is_shown && kind.is_file() => files.push(name),
            _ => {}
        }
    }
    // A stable order: the same folder makes the same prompt.
    folders.sort();
    files.sort();
    folders.into_iter().chain(files).take(MAX_NAMES).collect()
}

/// Whom the main agent can delegate to.
async fn agents(agent: &Agent, ctx: &CallCtx) -> Vec<AgentVariable> {
    let project = agent.brought(ctx, TrustedFolder::Agents).await;
    let (all, problems) = agent.definitions.load(&project);
    for problem in problems {
        tracing::warn!(%problem, "an agent is not defined");
    }
    let variable = |definition: Definition| AgentVariable {
        name: definition.name,
        description: definition.description,
    };
    all.into_values().map(variable).collect()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PromptParams {
    /// The name of the agent that would answer. Default: the agent of the conversation, or `oracle`.
    #[schemars(length(min = 1, max = 50))]
    agent_id: Option<String>,
    /// The question that would be asked; without one what is there already.
    #[schemars(length(max = 65536))]
    message: Option<String>,
    /// The conversation, by id or name; the default one without.
    context_id: Option<String>,
    /// The model, by its name in the configuration; the default one without.
    model: Option<String>,
}

/// A request as it would be sent.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PromptShown {
    /// The agent that would answer.
    agent_id: String,
    /// Which model.
    model: String,
    /// How it should behave.
    system: String,
    /// The conversation.
    messages: Vec<Value>,
    /// What it is told that it may ask for.
    tools: Vec<Value>,
    /// How many tools there are: those that it is not told of it can find.
    tools_known: usize,
    /// The tokens of each part.
    tokens: PromptTokens,
}

#[derive(Serialize, JsonSchema)]
struct PromptTokens {
    system: u64,
    messages: u64,
    tools: u64,
    /// What the tools would take beside that it is not told of.
    tools_saved: u64,
    total: u64,
}

/// What would be sent if a question were asked now; nothing is.
pub(crate) async fn show(
    agent: &Agent,
    ctx: &CallCtx,
    p: PromptParams,
) -> Result<PromptShown, CallError> {
    let owner = Owner::of(ctx)?;
    let asked = p.context_id.as_deref();
    let role = addressee(agent, ctx, p.agent_id.as_deref(), asked).await?;
    let model = agent.model(p.model.as_deref().or(role.model()))?;
    let known = agent.conversations.find(&owner, asked, role.name()).await?;
    let hooks = agent.host.hooks();
    let ((system, _), mut messages) = match &known {
        Some(id) => {
            let asked = Asked {
                context: id,
                query: None,
            };
            let decisions = decisions(agent, ctx, id).await?;
            (
                system(
                    agent,
                    ctx,
                    &role,
                    &hooks,
                    asked,
                    decisions,
                    Timestamp::now(),
                )
                .await?,
                agent.conversations.window(&owner, id.as_str()).await?,
            )
        }
        None => {
            let variables = variables(agent, ctx, &role, Vec::new(), Timestamp::now()).await;
            let prompt = role.prompt(agent, ctx, &variables).await?;
            (extended(ctx, &hooks, None, prompt).await, Vec::new())
        }
    };
    let toolbox = Toolbox::load(ctx, true, &hooks, &role).await;
    if let Some(question) = p.message {
        let preloading = Preloading {
            agent,
            ctx,
            hooks: &hooks,
            model: &model,
            snapshot: Arc::new(snapshot_before(agent, ctx, known.as_ref())),
            question: &question,
            offers_tools: role.is_main() && !toolbox.is_empty(),
            max_tokens: preload::MAX_TOKENS,
        };
        let sources = match &known {
            Some(id) => agent.conversations.sources(id).await?,
            None => Vec::new(),
        };
        let mut citations = Citations::of(&messages, sources);
        let found = preloading.run(&mut citations).await;
        let remembered = match &known {
            Some(id) => remembered_text(&decisions(agent, ctx, id).await?, &messages),
            None => None,
        };
        let added = [Some(question.clone()), remembered, found.text];
        let added = added.into_iter().flatten();
        messages.extend(added.map(|content| Message::User { content }));
    }
    let mut choice = Choice::of(&toolbox, tools_limit(agent, &model), &role);
    choice.count(&toolbox, &model, &agent.tool_counts);
    let tools = choice.offers(&toolbox);
    toolbox.wrap_calls(&mut messages, &tools);
    let counter = model.counter();
    let sum = |counts: &mut dyn Iterator<Item = usize>| counts.sum::<usize>() as u64;
    let tokens = PromptTokens {
        system: counter.count(&system) as u64,
        messages: sum(&mut messages
            .iter()
            .map(|message| counter.count_message(message))),
        tools: sum(&mut tools.iter().map(|tool| counter.count_tool(tool))),
        tools_saved: choice.told().saved,
        total: 0,
    };
    let tokens = PromptTokens {
        total: tokens.system + tokens.messages + tokens.tools,
        ..tokens
    };
    Ok(PromptShown {
        agent_id: role.name().to_owned(),
        model: model.name().to_owned(),
        system,
        messages: messages.iter().map(as_json).collect(),
        tools: tools.iter().map(as_json).collect(),
        tools_known: choice.told().known,
        tokens,
    })
}

fn as_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
