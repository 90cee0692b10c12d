//! What passes between us and a server, looked at on its way.
//!
//! Progress must stay in order and must not pile up, logs are the plugin's, and a server that asks
//! without end is let go: so they are dealt with here, the same for both transports.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_plugin::{LogLevel, PluginLog};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, JsonRpcMessage, ProgressNotificationParam,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::child::Ended;
use crate::text;

/// How many questions of the server may be open.
const QUESTIONS: usize = 64;

/// How many requests without an answer are known.
const OPEN: usize = 10_000;

/// How often a server is asked for its newest protocol.
const PROBES: usize = 8;

/// How long a server's word about its progress may be.
const MESSAGE: usize = 500;

/// How far a call has come. Only the latest counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Progress {
    pub(crate) message: String,
    pub(crate) percentage: Option<f32>,
}

/// Where the progress of a call goes. It travels with the request, so that it is known before the
/// server has seen it.
#[derive(Debug, Clone)]
pub(crate) struct ProgressSink(pub(crate) watch::Sender<Option<Progress>>);

/// The question whether a server knows the newest protocol. One that is slow to start may answer
/// it after we have gone on to the older one, where nobody waits for that answer any more.
#[derive(Default)]
struct Probe {
    asked: Vec<RequestId>,
    is_over: bool,
    was_known: bool,
    was_answered: bool,
}

/// What came of that question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probed {
    /// An answer in time, or nobody asked.
    InTime,
    /// A yes that came too late.
    Late,
    /// Nothing at all.
    Unheard,
}

impl Probe {
    fn sent(&mut self, id: &RequestId, request: &ClientRequest) {
        match request {
            ClientRequest::DiscoverRequest(_) if self.asked.len() < PROBES => {
                self.asked.push(id.clone());
            }
            ClientRequest::InitializeRequest(_) => self.is_over = true,
            _ => {}
        }
    }

    /// Takes note of an answer, and whether nobody waits for it any more.
    fn is_late(&mut self, id: &RequestId) -> bool {
        let is_its = self.asked.contains(id);
        self.was_answered |= is_its;
        self.is_over && is_its
    }
}

/// What a connection is known by on our side.
pub(crate) struct Line {
    calls: Mutex<HashMap<ProgressToken, watch::Sender<Option<Progress>>>>,
    questions: AtomicUsize,
    probe: Mutex<Probe>,
    /// The requests that the server has not answered.
    open: Mutex<HashSet<RequestId>>,
    /// One more than the number of the last request.
    sent: AtomicI64,
    /// The last answer that belongs to no request.
    strays: watch::Sender<Option<String>>,
    /// The name of the server's plugin.
    server: String,
    /// That the server has other tools than before.
    pub(crate) changed: Notify,
    pub(crate) ended: Arc<Ended>,
    log: PluginLog,
}

impl Line {
    pub(crate) fn new(server: &str, ended: Arc<Ended>, log: PluginLog) -> Self {
        Self {
            open: Mutex::default(),
            sent: AtomicI64::new(0),
            strays: watch::Sender::new(None),
            server: server.to_owned(),
            calls: Mutex::default(),
            questions: AtomicUsize::new(0),
            probe: Mutex::default(),
            changed: Notify::new(),
            ended,
            log,
        }
    }

    /// The name of the server's plugin.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Whether a request was sent and not answered.
    pub(crate) fn is_open(&self, id: &RequestId) -> bool {
        self.open().contains(id)
    }

    fn open(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an answer that belongs to no request.
    pub(crate) fn stray(&self, what: &str) {
        self.strays.send_replace(Some(what.to_owned()));
    }

    /// Answers that belong to no request, from now on.
    pub(crate) fn strays(&self) -> watch::Receiver<Option<String>> {
        self.strays.subscribe()
    }

    /// Takes note of an answer. One to a request that was never sent is a stray.
    fn close(&self, id: &RequestId) {
        let mut open = self.open();
        let was_sent = open.remove(id) || self.was_sent(id);
        drop(open);
        if !was_sent {
            let id = text::line(&id.to_string(), 40);
            self.stray(&format!("an answer with the unknown id `{id}`"));
        }
    }

    /// Whether a request with this id was sent at any time. Requests are numbered from 0.
    fn was_sent(&self, id: &RequestId) -> bool {
        match id {
            RequestId::Number(number) => (0..self.sent.load(Ordering::Acquire)).contains(number),
            RequestId::String(_) => false,
        }
    }

    /// Notes what a request is waited for with.
    fn expect(&self, id: &RequestId, request: &ClientRequest) {
        if let RequestId::Number(number) = id {
            self.sent
                .fetch_max(number.saturating_add(1), Ordering::AcqRel);
        }
        {
            let mut open = self.open();
            // Requests that were given up and never answered do not pile up.
            if open.len() >= OPEN {
                open.clear();
            }
            open.insert(id.clone());
        }
        let call = match request {
            ClientRequest::CallToolRequest(call) => call,
            other => return self.probe().sent(id, other),
        };
        let sink = call.extensions.get::<ProgressSink>();
        if let (Some(ProgressSink(sink)), Some(token)) =
            (sink, request.get_meta().get_progress_token())
        {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.retain(|_, sink| !sink.is_closed());
            calls.insert(token, sink.clone());
        }
    }

    /// What the server said to the question whether it knows the newest protocol.
    pub(crate) fn probed(&self) -> Probed {
        let probe = self.probe();
        match (
            probe.was_known,
            probe.was_answered || probe.asked.is_empty(),
        ) {
            (true, _) => Probed::Late,
            (false, true) => Probed::InTime,
            (false, false) => Probed::Unheard,
        }
    }

    fn probe(&self) -> MutexGuard<'_, Probe> {
        self.probe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self, told: ProgressNotificationParam) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = calls.get(&told.progress_token) {
            sink.send_replace(Some(progress(told)));
        }
    }

    /// Writes down what the server says in the protocol's own way, as JSON: the newest protocol
    /// gives that up, and rmcp its types.
    fn log(&self, told: &Value) {
        let level = match told["level"].as_str() {
            Some("debug") => LogLevel::Debug,
            Some("info" | "notice") => LogLevel::Info,
            Some("warning") => LogLevel::Warning,
            _ => LogLevel::Error,
        };
        match &told["data"] {
            Value::String(text) => self.log.write(level, "message", text),
            other => self.log.write(level, "message", &other.to_string()),
        }
    }

    /// Whether a message is passed on. What is dealt with here is not.
    fn passes(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Notification(mut told) => match told.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.progress(progress.params);
                    None
                }
                ServerNotification::LoggingMessageNotification(said) => {
                    self.log(&serde_json::to_value(said.params).unwrap_or_default());
                    None
                }
                ServerNotification::CustomNotification(_) => None,
                other => {
                    if matches!(other, ServerNotification::ToolListChangedNotification(_)) {
                        self.changed.notify_one();
                    }
                    told.notification = other;
                    Some(JsonRpcMessage::Notification(told))
                }
            },
            JsonRpcMessage::Request(request) => {
                if self.questions.fetch_add(1, Ordering::AcqRel) >= QUESTIONS {
                    self.ended
                        .because("the server asks more than it waits to be answered");
                }
                Some(JsonRpcMessage::Request(request))
            }
            JsonRpcMessage::Response(answer) => {
                self.close(&answer.id);
                let mut probe = self.probe();
                if probe.is_late(&answer.id) {
                    probe.was_known = true;
                    return None;
                }
                Some(JsonRpcMessage::Response(answer))
            }
            JsonRpcMessage::Error(error) => {
                let id = error.id.as_ref();
                match id {
                    Some(id) => self.close(id),
                    None => {
                        let message = text::line(&error.error.message, 200);
                        self.stray(&format!("an error that names no request: {message}"));
                    }
                }
                match id.is_some_and(|id| self.probe().is_late(id)) {
                    true => None,
                    false => Some(JsonRpcMessage::Error(error)),
                }
            }
        }
    }

    fn answered(&self) {
        let less = |open: usize| Some(open.saturating_sub(1));
        let _ = self
            .questions
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

fn progress(told: ProgressNotificationParam) -> Progress {
    let total = told.total.filter(|total| *total > 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a percentage needs no more"
    )]
    let percentage = total.map(|total| (told.progress / total * 100.0) as f32);
    let message = match (told.message, total) {
        (Some(message), _) => text::line(&message, MESSAGE),
        (None, Some(total)) => format!("{} of {total}", told.progress),
        (None, None) => format!("{} so far", told.progress),
    };
    Progress {
        message,
        percentage: percentage.filter(|percentage| percentage.is_finite()),
    }
}

/// A transport, looked at.
pub(crate) struct Tap<T> {
    inner: T,
    line: Arc<Line>,
}

impl<T> Tap<T> {
    pub(crate) fn new(inner: T, line: Arc<Line>) -> Self {
        Self { inner, line }
    }
}

impl<T> Drop for Tap<T> {
    fn drop(&mut self) {
        self.line.ended.over();
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_answer = matches!(
            message,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
        );
        if let JsonRpcMessage::Request(request) = &message {
            self.line.expect(&request.id, &request.request);
        }
        let line = Arc::clone(&self.line);
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            if is_answer {
                line.answered();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.line.ended.over();
                return None;
            };
            if let Some(message) = self.line.passes(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.line.ended.over();
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line() -> Line {
        Line::new("small", Arc::new(Ended::default()), PluginLog::new())
    }

    fn sends(line: &Line, id: i64, method: &str, params: Value) {
        let request = json!({ "method": method, "params": params });
        let request: ClientRequest = serde_json::from_value(request).unwrap();
        line.expect(&RequestId::Number(id), &request);
    }

    fn asks_for_both(line: &Line) {
        let us = json!({ "name": "us", "version": "1" });
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": us,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        sends(line, 1, "server/discover", json!({ "_meta": meta }));
        assert_eq!(line.probed(), Probed::Unheard);
        let older =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": us });
        sends(line, 2, "initialize", older);
    }

    fn hears(line: &Line, answer: Value) -> bool {
        line.passes(serde_json::from_value(answer).unwrap())
            .is_some()
    }

    #[test]
    fn a_yes_to_the_newest_protocol_that_comes_too_late_is_noted_and_goes_no_further() {
        let line = line();
        asks_for_both(&line);
        let yes = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            "ttlMs": 0, "cacheScope": "private",
        });
        assert!(!hears(
            &line,
            json!({ "jsonrpc": "2.0", "id": 1, "result": yes })
        ));
        let refusal = json!({ "code": -32022, "message": "not accepted" });
        assert!(hears(
            &line,
            json!({ "jsonrpc": "2.0", "id": 2, "error": refusal })
        ));
        assert_eq!(line.probed(), Probed::Late);
    }

    #[test]
    fn a_no_that_comes_too_late_is_passed_over() {
        let line = line();
        asks_for_both(&line);
        let no = json!({ "code": -32601, "message": "no such method" });
        assert!(!hears(
            &line,
            json!({ "jsonrpc": "2.0", "id": 1, "error": no })
        ));
        assert_eq!(line.probed(), Probed::InTime);
    }

    #[test]
    fn progress_is_a_share_where_there_is_a_whole() {
        let told = |json: &str| progress(serde_json::from_str(json).unwrap());
        let half =
            told(r#"{"progressToken": 1, "progress": 5, "total": 10, "message": "a\u001b b"}"#);
        assert_eq!(
            (half.message.as_str(), half.percentage),
            ("a b", Some(50.0))
        );
        let open = told(r#"{"progressToken": 1, "progress": 5}"#);
        assert_eq!((open.message.as_str(), open.percentage), ("5 so far", None));
        let zero = told(r#"{"progressToken": 1, "progress": 5, "total": 0}"#);
        assert_eq!(zero.percentage, None);
    }
}
