//! After a crash: the streams of queries and their conversations say the same.
//!
//! A question is acknowledged once its stream is in the journal, and stored in its conversation a
//! moment later. An answer is stored in its conversation first, and sent a moment later. A process
//! that is killed in one of these moments leaves the two disagreeing; the next one repairs that here,
//! before the first call.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_plugin::TrustedFolder;
use dodona_plugin::store::journal::InterruptedStream;
use dodona_proto::CallId;
use serde_json::Value;

use crate::agent::Agent;
use crate::chat;
use crate::conversation::{ConversationError, DEFAULT_AGENT, NewQuery, Owner, QueryState};

/// The method whose streams are queries.
const CHAT: &str = "agent.chat";

/// Why a query ended that never ran.
const NEVER_RAN: &str = "the server ended before the question was worked on";

/// The item that ends a stream of a query.
const RESPONSE: &str = "AgentResponse";

/// Makes conversations and streams consistent. What cannot be repaired is logged.
pub(crate) async fn reconcile(agent: &Arc<Agent>) {
    let interrupted = agent.history.interrupted();
    let queries = interrupted
        .into_iter()
        .filter(|stream| stream.method.as_str() == CHAT);
    for stream in queries {
        let id = stream.stream;
        if let Err(error) = one(agent, stream).await {
            tracing::warn!(stream = %id, %error, "a stream and its conversation may disagree");
        }
    }
    if let Err(error) = agent.conversations.forget_unsent().await {
        tracing::warn!(%error, "stored answers of earlier streams were not removed");
    }
}

async fn one(agent: &Arc<Agent>, stream: InterruptedStream) -> Result<(), ConversationError> {
    let call = stream.stream.root_call();
    if let Some(response) = agent.conversations.unsent(call).await? {
        let history = &agent.history;
        let completed = history.complete_interrupted(stream.stream, RESPONSE, response);
        if let Err(error) = completed.await {
            tracing::warn!(stream = %stream.stream, %error, "an answer was not added to its stream");
        }
        return Ok(());
    }
    match agent.conversations.has_query_of(call).await? {
        true => Ok(()),
        false => keep_question(agent, call, stream).await,
    }
}

/// Stores a question that was acknowledged and is in no conversation.
async fn keep_question(
    agent: &Arc<Agent>,
    call: CallId,
    stream: InterruptedStream,
) -> Result<(), ConversationError> {
    let text = |name: &str| stream.params.get(name).and_then(Value::as_str);
    let (Some(question), Some(project)) = (text("message"), stream.project.clone()) else {
        return Ok(());
    };
    let owner = Owner {
        user: stream.user.clone(),
        project,
    };
    if let Some(name) = text("agent_id").filter(|name| *name != DEFAULT_AGENT) {
        let folder = TrustedFolder::Agents;
        let brought = agent.brought_by(Some(&owner.project), folder).await;
        // A question to an agent that does not exist fails: it must not create a conversation.
        if agent.definitions.get(name, &brought).is_err() {
            return Ok(());
        }
    }
    let model = match agent.model(text("model")) {
        Ok(model) => model,
        // It is not among the settings any more, and only its name is needed.
        Err(_) => agent.options.models.default_model(),
    };
    let new = NewQuery {
        context: text("context_id").map(str::to_owned),
        agent: text("agent_id").map(str::to_owned),
        question: question.to_owned(),
        model: model.name().to_owned(),
        counter: chat::counter(&model),
        tools: BTreeSet::new(),
        token_budget: agent.options.token_budget,
        call: Some(call),
    };
    let query = agent.conversations.begin_query(&owner, new).await?;
    query.finish(QueryState::Interrupted, Some(NEVER_RAN)).await
}
