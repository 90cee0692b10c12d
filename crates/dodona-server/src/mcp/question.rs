//! What a call asks its client before it goes on.
//!
//! Two things do. A call that waits for a person's agreement asks the person in front of the
//! client, if that can show a form and its user may agree; any other way to answer stays open. And
//! a method can ask for whatever MCP lets a server ask for, with a `ClientRequest`.

use dodona_proto::{
    ApprovalId, ApprovalRequest, CallError, ClientRequest, ErrorCode, HubStreamItem, ItemBody,
    MethodName,
};
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ElicitationCapability, InputRequest, InputRequests, InputResponses,
    RootsCapabilities, SamplingCapability,
};
use serde_json::{Value, json};

use super::client::Client;
use super::desk::Desk;
use super::running::Stop;

/// Requests to the client, and who waits for the answer.
pub(super) struct Question {
    pub(super) requests: InputRequests,
    waits: Waits,
}

/// Who waits for an answer.
enum Waits {
    /// A call that a person has to agree to.
    Agreement(ApprovalId),
    /// A call that takes what a client answers through a method.
    Method { name: MethodName, id: String },
}

impl Question {
    /// What an item asks of the client. Nothing, if it cannot be asked and somebody else can.
    pub(super) fn of(item: &HubStreamItem, client: &Client) -> Result<Option<Self>, Stop> {
        let ItemBody::Data { content_type, data } = &item.body else {
            return Ok(None);
        };
        match content_type.as_ref() {
            ApprovalRequest::CONTENT_TYPE if client.may_agree && client.can_show_forms() => {
                Self::agreement(read(data)?).map(Some)
            }
            ClientRequest::CONTENT_TYPE => Self::method(read(data)?, client).map(Some),
            _ => Ok(None),
        }
    }

    fn agreement(request: ApprovalRequest) -> Result<Self, Stop> {
        let id = request.approval_id;
        let form = json!({
            "method": "elicitation/create",
            "params": {
                "message": format!("{}\n\n{} {}", request.message, request.method, request.params),
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "reason": { "type": "string", "title": "Reason", "description": "Why so; whoever made the call is told." },
                    },
                },
            },
        });
        let requests = [(agreement_key(id), read(&form)?)].into();
        let waits = Waits::Agreement(id);
        Ok(Self { requests, waits })
    }

    /// Asks for as much as the client has. A method that would get nothing at all is not asked
    /// to go on.
    fn method(asked: ClientRequest, client: &Client) -> Result<Self, Stop> {
        let mut requests = InputRequests::new();
        let mut lacking = ClientCapabilities::default();
        for (key, request) in &asked.requests {
            let request: InputRequest = read(request)?;
            match client.can(&request) {
                true => {
                    requests.insert(key.clone(), request);
                }
                false => note(&mut lacking, &request),
            }
        }
        if requests.is_empty() && !asked.requests.is_empty() {
            return Err(unable(client, lacking));
        }
        let waits = Waits::Method {
            name: asked.answer_to,
            id: asked.id,
        };
        Ok(Self { requests, waits })
    }

    /// Which approval it is about, if it is.
    pub(super) fn approval(&self) -> Option<ApprovalId> {
        match self.waits {
            Waits::Agreement(id) => Some(id),
            Waits::Method { .. } => None,
        }
    }

    /// The answers to it among those that came with a request; `None` if one is missing, or in no
    /// form that an answer could have.
    pub(super) fn answers(&self, given: &mut InputResponses) -> Option<InputResponses> {
        let is_there = |(key, request): (&String, &InputRequest)| {
            given.get(key).is_some_and(|answer| fits(request, answer))
        };
        if !self.requests.iter().all(is_there) {
            return None;
        }
        let keys = self.requests.keys();
        Some(keys.filter_map(|key| given.remove_entry(key)).collect())
    }

    /// Hands the answers to whoever waits for them.
    pub(super) async fn hand_over(
        &self,
        desk: &Desk,
        answers: InputResponses,
    ) -> Result<(), CallError> {
        match &self.waits {
            Waits::Method { name, id } => {
                let params = json!({ "id": id, "responses": answers });
                desk.call(name.as_str(), params).await.map(drop)
            }
            Waits::Agreement(id) => {
                let answer = answers.get(&agreement_key(*id));
                agree(desk, *id, answer.unwrap_or(&Value::Null)).await;
                Ok(())
            }
        }
    }
}

fn agreement_key(id: ApprovalId) -> String {
    format!("approval-{id}")
}

/// Tells the hub what a person said. One who closes the form has not answered: the call waits on.
async fn agree(desk: &Desk, id: ApprovalId, answer: &Value) {
    let method = match answer["action"].as_str() {
        Some("accept") => "hub.approve",
        Some("decline") => "hub.deny",
        _ => return,
    };
    let reason = answer["content"]["reason"].as_str().map(|reason| {
        let short: String = reason.chars().take(1000).collect();
        short
    });
    let params = json!({ "id": id, "reason": reason });
    if let Err(error) = desk.call(method, params).await {
        // Somebody else was faster; the call goes on by that.
        tracing::debug!(approval = %id, %error, "a client's answer does not count");
    }
}

/// Whether an answer could be one to a request.
fn fits(request: &InputRequest, answer: &Value) -> bool {
    match request {
        InputRequest::Elicitation(_) => {
            ["accept", "decline", "cancel"].contains(&answer["action"].as_str().unwrap_or_default())
        }
        InputRequest::CreateMessage(_) => !answer["content"].is_null(),
        InputRequest::ListRoots(_) => answer["roots"].is_array(),
        _ => false,
    }
}

fn note(lacking: &mut ClientCapabilities, request: &InputRequest) {
    match request {
        InputRequest::Elicitation(_) => lacking.elicitation = Some(ElicitationCapability::new()),
        InputRequest::CreateMessage(_) => lacking.sampling = Some(SamplingCapability::default()),
        InputRequest::ListRoots(_) => lacking.roots = Some(RootsCapabilities::default()),
        _ => {}
    }
}

/// The client has nothing of what a method needs. Only from 2026-07-28 on is there a word for it.
fn unable(client: &Client, lacking: ClientCapabilities) -> Stop {
    if !client.has_session {
        return Stop::Refused(ErrorData::missing_required_client_capability(lacking));
    }
    let lacking = serde_json::to_value(lacking).unwrap_or_default();
    let names: Vec<&String> = lacking
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
        .collect();
    let message = format!("the tool needs a client with {names:?}, which this one is not");
    Stop::Call(CallError::new(ErrorCode::InvalidRequest, message))
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Stop> {
    serde_json::from_value(value.clone()).map_err(|error| {
        let message = "a call asks its client in a form that MCP does not have";
        Stop::Call(CallError::new(ErrorCode::Internal, message).log(error))
    })
}
