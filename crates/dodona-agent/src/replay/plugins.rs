//! What plugins made of a query, asked of the plugins of now.

use std::collections::HashMap;
use std::sync::Arc;

use dodona_llm::{ModelRequest, RequestDigest};
use dodona_plugin::hooks::{Hooks, point};
use dodona_plugin::store::journal::{EventFilter, ReadPosition};
use dodona_plugin::{CallCtx, CallError};
use dodona_proto::hook::{ModelCall, ModelOptionsEdit, ModelResponse, ToolPending};
use dodona_proto::{Message, MethodName, NOTICES, QuerySnapshot, ToolCall};
use serde::Deserialize;

use crate::agent::Agent;
use crate::conversation::{Ending, Owner, RecordedQuery, RecordedTurn};

/// The event that has how a query stood before a request.
const TURN_START: &str = "agent.turn.start";

/// The plugins of now, and how the query stood then.
pub(super) struct Plugins<'a> {
    ctx: &'a CallCtx,
    hooks: Arc<Hooks>,
    model: String,
    /// By turn. A journal that no longer has one cannot show it to anybody.
    snapshots: HashMap<u32, Arc<QuerySnapshot>>,
}

impl<'a> Plugins<'a> {
    pub(super) async fn then(
        agent: &Agent,
        ctx: &'a CallCtx,
        owner: &Owner,
        recorded: &RecordedQuery,
    ) -> Result<Self, CallError> {
        Ok(Self {
            ctx,
            hooks: agent.host.hooks(),
            model: recorded.info.model.clone().unwrap_or_default(),
            snapshots: snapshots(agent, owner, recorded).await?,
        })
    }

    /// Shows a turn to those that may change it. Answers with what they do not do as they did.
    pub(super) async fn turn(
        &self,
        turn: &RecordedTurn,
        request: ModelRequest,
    ) -> Result<Result<(), String>, CallError> {
        let Some(snapshot) = self.snapshots.get(&turn.turn) else {
            return Ok(Ok(()));
        };
        let sent = self.request(snapshot, request).await;
        if let Some(what) = changed(turn, &sent)? {
            return Ok(Err(what));
        }
        if let Some(what) = self.response(snapshot, turn).await {
            return Ok(Err(what));
        }
        Ok(self.tools(snapshot, turn).await)
    }

    /// The request as plugins leave it. What waited for the model was added after they saw it.
    async fn request(
        &self,
        snapshot: &Arc<QuerySnapshot>,
        mut request: ModelRequest,
    ) -> ModelRequest {
        let is_notice = |message: &mut Message| match message {
            Message::User { content } => content.starts_with(NOTICES),
            _ => false,
        };
        let delivered = request.messages.pop_if(is_notice);
        let shown = ModelCall {
            snapshot: Arc::clone(snapshot),
            model: self.model.clone(),
            system: request.system.as_str().into(),
            messages: std::mem::take(&mut request.messages),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            options: ModelOptionsEdit {
                temperature: request.options.temperature,
                max_output_tokens: request.options.max_output_tokens,
            },
        };
        let made = self
            .hooks
            .ask_again::<point::PreLlmCall>(shown)
            .await
            .payload;
        request.messages = made.messages;
        request.messages.extend(delivered);
        request.tools.retain(|tool| made.tools.contains(&tool.name));
        request.options.temperature = made.options.temperature;
        request.options.max_output_tokens = made.options.max_output_tokens;
        request
    }

    /// Whether plugins make of an answer what they made of it.
    async fn response(&self, snapshot: &Arc<QuerySnapshot>, turn: &RecordedTurn) -> Option<String> {
        let Some(Message::Assistant {
            content,
            tool_calls,
            ..
        }) = &turn.said
        else {
            return None;
        };
        let (heard, _) = super::heard(turn)?;
        let shown = ModelResponse {
            snapshot: Arc::clone(snapshot),
            model: self.model.clone(),
            text: heard.text,
            calls: heard.calls,
        };
        let made = self
            .hooks
            .ask_again::<point::PostLlmResponse>(shown)
            .await
            .payload;
        let wants = |calls: &[ToolCall]| -> Vec<(String, String)> {
            let call = |call: &ToolCall| (call.name.clone(), call.arguments.to_string());
            calls.iter().map(call).collect()
        };
        let same = made.text == *content && wants(&made.calls) == wants(tool_calls);
        (!same).then(|| "plugins make something else of the model's answer".to_owned())
    }

    /// Whether a gate refuses a tool that it let run.
    async fn tools(
        &self,
        snapshot: &Arc<QuerySnapshot>,
        turn: &RecordedTurn,
    ) -> Result<(), String> {
        let ran = (turn.calls.iter()).filter(|call| call.ending != Some(Ending::Denied));
        for call in ran {
            let Some(pending) = self.pending(snapshot, &call.name, &call.arguments) else {
                continue;
            };
            let judged = self
                .hooks
                .ask_again::<point::PreToolExecute>(pending)
                .await
                .payload;
            if let Some((plugin, why)) = judged.denied {
                let tool = &call.name;
                return Err(format!(
                    "the plugin `{plugin}` refuses the tool `{tool}`: {why}"
                ));
            }
        }
        Ok(())
    }

    fn pending(
        &self,
        snapshot: &Arc<QuerySnapshot>,
        tool: &str,
        arguments: &serde_json::Map<String, serde_json::Value>,
    ) -> Option<ToolPending> {
        let known = self.ctx.methods();
        let named = |name: &MethodName| name.as_str().replace('.', "_") == tool;
        let method = known
            .iter()
            .find(|method| named(&method.name))?
            .name
            .clone();
        Some(ToolPending {
            call_id: self.ctx.call_id,
            path: self.ctx.path.join(method.plugin()).ok()?,
            method,
            tool_name: tool.to_owned(),
            arguments: serde_json::Value::Object(arguments.clone()),
            user: self.ctx.principal.user.clone(),
            surface: self.ctx.principal.surface,
            project: self.ctx.project.as_ref().map(|project| project.id.clone()),
            snapshot: Some(Arc::clone(snapshot)),
            ask: None,
            answer: None,
            denied: None,
        })
    }
}

/// What is not as plugins left the request then.
fn changed(turn: &RecordedTurn, sent: &ModelRequest) -> Result<Option<String>, CallError> {
    let was = match &turn.sent.changed {
        Some(changed) => super::read_digest(changed)?,
        None => super::digest(turn)?,
    };
    let difference = was.first_difference(&RequestDigest::of(sent));
    Ok(difference.map(|difference| format!("plugins make another request: {difference}")))
}

async fn snapshots(
    agent: &Agent,
    owner: &Owner,
    recorded: &RecordedQuery,
) -> Result<HashMap<u32, Arc<QuerySnapshot>>, CallError> {
    #[derive(Deserialize)]
    struct Started {
        snapshot: QuerySnapshot,
    }
    let filter = EventFilter {
        project: Some(owner.project.clone()),
        kinds: vec![TURN_START.to_owned()],
        since: Some(recorded.info.started_at),
        until: recorded.info.ended_at,
        ..EventFilter::of(owner.user.clone())
    };
    let (mut found, mut place) = (HashMap::new(), ReadPosition::Beginning);
    loop {
        let page = agent.history.page(filter.clone(), place).await?;
        let Some(last) = page.last() else {
            return Ok(found);
        };
        place = ReadPosition::After(last.position);
        for event in &page {
            if let Ok(Started { snapshot }) = serde_json::from_str(&event.payload)
                && snapshot.query_id == recorded.info.id.as_str()
            {
                found.insert(snapshot.turn.iteration_count, Arc::new(snapshot));
            }
        }
    }
}
