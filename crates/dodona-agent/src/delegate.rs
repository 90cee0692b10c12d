//! `agent.delegate`: a task for another agent, with its own prompt, tools, budget and path.

use std::fmt::Write;

use dodona_plugin::{CallCtx, CallError, ErrorCode, TrustedFolder};
use dodona_proto::{Source, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::Agent;
use crate::chat::{self, AgentResponse, ChatParams, Role};
use crate::conversation::{ContextId, NewContext, Owner};

/// How many agents may be above each other, the main one not counted.
const DEEPEST: usize = 3;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DelegateParams {
    /// Which agent, such as `librarian`.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// The task. The agent sees nothing of this conversation, so include all that it needs.
    #[schemars(length(min = 1, max = 16384))]
    task: String,
    /// Files to look at.
    #[serde(default)]
    #[schemars(length(max = 100))]
    files: Vec<String>,
    /// The folder it is about.
    folder: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DelegateResult {
    /// What it reports; [1] is the first of the sources.
    text: String,
    /// What it cites.
    sources: Vec<CitedSource>,
    /// How many times its model was asked.
    turns: u32,
    /// What that took.
    usage: Usage,
    /// What that cost, in millionths of a dollar, where prices are known.
    cost_micros: Option<u64>,
    /// Its query: what it changed in notes is undone by it, as one step.
    query_id: String,
    /// The conversation that it was.
    context_id: ContextId,
}

/// A source with its number in the report.
#[derive(Serialize, JsonSchema)]
struct CitedSource {
    number: usize,
    source: Source,
}

/// Has another agent do a task, and waits for its report.
pub(crate) async fn delegate(
    agent: &Agent,
    ctx: &CallCtx,
    p: DelegateParams,
) -> Result<DelegateResult, CallError> {
    let owner = Owner::of(ctx)?;
    let project = agent.brought(ctx, TrustedFolder::Agents).await;
    let definition = agent.definitions.get(&p.name, &project)?;
    let (above, depth) = agent.delegations.above(&ctx.call_id);
    if depth >= DEEPEST {
        let message = format!("agents delegate at most {DEEPEST} deep");
        return Err(CallError::new(ErrorCode::TooDeep, message).hint("do it yourself"));
    }
    let role = Role::of(definition).within(above);
    let context = context(agent, &owner, &role).await?;
    let chat = ChatParams {
        agent_id: None,
        message: task(&p),
        context_id: Some(context.to_string()),
        model: None,
        tools: true,
    };
    let path_name = role.path_name();
    let mut report = None;
    let kept = &mut report;
    let worked = ctx.scope(&path_name, |inner| async move {
        *kept = Some(chat::answer_as(agent, &inner, &inner, chat, role).await?);
        Ok(json!(null))
    });
    let worked = worked.await;
    // It is over, however it ended; what was said in it can still be read.
    if let Err(error) = agent.conversations.close(&owner, context.as_str()).await {
        tracing::warn!(%context, %error, "the conversation of a delegated task stays open");
    }
    worked?;
    let report = report.ok_or_else(|| CallError::new(ErrorCode::Internal, "there is no report"))?;
    Ok(result(report, context))
}

fn result(report: AgentResponse, context: ContextId) -> DelegateResult {
    let sources = report.sources.into_iter().zip(1..);
    DelegateResult {
        text: report.text,
        sources: sources
            .map(|(source, number)| CitedSource { number, source })
            .collect(),
        turns: report.turns,
        usage: report.usage,
        cost_micros: report.cost_micros,
        query_id: report.query_id,
        context_id: context,
    }
}

async fn context(agent: &Agent, owner: &Owner, role: &Role) -> Result<ContextId, CallError> {
    let usual = NewContext::named(None);
    let model = agent.model(role.model())?;
    let budget = role.token_budget(agent, &model);
    let new = NewContext {
        agent_id: role.name().to_owned(),
        token_budget: budget.unwrap_or(usual.token_budget),
        is_delegated: true,
        ..usual
    };
    Ok(agent.conversations.create(owner, new).await?.id)
}

/// What the agent is asked.
fn task(p: &DelegateParams) -> String {
    let mut text = p.task.trim().to_owned();
    if let Some(folder) = p.folder.as_ref().filter(|folder| !folder.is_empty()) {
        let _ = write!(text, "\n\nIt is about the folder `{folder}`.");
    }
    if !p.files.is_empty() {
        let files: Vec<String> = p.files.iter().map(|file| format!("`{file}`")).collect();
        let _ = write!(text, "\n\nLook at {}.", files.join(", "));
    }
    text
}
