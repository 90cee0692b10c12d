//! One run of a process: requests in both directions over its pipes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_plugin::{LogLevel, PluginLog};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::host::Host;
use super::scope::Scope;
use crate::child::{Ended, Keeper, LineReader, LineWriter, Process};
use crate::text;

/// How long a process may take to answer a request that was cancelled. Then it is ended.
const GRACE: Duration = Duration::from_secs(2);

/// How long the way out may take before the process is ended.
const FAREWELL: Duration = Duration::from_millis(1_200);

/// How long to wait for the exit status of a process whose output or input was closed. The status and
/// the last lines of standard error are a better reason than "closed".
const EXIT_STATUS: Duration = Duration::from_secs(3);

/// How many requests of the process are answered at the same time.
const ANSWERING: usize = 64;

/// The longest message of an error.
const MESSAGE: usize = 2_000;

/// An error as JSON-RPC has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Value,
}

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The process answered with an error.
    #[error("{}", .0.message)]
    Error(RpcError),
    /// The process is gone.
    #[error("{0}")]
    Ended(String),
    /// It would wait for itself.
    #[error(
        "the plugin is waiting for a call of its own that leads back to it; set `concurrency` below \
         `[process]` to 2 or more"
    )]
    Recursion,
}

/// A request that was sent.
struct OpenRequest {
    reply: oneshot::Sender<Result<Value, RpcError>>,
    scope: Arc<Scope>,
    /// Cancelled when the answer arrives, even if the caller has stopped waiting.
    answered: CancellationToken,
}

/// A process that runs.
pub(super) struct Peer {
    /// `None` once closed, which closes the process's input.
    out: Mutex<Option<LineWriter>>,
    open: Mutex<HashMap<u64, OpenRequest>>,
    next: AtomicU64,
    slots: Arc<Semaphore>,
    pub(super) ended: Arc<Ended>,
    keeper: Keeper,
    log: PluginLog,
}

impl Peer {
    /// Speaks with a process that was started.
    pub(super) fn open(
        process: Process,
        ended: Arc<Ended>,
        host: Arc<Host>,
        limits: Limits,
        log: PluginLog,
    ) -> Arc<Self> {
        let peer = Arc::new(Self {
            out: Mutex::new(Some(LineWriter::start(process.stdin))),
            open: Mutex::default(),
            next: AtomicU64::new(1),
            slots: Arc::new(Semaphore::new(limits.concurrency)),
            ended,
            keeper: process.keeper,
            log,
        });
        let lines = LineReader::new(process.stdout, limits.max_message);
        tokio::spawn(Arc::clone(&peer).read(lines, host));
        peer
    }

    /// Sends a request and waits for its answer. Dropping the future sends `cancel` to the process,
    /// which is ended if it does not answer soon.
    pub(super) async fn request(
        self: &Arc<Self>,
        method: &str,
        params: Value,
        scope: Scope,
    ) -> Result<Value, Failure> {
        if self.slots.available_permits() == 0 && self.leads_back(&scope) {
            return Err(Failure::Recursion);
        }
        let slot = tokio::select! {
            slot = Arc::clone(&self.slots).acquire_owned() => match slot {
                Ok(slot) => slot,
                Err(_) => return Err(self.lost().await),
            },
            () = self.ended.wait() => return Err(self.lost().await),
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let (reply, answer) = oneshot::channel();
        let answered = CancellationToken::new();
        let request = OpenRequest {
            reply,
            scope: Arc::new(scope),
            answered: answered.clone(),
        };
        self.requests().insert(id, request);
        let mut waiting = Waiting {
            peer: Arc::clone(self),
            id,
            answered,
            slot: Some(slot),
        };
        let Some(writer) = self.writer() else {
            return Err(self.lost().await);
        };
        if writer.send(message.to_string().into_bytes()).await.is_err() {
            return Err(self.lost().await);
        }
        drop(writer);
        let answer = tokio::select! {
            biased;
            Ok(answer) = answer => answer,
            () = self.ended.wait() => return Err(self.lost().await),
        };
        waiting.slot = None;
        answer.map_err(Failure::Error)
    }

    /// Whether a request would wait for a call that waits for it.
    fn leads_back(&self, scope: &Scope) -> bool {
        let Some(id) = scope.call_id() else {
            return false;
        };
        let requests = self.requests();
        requests.values().any(|open| match &*open.scope {
            Scope::Call(ctx, _) => id
                .strip_prefix(&ctx.call_id.to_string())
                .is_some_and(|rest| rest.starts_with('.')),
            _ => false,
        })
    }

    /// What a request of the process is about: the request that it names, or the only one there is.
    pub(super) fn scope(&self, named: Option<&Value>) -> Result<Option<Arc<Scope>>, String> {
        let requests = self.requests();
        if let Some(named) = named.filter(|named| !named.is_null()) {
            let found = named.as_u64().and_then(|id| requests.get(&id));
            return match found {
                Some(open) => Ok(Some(Arc::clone(&open.scope))),
                None => Err(format!("`request` {named} is not open")),
            };
        }
        let mut open = requests.values();
        match (open.next(), open.next()) {
            (Some(_), Some(_)) => {
                Err("several requests are open: pass the id of one as `request`".to_owned())
            }
            (only, _) => Ok(only.map(|open| Arc::clone(&open.scope))),
        }
    }

    /// Ends the process: sends `shutdown`, closes its input, and kills it if it is still running.
    pub(super) async fn close(&self) {
        if let Some(writer) = self.writer() {
            writer.try_send(notification("shutdown", &json!({})));
        }
        self.out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.keeper.gone_within(FAREWELL).await;
        self.ended.over();
    }

    /// The reason why the process is gone. A closed pipe is noticed before the exit status is
    /// known, so this waits for the reader to record it.
    async fn lost(&self) -> Failure {
        let _ = tokio::time::timeout(EXIT_STATUS, self.ended.wait()).await;
        Failure::Ended(self.ended.why())
    }

    fn writer(&self) -> Option<LineWriter> {
        let out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.clone()
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<u64, OpenRequest>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the process says until it ends.
    async fn read(self: Arc<Self>, mut lines: LineReader, host: Arc<Host>) {
        let answering = Arc::new(Semaphore::new(ANSWERING));
        loop {
            let line = tokio::select! {
                line = lines.next() => line,
                () = self.ended.wait() => return,
            };
            match line {
                Ok(Some(line)) => self.take(line.trim_ascii(), &host, &answering).await,
                Ok(None) => {
                    // The process itself knows best why it ended.
                    let _ = tokio::time::timeout(EXIT_STATUS, self.keeper.gone()).await;
                    return self.end("the process closed its output");
                }
                Err(error) => return self.end(&format!("the process {error}")),
            }
        }
    }

    fn end(&self, why: &str) {
        self.ended.because(why);
        self.keeper.end();
    }

    /// Takes one message. What is no message is logged and passed over, because programs print.
    async fn take(self: &Arc<Self>, line: &[u8], host: &Arc<Host>, answering: &Arc<Semaphore>) {
        if line.is_empty() {
            return;
        }
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        let method = message["method"].as_str().map(str::to_owned);
        match (method, message.get("id").cloned()) {
            (Some(method), None) => host.notified(&method, &message["params"]),
            (Some(method), Some(id)) => {
                // Waiting here makes a process wait that asks too much.
                let Ok(permit) = Arc::clone(answering).acquire_owned().await else {
                    return;
                };
                let (peer, host) = (Arc::clone(self), Arc::clone(host));
                let params = message["params"].clone();
                tokio::spawn(async move {
                    let answer = tokio::select! {
                        answer = host.answer(&peer, &method, params) => answer,
                        () = peer.ended.wait() => return,
                    };
                    peer.answer(&id, answer).await;
                    drop(permit);
                });
            }
            (None, Some(id)) => self.answered(&id, &message),
            (None, None) => {
                let shown = String::from_utf8_lossy(&line[..line.len().min(400)]);
                let told = format!("not a message: {}", text::line(&shown, 200));
                self.log.write(LogLevel::Warning, "stdout", &told);
            }
        }
    }

    /// Answers a request of the process.
    async fn answer(&self, id: &Value, answer: Result<Value, RpcError>) {
        let message = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": {
                "code": error.code, "message": error.message, "data": error.data,
            } }),
        };
        if let Some(writer) = self.writer() {
            // A process that is gone needs no answer.
            let _ = writer.send(message.to_string().into_bytes()).await;
        }
    }

    /// The process has answered one of our requests.
    fn answered(&self, id: &Value, message: &Value) {
        let found = id.as_u64().and_then(|id| self.requests().remove(&id));
        let Some(open) = found else {
            let told = format!("an answer to a request that is not open: {id}");
            self.log.write(LogLevel::Warning, "stdout", &told);
            return;
        };
        open.answered.cancel();
        let answer = match message.get("error").filter(|error| !error.is_null()) {
            None => Ok(message["result"].clone()),
            Some(error) => {
                let said = error["message"]
                    .as_str()
                    .unwrap_or("an error without a message");
                Err(RpcError {
                    code: error["code"].as_i64().unwrap_or(-32_000),
                    message: text::clean(said, MESSAGE),
                    data: error["data"].clone(),
                })
            }
        };
        // The caller may have stopped waiting.
        let _ = open.reply.send(answer);
    }
}

/// What a process may send, and how much at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) concurrency: usize,
    pub(super) max_message: usize,
}

/// A caller that waits for an answer.
struct Waiting {
    peer: Arc<Peer>,
    id: u64,
    answered: CancellationToken,
    /// Held until the process has answered, so that a cancelled request still counts.
    slot: Option<OwnedSemaphorePermit>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        let (peer, answered) = (Arc::clone(&self.peer), self.answered.clone());
        if peer.ended.is_over() || answered.is_cancelled() {
            peer.requests().remove(&self.id);
            return;
        }
        if let Some(writer) = peer.writer() {
            writer.try_send(notification("cancel", &json!({ "id": self.id })));
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return peer.end("a request was dropped outside of the runtime");
        };
        runtime.spawn(async move {
            let is_over = tokio::select! {
                () = answered.cancelled() => true,
                () = peer.ended.wait() => true,
                () = tokio::time::sleep(GRACE) => false,
            };
            if !is_over {
                peer.end("it did not answer a request that was cancelled");
            }
            drop(slot);
        });
    }
}

fn notification(method: &str, params: &Value) -> Vec<u8> {
    let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    message.to_string().into_bytes()
}
