//! Calls that wait for a person's approval.
//!
//! A request is stored in `hub.db` before it is shown. The row decides: of two answers, or an answer and
//! a timeout, the first that changes the row counts. The call itself waits in memory. A request that is
//! pending when the process ends can no longer be answered and expires at the next start.

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

use crate::call::RunningCall;
use crate::config::Approvers;
use crate::deadline::DeadlinePause;
use crate::dispatch::CALLER_GONE;
pub(crate) use table::Filter;
use table::Settlement;

/// The reason of requests that an earlier process left pending.
const RESTARTED: &str = "the server was restarted while the request was pending";

/// The approval requests in `hub.db`, and the calls that wait for an answer. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Approvals(Arc<Inner>);

struct Inner {
    db: Db,
    journal: Journal,
    waiting: Mutex<HashMap<ApprovalId, oneshot::Sender<ApprovalRecord>>>,
    /// Cancelled when the hub stops and no answer can arrive.
    closed: CancellationToken,
    /// Calls that a person denied, with the error, newest last. At most `MAX_DENIED`.
    denied: Mutex<VecDeque<(DeniedCall, CallError)>>,
}

const MAX_DENIED: usize = 1_000;

/// A denied call of a query. If the model repeats the call, no approval is requested again.
#[derive(Debug, Clone, PartialEq)]
struct DeniedCall {
    query: String,
    method: MethodName,
    params: Value,
}

impl DeniedCall {
    /// `None` outside a query, where a person makes the call.
    fn new(call: &RunningCall, question: &ApprovalQuestion) -> Option<Self> {
        let snapshot = call.info.snapshot.as_ref()?;
        Some(Self {
            query: snapshot.query_id.clone(),
            method: question.method.clone(),
            params: question.params.clone(),
        })
    }
}

/// The question to a person before a call continues.
pub(crate) struct ApprovalQuestion {
    pub(crate) method: MethodName,
    /// The plugin whose gate asks. `None` if the method itself requires approval.
    pub(crate) plugin: Option<PluginName>,
    pub(crate) message: String,
    /// The parameters with which the call would run.
    pub(crate) params: Value,
}

/// The answer of a person.
#[derive(Debug, Clone)]
pub(crate) struct PersonsAnswer {
    pub(crate) by: UserId,
    pub(crate) state: ApprovalState,
    pub(crate) reason: Option<String>,
}

impl Approvals {
    /// Opens the table and expires what an earlier process left pending.
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

    /// Cancels all pending requests. Called when the hub stops.
    pub(crate) fn close(&self) {
        self.0.closed.cancel();
    }

    pub(crate) async fn list(&self, filter: Filter) -> Result<Vec<ApprovalRecord>, CallError> {
        Ok(table::list(&self.0.db, filter).await?)
    }

    /// Answers a request of `owner` (`None`: of any user). The first answer counts; later ones fail
    /// with an error that contains it.
    pub(crate) async fn answer(
        &self,
        id: ApprovalId,
        owner: Option<&UserId>,
        answer: PersonsAnswer,
    ) -> Result<ApprovalRecord, CallError> {
        let settlement = Settlement {
            state: answer.state,
            by: Some(answer.by),
            reason: answer.reason,
        };
        match self.settle(id, owner.cloned(), settlement).await? {
            Some((record, true)) => Ok(record),
            Some((record, false)) => Err(already_answered_error(&record)),
            None => Err(not_found_error(id)),
        }
    }

    /// Ends a request, publishes the answer and wakes the call. Runs in its own task: if the client that
    /// answers disconnected meanwhile, the call would otherwise wait forever.
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
                    // Fails if the call was cancelled meanwhile.
                    let _ = waiting.send(record.clone());
                }
            }
            Ok(settled)
        });
        settled.await.unwrap_or_else(|error| {
            Err(CallError::new(
                ErrorCode::Internal,
                "the task that stores the answer failed",
            )
            .log(error))
        })
    }

    /// Requests approval and waits for the answer. Meanwhile the deadlines of the call and of its
    /// ancestors are paused.
    pub(crate) async fn ask(
        &self,
        call: &Arc<RunningCall>,
        question: ApprovalQuestion,
    ) -> Result<(), CallError> {
        let settings = &call.hub.config.approvals;
        if settings.approvers == Approvers::None {
            return Err(no_approver_error(&question.message));
        }
        let denied_call = DeniedCall::new(call, &question);
        if let Some(denial) = denied_call.as_ref().and_then(|call| self.denial_of(call)) {
            return Err(denial);
        }
        let record = build_record(call, question);
        let pause = DeadlinePause::new(call);
        // Registered before the row exists, so that no answer can come too early.
        let mut waiter = ApprovalWaiter::new(self, record.id);
        let now = self.0.journal.trusted_now();
        let delete_before = now.checked_sub(call.hub.config.retention.max_age);
        table::insert(&self.0.db, record.clone(), delete_before.ok()).await?;
        self.publish("approval.requested", &record).await;
        call.send_notice(|| request_item(&record)).await?;
        let record = waiter.wait(call, settings.timeout).await?;
        drop(pause);
        call.send_notice(|| answer_item(&record)).await?;
        let verdict = verdict(&record);
        if let (Err(error), Some(denied), ApprovalState::Denied) =
            (&verdict, denied_call, record.state)
        {
            self.remember_denial(denied, error.clone());
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

    /// Publishes an event. A failure is only logged: the answer in the table counts.
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
            tracing::warn!(approval = %record.id, %error, "failed to publish `{kind}`");
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<ApprovalId, oneshot::Sender<ApprovalRecord>>> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits for an answer. When it is dropped, the request is cancelled.
struct ApprovalWaiter {
    approvals: Approvals,
    id: ApprovalId,
    answer: oneshot::Receiver<ApprovalRecord>,
    is_settled: bool,
}

impl ApprovalWaiter {
    fn new(approvals: &Approvals, id: ApprovalId) -> Self {
        let (sender, answer) = oneshot::channel();
        approvals.waiting().insert(id, sender);
        Self {
            approvals: approvals.clone(),
            id,
            answer,
            is_settled: false,
        }
    }

    /// Waits for an answer, for cancellation of the call, for the stop of the hub, or for the timeout.
    async fn wait(
        &mut self,
        call: &RunningCall,
        timeout: Duration,
    ) -> Result<ApprovalRecord, CallError> {
        let closed = self.approvals.0.closed.clone();
        let (state, reason) = tokio::select! {
            biased;
            record = &mut self.answer => {
                self.is_settled = true;
                return record.map_err(|_| lost_error());
            }
            () = call.info.cancel.cancelled() => (ApprovalState::Cancelled, call.tree.cancel_reason().to_owned()),
            () = closed.cancelled() => (ApprovalState::Cancelled, "the server is stopping".to_owned()),
            () = tokio::time::sleep(timeout) => (ApprovalState::Expired, format!("no answer within {}", format_duration(timeout))),
        };
        let settlement = Settlement {
            state,
            by: None,
            reason: Some(reason),
        };
        self.is_settled = true;
        // If an answer was stored at the same moment, it counts.
        let settled = self.approvals.settle(self.id, None, settlement).await?;
        settled.map(|(record, _)| record).ok_or_else(lost_error)
    }
}

impl Drop for ApprovalWaiter {
    fn drop(&mut self) {
        self.approvals.waiting().remove(&self.id);
        if self.is_settled {
            return;
        }
        let (approvals, id) = (self.approvals.clone(), self.id);
        let settlement = Settlement {
            state: ApprovalState::Cancelled,
            by: None,
            reason: Some(CALLER_GONE.to_owned()),
        };
        // Without a runtime the process is ending, and the next start expires the request.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { approvals.settle(id, None, settlement).await });
        }
    }
}

/// A new request, with secrets redacted.
fn build_record(call: &RunningCall, question: ApprovalQuestion) -> ApprovalRecord {
    let ApprovalQuestion {
        method,
        plugin,
        mut message,
        mut params,
    } = question;
    let redactor = &call.hub.config.journal.redactor;
    redactor.text(&mut message);
    redactor.value(&mut params);
    let info = &call.info;
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

fn request_item(record: &ApprovalRecord) -> ItemBody {
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

fn answer_item(record: &ApprovalRecord) -> ItemBody {
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

/// Whether the call may continue.
fn verdict(record: &ApprovalRecord) -> Result<(), CallError> {
    let ApprovalRecord { method, reason, .. } = record;
    let because = reason.as_deref().map(|reason| format!(": {reason}"));
    let because = because.unwrap_or_default();
    match record.state {
        ApprovalState::Approved => Ok(()),
        ApprovalState::Denied => {
            let message = format!("{} denied `{method}`{because}", answerer(record));
            Err(CallError::new(ErrorCode::Denied, message))
        }
        ApprovalState::Expired => {
            let message = format!("`{method}` was not approved{because}");
            Err(CallError::new(ErrorCode::Denied, message)
                .hint("run `dodona approvals list` to see pending approvals"))
        }
        ApprovalState::Pending | ApprovalState::Cancelled => Err(CallError::new(
            ErrorCode::Cancelled,
            reason.as_deref().unwrap_or("cancelled"),
        )),
    }
}

fn answerer(record: &ApprovalRecord) -> String {
    match &record.answered_by {
        Some(user) => format!("user `{user}`"),
        None => "the server".to_owned(),
    }
}

fn no_approver_error(message: &str) -> CallError {
    let message = format!("{message}, and no person is available to approve it");
    CallError::new(ErrorCode::ApprovalRequired, message)
        .hint("start `dodona serve`, retry, and approve with `dodona approvals approve`")
}

fn already_answered_error(record: &ApprovalRecord) -> CallError {
    let message = match &record.answered_by {
        Some(user) => format!("user `{user}` has already answered: {}", record.state),
        None => format!("the approval is no longer pending: {}", record.state),
    };
    CallError::new(ErrorCode::InvalidRequest, message).data(json!(record))
}

fn not_found_error(id: ApprovalId) -> CallError {
    CallError::new(ErrorCode::NotFound, format!("approval `{id}` not found"))
        .hint("run `dodona approvals list` to see pending approvals")
}

fn lost_error() -> CallError {
    CallError::new(ErrorCode::Internal, "the approval request was lost")
}

fn format_duration(time: Duration) -> String {
    match SignedDuration::try_from(time) {
        Ok(time) => format!("{time:#}"),
        Err(_) => format!("{time:?}"),
    }
}
