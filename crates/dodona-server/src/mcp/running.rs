//! A call on its way: read to its end, or to where its client has to say something first.

use std::collections::HashMap;
use std::time::Duration;

use dodona_proto::{
    ApprovalAnswer, ApprovalId, ApprovalRequest, CallError, ClientRequest, DoneStatus, ErrorCode,
    HubStreamItem, ItemBody,
};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt, future};
use rmcp::ErrorData;
use rmcp::model::{InputResponses, RequestId};
use serde::Deserialize;
use serde_json::Value;

use super::client::{self, Client};
use super::desk::{Desk, Items};
use super::progress::Progress;
use super::question::Question;

/// How often a call that is quiet shows that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// A call, and what it said so far. Dropping it cancels it.
pub(super) struct Running {
    items: Items,
    end: End,
}

/// How far a call came.
pub(super) enum Step {
    /// To its end.
    Done(Value),
    /// To a question that the client must answer first.
    Asks(Box<Running>, Question),
}

/// Why a call came no further.
pub(super) enum Stop {
    /// It failed, or was refused: the model is to see that.
    Call(CallError),
    /// The request cannot be carried out at all.
    Refused(ErrorData),
}

impl From<CallError> for Stop {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// Requests that a client with a session was sent, with what came back.
type Asked = FuturesUnordered<BoxFuture<'static, (Question, InputResponses)>>;

impl Running {
    pub(super) fn new(items: Items) -> Self {
        let end = End::default();
        Self { items, end }
    }

    /// Reads on, telling how it goes. A client with a session is asked on the way; another one
    /// has answered beforehand, or the call stops there.
    pub(super) async fn go_on(
        mut self,
        desk: &Desk,
        client: &Client,
        given: &mut InputResponses,
        progress: &mut Progress,
    ) -> Result<Step, Stop> {
        let mut asked = Asked::new();
        let mut open = HashMap::new();
        loop {
            let item = tokio::select! {
                Some((question, answers)) = asked.next(), if !asked.is_empty() => {
                    question.approval().and_then(|answered| open.remove(&answered));
                    question.hand_over(desk, answers).await?;
                    continue;
                }
                item = tokio::time::timeout(SIGN_OF_LIFE, self.items.next()) => item,
            };
            let item = match item {
                Err(_) => {
                    progress.again().await;
                    continue;
                }
                Ok(item) => item?,
            };
            let Some(item) = item else {
                return Ok(Step::Done(self.end.result()?));
            };
            progress.item(&item).await;
            client.log(&item).await;
            take_back(client, &item, &mut open).await;
            match Question::of(&item, client)? {
                None => self.end.take(item),
                Some(question) if client.has_session => {
                    let answers = ask(client, question, &mut open).await;
                    asked.push(answers);
                }
                Some(question) => match question.answers(given) {
                    Some(answers) => question.hand_over(desk, answers).await?,
                    None => return Ok(Step::Asks(Box::new(self), question)),
                },
            }
        }
    }
}

/// Requests about approvals that a client has not answered yet.
type Open = HashMap<ApprovalId, RequestId>;

/// Asks a client with a session; its answers follow.
async fn ask(
    client: &Client,
    question: Question,
    open: &mut Open,
) -> BoxFuture<'static, (Question, InputResponses)> {
    let mut sent = Vec::new();
    for (key, request) in question.requests.clone() {
        let Some(asked) = client.ask(request).await else {
            continue;
        };
        if let Some(approval) = question.approval() {
            open.insert(approval, asked.id.clone());
        }
        let answer = client::answer(asked);
        sent.push(answer.map(|answer| answer.map(|answer| (key, answer))));
    }
    let all = future::join_all(sent);
    Box::pin(all.map(|answers| (question, answers.into_iter().flatten().collect())))
}

/// Takes a question back that somebody else has answered.
async fn take_back(client: &Client, item: &HubStreamItem, open: &mut Open) {
    if let ItemBody::Data { content_type, data } = &item.body
        && content_type == ApprovalAnswer::CONTENT_TYPE
        && let Ok(answer) = ApprovalAnswer::deserialize(data)
        && let Some(request) = open.remove(&answer.approval_id)
    {
        client.take_back(request).await;
    }
}

/// How a call ended, as far as its items tell.
#[derive(Default)]
struct End {
    value: Value,
    failure: Option<CallError>,
    status: Option<(DoneStatus, Option<String>)>,
}

impl End {
    fn take(&mut self, item: HubStreamItem) {
        if item.call_id.depth() > 0 {
            return;
        }
        match item.body {
            ItemBody::Data { content_type, data } if !is_aside(&content_type) => {
                self.value = data;
            }
            ItemBody::Error {
                error,
                code,
                recoverable: false,
                hint,
            } => {
                let error = CallError::new(code, error);
                self.failure = Some(match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                });
            }
            ItemBody::Done { status, reason } => self.status = Some((status, reason)),
            _ => {}
        }
    }

    fn result(self) -> Result<Value, CallError> {
        let lost = || CallError::new(ErrorCode::Interrupted, "the call ended without a word");
        let (status, reason) = self.status.ok_or_else(lost)?;
        if status == DoneStatus::Complete {
            return Ok(self.value);
        }
        let reason = reason.unwrap_or_else(|| status.as_str().to_owned());
        Err(self
            .failure
            .unwrap_or_else(|| CallError::new(ErrorCode::Cancelled, reason)))
    }
}

/// Whether data says that a call waits, or waited, and is no part of its result.
fn is_aside(content_type: &str) -> bool {
    let asides = [
        ApprovalRequest::CONTENT_TYPE,
        ApprovalAnswer::CONTENT_TYPE,
        ClientRequest::CONTENT_TYPE,
    ];
    asides.contains(&content_type)
}
