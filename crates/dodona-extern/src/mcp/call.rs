//! One call of a tool: the request, its progress, its end.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::{CallCtx, CallError, ErrorCode, LogLevel, PluginLog};
use rmcp::RoleClient;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientNotification, ClientRequest, ErrorCode as McpCode,
    InputRequest, InputRequests, InputResponses, RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::config::OnCancel;
use super::session::Session;
use super::tap::{Progress, ProgressSink};
use crate::text;

/// How often progress is passed on at most.
const PROGRESS: Duration = Duration::from_millis(100);

/// How often a server may ask to be asked again.
const ROUNDS: usize = 8;

/// How long a server that was told of a cancelled call may go on before it is looked at.
const GRACE: Duration = Duration::from_millis(1_500);

/// How long a server that sent an answer to no request may take to send the right one.
const CORRECTION: Duration = Duration::from_secs(1);

/// How long it may then take to answer whether it is still there.
const ANSWER: Duration = Duration::from_secs(3);

/// Calls a tool on a connection.
pub(crate) async fn call(
    session: &Arc<Session>,
    ctx: &CallCtx,
    tool: &str,
    arguments: Map<String, Value>,
    leaving: &Leaving,
) -> Result<CallToolResult, CallError> {
    let _running = session.running();
    let mut strays = session.line.strays();
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    for _ in 0..ROUNDS {
        let asked = once(session, ctx, params.clone(), leaving);
        let answered = tokio::select! {
            biased;
            answered = asked => answered?,
            error = misdirected(session, &mut strays) => return Err(error),
        };
        match answered {
            ServerResult::CallToolResult(result) => return Ok(result),
            ServerResult::InputRequiredResult(more) => {
                params.input_responses = declined(more.input_requests, leaving)?;
                params.request_state = more.request_state;
            }
            _ => return Err(strange()),
        }
    }
    Err(strange())
}

/// Completes when the server has answered a request that was never sent, and does not answer the one
/// that waits soon after. With several calls under way it is unknown which one was meant: each waits
/// for its own time.
async fn misdirected(session: &Session, strays: &mut watch::Receiver<Option<String>>) -> CallError {
    loop {
        if strays.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(CORRECTION).await;
        let is_alone = session.running.load(std::sync::atomic::Ordering::Acquire) == 1;
        let what = strays.borrow_and_update().clone();
        if let (true, Some(what)) = (is_alone, what) {
            let message = format!("MCP server `{}` sent {what}", session.line.server());
            let hint = format!("run `dodona plugins logs {}`", session.line.server());
            return CallError::plugin("mcp.bad_result", message).hint(hint);
        }
    }
}

/// Declines what a tool asks of a person: there is none here, and it may go on without. For what it
/// asks of a model there is no such answer.
fn declined(
    asked: Option<InputRequests>,
    leaving: &Leaving,
) -> Result<Option<InputResponses>, CallError> {
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        return Ok(None);
    };
    let of_person = |request: &InputRequest| matches!(request, InputRequest::Elicitation(_));
    if !asked.values().all(of_person) {
        let message = "the tool asks for input of a model, which it is not given here";
        return Err(CallError::plugin("mcp.input_required", message));
    }
    let told = "a tool asks for input of a person; that was declined";
    leaving.log.write(LogLevel::Info, "server", told);
    let answers = asked
        .into_keys()
        .map(|key| (key, json!({ "action": "decline" })));
    Ok(Some(answers.collect()))
}

fn strange() -> CallError {
    CallError::plugin(
        "mcp.bad_result",
        "the server answered with something else than a result",
    )
}

/// Sends a request and waits for its answer, passing progress on.
async fn once(
    session: &Arc<Session>,
    ctx: &CallCtx,
    params: CallToolRequestParams,
    leaving: &Leaving,
) -> Result<ServerResult, CallError> {
    let (sink, progress) = watch::channel(None);
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(ProgressSink(sink));
    let sent = session
        .peer
        .send_request_with_option(
            ClientRequest::CallToolRequest(request),
            PeerRequestOptions::no_options(),
        )
        .await;
    let handle = sent.map_err(|error| failed(session, &error))?;
    let mut open = Open {
        session: Arc::clone(session),
        id: handle.id.clone(),
        progress: Some(progress.clone()),
        leaving: leaving.clone(),
    };
    let outcome = answer(session, ctx, handle, progress).await;
    open.progress = None;
    outcome
}

async fn answer(
    session: &Session,
    ctx: &CallCtx,
    handle: RequestHandle<RoleClient>,
    mut progress: watch::Receiver<Option<Progress>>,
) -> Result<ServerResult, CallError> {
    let answer = handle.await_response();
    tokio::pin!(answer);
    let (mut next, mut told) = (Instant::now(), None);
    loop {
        let news = async {
            // A sender that is gone has nothing to say any more.
            if progress.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep_until(next).await;
        };
        tokio::select! {
            biased;
            answered = &mut answer => {
                tell(ctx, &progress, &mut told).await?;
                return answered.map_err(|error| failed(session, &error));
            }
            () = session.line.ended.wait() => return Err(lost(&session.line.ended.why())),
            () = news => {
                tell(ctx, &progress, &mut told).await?;
                next = Instant::now() + PROGRESS;
            }
        }
    }
}

/// Passes the latest progress on, if it is news.
async fn tell(
    ctx: &CallCtx,
    progress: &watch::Receiver<Option<Progress>>,
    told: &mut Option<Progress>,
) -> Result<(), CallError> {
    let latest = progress.borrow().clone();
    if latest == *told {
        return Ok(());
    }
    told.clone_from(&latest);
    match latest {
        Some(Progress {
            message,
            percentage,
        }) => ctx.progress(message, percentage).await,
        None => Ok(()),
    }
}

/// What went wrong, as the error of a call.
pub(crate) fn failed(session: &Session, error: &ServiceError) -> CallError {
    match error {
        ServiceError::McpError(error) if error.code == McpCode::INVALID_PARAMS => CallError::new(
            ErrorCode::InvalidParams,
            format!(
                "the server refuses the parameters: {}",
                text::line(&error.message, 500)
            ),
        ),
        // Ours, in place of an answer that cannot be read, or the server's about our request.
        ServiceError::McpError(error) if error.code == McpCode::PARSE_ERROR => {
            let hint = format!("run `dodona plugins logs {}`", session.line.server());
            CallError::plugin("mcp.bad_result", text::line(&error.message, 500)).hint(hint)
        }
        ServiceError::McpError(error) => {
            CallError::plugin("mcp.server_error", text::line(&error.message, 500))
        }
        ServiceError::TransportClosed => lost(&session.line.ended.why()),
        other => lost(&text::line(&other.to_string(), 500)),
    }
}

/// The connection ended under a call.
pub(crate) fn lost(why: &str) -> CallError {
    let message = format!("the connection to the server was lost: {why}");
    CallError::plugin("mcp.connection_lost", message)
        .retry(true)
        .hint("it is started anew; try again")
}

/// What to do for calls that nobody waits for any more.
#[derive(Clone)]
pub(crate) struct Leaving {
    pub(crate) on_cancel: OnCancel,
    pub(crate) log: PluginLog,
}

/// A request that was sent. If it is dropped before its answer, the server is told.
struct Open {
    session: Arc<Session>,
    id: RequestId,
    /// `None` once it was answered.
    progress: Option<watch::Receiver<Option<Progress>>>,
    leaving: Leaving,
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(progress) = self.progress.take() else {
            return;
        };
        if self.session.line.ended.is_over() {
            return;
        }
        let (session, id) = (Arc::clone(&self.session), self.id.clone());
        let leaving = self.leaving.clone();
        // Without a runtime the process ends, and the server with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(abandon(session, id, progress, leaving));
        }
    }
}

/// Tells the server that a call was cancelled, and sees whether it obeys. One that does not is
/// ended, because what was cancelled must not go on.
async fn abandon(
    session: Arc<Session>,
    id: RequestId,
    mut progress: watch::Receiver<Option<Progress>>,
    leaving: Leaving,
) {
    let reason = Some("the call was cancelled".to_owned());
    let about = CancelledNotificationParam::new(Some(id), reason);
    let told = ClientNotification::CancelledNotification(CancelledNotification::new(about));
    let telling = session.peer.send_notification(told);
    let was_told = tokio::time::timeout(ANSWER, telling).await.is_ok();
    if session.keeper.is_none() {
        return;
    }
    if leaving.on_cancel == OnCancel::End {
        return session.end("it was ended with a call that was cancelled");
    }
    tokio::select! {
        () = tokio::time::sleep(GRACE) => {}
        () = session.line.ended.wait() => return,
    }
    progress.mark_unchanged();
    let step = tokio::time::timeout(GRACE, progress.changed());
    let (answers, step) = tokio::join!(session.answers(ANSWER), step);
    let (answers, goes_on) = (was_told && answers, matches!(step, Ok(Ok(()))));
    let others = session.running.load(std::sync::atomic::Ordering::Acquire);
    match (answers, goes_on, others) {
        (true, false, _) => {}
        (false, _, _) => session.end("it did not answer after a call was cancelled"),
        (true, true, 0) => session.end("it went on with a call that was cancelled"),
        (true, true, _) => leaving.log.write(
            LogLevel::Warning,
            "server",
            "it goes on with a call that was cancelled; other calls keep it from being ended",
        ),
    }
}
