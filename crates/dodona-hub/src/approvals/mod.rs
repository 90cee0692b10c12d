//! Calls that wait until a person has agreed.
//!
//! A question is a row in `hub.db` before anybody hears of it, and the row decides: of two
//! answers, or an answer and the end of the waiting, the first to change it counts. The call
//! itself waits in memory, so what is pending when the process ends has nobody to wait for it
//! and expires at the next start.

mod table;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_proto::{
    ApprovalAnswer, ApprovalId, ApprovalRecord, ApprovalRequest, ApprovalState, CallError,
    ErrorCode, Event, ItemBody, MethodName, PluginName, Severity, UserId,
};
use dodona_store::journal::Journal;
use dodona_store::{Db, DbError};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Answerers;
use crate::node::Node;
use crate::pause::Pause;
pub(crate) use table::Filter;
use table::Settlement;

/// Why a question has expired that was pending at a start.
const RESTARTED: &str = "the process that waited for the answer has ended";

/// The questions of `hub.db`, and the calls that wait for an answer. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Approvals(Arc<Inner>);

struct Inner {
    db: Db,
    journal: Journal,
    waiting: Mutex<HashMap<ApprovalId, oneshot::Sender<ApprovalRecord>>>,
    /// Cancelled when nobody can answer any more.
    closed: CancellationToken,
    /// Calls that a person denied, with the denial, newest last.
    denied: Mutex<VecDeque<(DeniedCall, CallError)>>,
}

/// How many denials are remembered.
const MAX_DENIED: usize = 1_000;

/// A call in a query: the same call is not asked about again.
#[derive(Debug, Clone, PartialEq)]
struct DeniedCall {
    query: String,
    method: MethodName,
    params: Value,
}

impl DeniedCall {
    /// Nothing outside of a query: there a person makes the call.
    fn of(node: &Node, question: &Question) -> Option<Self> {
        let snapshot = node.info.snapshot.as_ref()?;
        Some(Self {
            query: snapshot.query_id.clone(),
            method: question.method.clone(),
            params: question.params.clone(),
        })
    }
}

/// What a person is asked before a call goes on.
pub(crate) struct Question {
    pub(crate) method: MethodName,
    /// Whose gate asks; the method itself without.
    pub(crate) plugin: Option<PluginName>,
    pub(crate) message: String,
    /// What it would run with.
    pub(crate) params: Value,
}

/// What a person says.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) by: UserId,
    /// `Approved` or `Denied`.
    pub(crate) state: ApprovalState,
    pub(crate) reason: Option<String>,
}

impl Approvals {
    /// Opens the table, and ends what an earlier process left pending.
    pub(crate) async fn load(db: Db, journal: Journal) -> Result<Self, DbError> {
        let expired = table::expire_pending(&db, RESTARTED).await?;
        let approvals = Self(Arc::new(Inner {
            db,
            journal,
            waiting: Mutex::default(),
            closed: CancellationToken::new(),
            denied: Mutex::default(),
        }));
        for record in expired {
            approvals.publish("approval.answered", &record).await;
        }
        Ok(approvals)
    }

    /// Ends what waits: a hub that is stopping takes no answers.
    pub(crate) fn close(&self) {
        self.0.closed.cancel();
    }

    pub(crate) async fn list(&self, filter: Filter) -> Result<Vec<ApprovalRecord>, CallError> {
        Ok(table::list(&self.0.db, filter).await?)
    }

    /// Answers a question of the owner's (`None`: anybody's). The first answer counts; whoever
    /// comes later is told what it was.
    pub(crate) async fn answer(
        &self,
        id: ApprovalId,
        owner: Option<&UserId>,
        answer: Answer,
    ) -> Result<ApprovalRecord, CallError> {
        let settlement = Settlement {
            state: answer.state,
            by: Some(answer.by),
            reason: answer.reason,
        };
        match self.settle(id, owner.cloned(), settlement).await? {
            Some((record, true)) => Ok(record),
            Some((record, false)) => Err(answered(&record)),
            None => Err(missing(id)),
        }
    }

    /// Ends a question, tells the bus and wakes the call. In a task of its own: whoever asked for
    /// it may go away meanwhile, and the call would wait for ever.
    async fn settle(
        &self,
        id: ApprovalId,
        owner: Option<UserId>,
        settlement: Settlement,
    ) -> Result<Option<(ApprovalRecord, bool)>, CallError> {
        let approvals = self.clone();
        let settled = tokio::spawn(async move {
            let settled = table::settle(&approvals.0.db, id, owner, settlement).await?;
            if let Some((record, true)) = &settled {
                approvals.publish("approval.answered", record).await;
                if let Some(waiting) = approvals.waiting().remove(&id) {
                    // One that was stopped meanwhile wants no answer.
                    let _ = waiting.send(record.clone());
                }
            }
            Ok(settled)
        });
        settled.await.unwrap_or_else(|error| {
            Err(CallError::new(ErrorCode::Internal, "an answer was lost").log(error))
        })
    }

    /// Asks, and waits for the answer. Meanwhile the clocks of the call and of those above it
    /// stand still.
    pub(crate) async fn ask(&self, node: &Arc<Node>, question: Question) -> Result<(), CallError> {
        let settings = &node.core.config.approvals;
        if settings.answerers == Answerers::Nobody {
            return Err(nobody(&question.message));
        }
        let call = DeniedCall::of(node, &question);
        if let Some(denial) = call.as_ref().and_then(|call| self.denial_of(call)) {
            return Err(denial);
        }
        let record = record(node, question);
        let pause = Pause::of(node);
        // Before anybody can answer it.
        let mut waiting = Waiting::new(self, record.id);
        let now = self.0.journal.trusted_now();
        let forget = now.checked_sub(node.core.config.retention.max_age);
        table::insert(&self.0.db, record.clone(), forget.ok()).await?;
        self.publish("approval.requested", &record).await;
        node.notice(|| request(&record)).await?;
        let record = waiting.end(node, settings.timeout).await?;
        drop(pause);
        node.notice(|| answer(&record)).await?;
        let verdict = verdict(&record);
        if let (Err(error), Some(call), ApprovalState::Denied) = (&verdict, call, record.state) {
            self.remember_denial(call, error.clone());
        }
        verdict
    }

    /// The denial of the same call earlier in the same query.
    fn denial_of(&self, call: &DeniedCall) -> Option<CallError> {
        let denied = self.0.denied.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, error) = denied.iter().rev().find(|(known, _)| known == call)?;
        let hint =
            "the same call was denied before in this query, so no approval was requested again";
        Some(error.clone().hint(hint))
    }

    fn remember_denial(&self, call: DeniedCall, error: CallError) {
        let mut denied = self.0.denied.lock().unwrap_or_else(PoisonError::into_inner);
        if denied.len() >= MAX_DENIED {
            denied.pop_front();
        }
        denied.push_back((call, error));
    }

    /// The answer counts whether it can be told or not.
    async fn publish(&self, kind: &str, record: &ApprovalRecord) {
        let event = Event {
            id: Uuid::now_v7(),
            kind: kind.to_owned(),
            source: "hub".to_owned(),
            severity: Severity::Info,
            payload: json!(record),
            timestamp: Timestamp::now(),
            user: Some(record.user.clone()),
            project: record.project.clone(),
            call: Some(record.call_id),
            causes: Vec::new(),
        };
        if let Err(error) = self.0.journal.publish(event).await {
            tracing::warn!(approval = %record.id, %error, "`{kind}` could not be told");
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<ApprovalId, oneshot::Sender<ApprovalRecord>>> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits. However that ends, the question does too.
struct Waiting {
    approvals: Approvals,
    id: ApprovalId,
    answer: oneshot::Receiver<ApprovalRecord>,
    settled: bool,
}

impl Waiting {
    fn new(approvals: &Approvals, id: ApprovalId) -> Self {
        let (sender, answer) = oneshot::channel();
        approvals.waiting().insert(id, sender);
        Self {
            approvals: approvals.clone(),
            id,
            answer,
            settled: false,
        }
    }

    /// Waits until there is an answer, nobody wants one, or it takes too long.
    async fn end(&mut self, node: &Node, patience: Duration) -> Result<ApprovalRecord, CallError> {
        let closed = self.approvals.0.closed.clone();
        let (state, reason) = tokio::select! {
            biased;
            record = &mut self.answer => {
                self.settled = true;
                return record.map_err(|_| lost());
            }
            () = node.info.cancel.cancelled() => (ApprovalState::Cancelled, node.root.stop_reason().to_owned()),
            () = closed.cancelled() => (ApprovalState::Cancelled, "the server is stopping".to_owned()),
            () = tokio::time::sleep(patience) => (ApprovalState::Expired, format!("nobody answered within {}", show(patience))),
        };
        let settlement = Settlement {
            state,
            by: None,
            reason: Some(reason),
        };
        self.settled = true;
        // An answer that came in the same moment counts.
        let settled = self.approvals.settle(self.id, None, settlement).await?;
        settled.map(|(record, _)| record).ok_or_else(lost)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.approvals.waiting().remove(&self.id);
        if self.settled {
            return;
        }
        let (approvals, id) = (self.approvals.clone(), self.id);
        let settlement = Settlement {
            state: ApprovalState::Cancelled,
            by: None,
            reason: Some("nobody waits for the result any more".to_owned()),
        };
        // Without a runtime the process is ending, and the next start ends the question.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { approvals.settle(id, None, settlement).await });
        }
    }
}

/// A new question, without secrets.
fn record(node: &Node, question: Question) -> ApprovalRecord {
    let Question {
        method,
        plugin,
        mut message,
        mut params,
    } = question;
    let redactor = &node.core.config.journal.redactor;
    redactor.text(&mut message);
    redactor.value(&mut params);
    let info = &node.info;
    ApprovalRecord {
        id: ApprovalId::random(),
        call_id: info.call_id,
        path: info.path.clone(),
        method,
        params,
        user: info.principal.user.clone(),
        project: info.project.as_ref().map(|project| project.id.clone()),
        plugin,
        message,
        state: ApprovalState::Pending,
        answered_by: None,
        reason: None,
        created_at: Timestamp::now(),
        answered_at: None,
    }
}

fn request(record: &ApprovalRecord) -> ItemBody {
    let request = ApprovalRequest {
        approval_id: record.id,
        method: record.method.clone(),
        plugin: record.plugin.clone(),
        message: record.message.clone(),
        params: record.params.clone(),
    };
    ItemBody::Data {
        content_type: ApprovalRequest::CONTENT_TYPE.into(),
        data: json!(request),
    }
}

fn answer(record: &ApprovalRecord) -> ItemBody {
    let answer = ApprovalAnswer {
        approval_id: record.id,
        state: record.state,
        answered_by: record.answered_by.clone(),
        reason: record.reason.clone(),
    };
    ItemBody::Data {
        content_type: ApprovalAnswer::CONTENT_TYPE.into(),
        data: json!(answer),
    }
}

/// What an answer means for the call.
fn verdict(record: &ApprovalRecord) -> Result<(), CallError> {
    let ApprovalRecord { method, reason, .. } = record;
    let because = reason.as_deref().map(|reason| format!(": {reason}"));
    let because = because.unwrap_or_default();
    match record.state {
        ApprovalState::Approved => Ok(()),
        ApprovalState::Denied => {
            let message = format!("{} did not allow `{method}`{because}", by(record));
            Err(CallError::new(ErrorCode::Denied, message))
        }
        ApprovalState::Expired => {
            let message = format!("`{method}` was not allowed{because}");
            Err(CallError::new(ErrorCode::Denied, message)
                .hint("`dodona approvals list` shows what waits for an answer"))
        }
        ApprovalState::Pending | ApprovalState::Cancelled => Err(CallError::new(
            ErrorCode::Cancelled,
            reason.as_deref().unwrap_or("cancelled"),
        )),
    }
}

fn by(record: &ApprovalRecord) -> String {
    match &record.answered_by {
        Some(user) => format!("user `{user}`"),
        None => "nobody".to_owned(),
    }
}

fn nobody(message: &str) -> CallError {
    let message = format!("{message}; nobody is there to answer");
    CallError::new(ErrorCode::ApprovalRequired, message)
        .hint("run `dodona serve`, try again, and answer with `dodona approvals approve`")
}

fn answered(record: &ApprovalRecord) -> CallError {
    let message = match &record.answered_by {
        Some(user) => format!("user `{user}` has answered already: {}", record.state),
        None => format!("it does not wait for an answer any more: {}", record.state),
    };
    CallError::new(ErrorCode::InvalidRequest, message).data(json!(record))
}

fn missing(id: ApprovalId) -> CallError {
    CallError::new(ErrorCode::NotFound, format!("there is no approval `{id}`"))
        .hint("`dodona approvals list` shows what waits for an answer")
}

fn lost() -> CallError {
    CallError::new(ErrorCode::Internal, "the question was lost")
}

fn show(time: Duration) -> String {
    match SignedDuration::try_from(time) {
        Ok(time) => format!("{time:#}"),
        Err(_) => format!("{time:?}"),
    }
}
