//! Calls from a surface. Each is the root of its own call tree.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::CallInfo;
use dodona_proto::{
    CallError, MethodDescriptor, MethodKind, PluginPath, Principal, Project, StreamId,
};
use dodona_store::journal::StreamHead;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{CallGuard, CallOrigin, CheckedCall, Dispatcher};
use crate::call::RunningCall;
use crate::call_tree::CallTree;
use crate::hub::HubInner;
use crate::reader_count::ReaderCount;
use crate::request::{Request, UnreadPolicy};
use crate::stream::{CallStream, Reader};

/// A call from a surface that passed all checks and has not started. It occupies its concurrency
/// slots until it ends or is dropped.
pub struct PreparedCall {
    hub: Arc<HubInner>,
    principal: Arc<Principal>,
    project: Option<Arc<Project>>,
    timeout: Option<Duration>,
    when_unread: UnreadPolicy,
    checked: CheckedCall,
}

impl Dispatcher<'_> {
    /// Checks a request. The shared beginning of every call from a surface.
    pub(crate) fn prepare(self, request: Request) -> Result<PreparedCall, CallError> {
        let project = self
            .hub
            .projects
            .get(&request.principal, request.project.as_ref())?;
        let checked = self.check(
            &request.principal,
            CallOrigin::Surface,
            project.as_deref(),
            &request.method,
            request.params,
        )?;
        Ok(PreparedCall {
            hub: Arc::clone(self.hub),
            principal: request.principal,
            project,
            timeout: request.timeout,
            when_unread: request.when_unread,
            checked,
        })
    }
}

impl PreparedCall {
    /// The method that will run.
    pub fn descriptor(&self) -> &MethodDescriptor {
        self.checked.route.descriptor()
    }

    /// Runs the call and returns its result: the value of a unary method, the last data item of a
    /// streaming one. Dropping the future cancels the call.
    pub async fn call(self) -> Result<Value, CallError> {
        let tree = CallTree::unwatched(StreamId::random(), self.principal.user.clone());
        let (call, checked) = self.into_root_call(Arc::new(tree));
        Dispatcher::dispatch(call, checked).await
    }

    /// Starts the call and returns a stream of its items. Each item is committed to the journal
    /// before a reader gets it. Dropping the stream cancels the call.
    pub async fn open(self) -> Result<CallStream, CallError> {
        let stream = StreamId::random();
        let head = StreamHead {
            stream,
            user: self.principal.user.clone(),
            project: self.project.as_ref().map(|project| project.id.clone()),
            surface: self.principal.surface,
            method: self.descriptor().name.clone(),
            params: self.checked.params.clone(),
            began: Timestamp::now(),
        };
        let (writer, begun) = self.hub.journal.begin_stream(head).await?;
        let items = writer.reader(0);
        let readers = ReaderCount::new(self.when_unread);
        let reader = Reader::new(stream, items, Some(readers.add_reader()));
        let user = self.principal.user.clone();
        let tree = Arc::new(CallTree::watched(stream, user, writer, readers));
        let (call, checked) = self.into_root_call(Arc::clone(&tree));
        // Entered before the task starts, so that a client that has the stream id can attach and
        // cancel at once.
        let guard = CallGuard::enter(call)?;
        tokio::spawn(run_until_abandoned(guard, checked));
        let opened = CallStream::new(reader, tree);
        // The call runs meanwhile. Its id is returned only after the commit, because a client that
        // knows it must find the stream again after a crash.
        begun.committed().await?;
        Ok(opened)
    }

    /// The root call, with the earliest of the deadlines that apply.
    fn into_root_call(self, tree: Arc<CallTree>) -> (Arc<RunningCall>, CheckedCall) {
        let route = &self.checked.route;
        let descriptor = route.descriptor();
        let default = match descriptor.kind {
            MethodKind::Unary => self.hub.config.unary_timeout,
            MethodKind::Streaming => self.hub.config.stream_timeout,
        };
        let limit = descriptor.timeout.unwrap_or(default);
        let started = Instant::now();
        let deadline = started + self.timeout.map_or(limit, |timeout| timeout.min(limit));
        let info = CallInfo {
            call_id: tree.stream.root_call(),
            path: PluginPath::root(&route.plugin),
            method: Some(descriptor.name.clone()),
            principal: self.principal,
            project: self.project,
            deadline: Some(deadline),
            snapshot: None,
            cancel: tree.cancel.clone(),
        };
        let keep_last = tree.writer.is_none() && descriptor.kind == MethodKind::Streaming;
        let callable = route.callable.clone();
        let call = RunningCall::root(self.hub, tree, info, started, keep_last, callable);
        (call, self.checked)
    }
}

/// Runs a streamed root call to its end, or cancels it when it has had no reader for the grace time.
async fn run_until_abandoned(guard: CallGuard, checked: CheckedCall) {
    let tree = Arc::clone(&guard.call().tree);
    let grace = guard.call().hub.config.stream_grace;
    let mut run = std::pin::pin!(Dispatcher::dispatch_entered(guard, checked));
    if let Some(readers) = &tree.readers {
        tokio::select! {
            biased;
            _ = &mut run => return,
            () = readers.wait_until_abandoned(grace) => tree.cancel("the stream had no reader"),
        }
    }
    // The outcome is in the stream.
    let _ = run.await;
}
