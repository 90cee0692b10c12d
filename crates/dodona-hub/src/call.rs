//! One running call: who makes it, its deadline, its items, and the calls it makes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_plugin::{
    BoxFuture, CallCtx, CallInfo, Caller, ItemStream, Params, ScopeWork, ToolReply, ToolRequest,
    ToolStart,
};
use dodona_proto::{
    CallError, CallSummary, DoneStatus, ErrorCode, HubStreamItem, ItemBody, MethodDescriptor,
    MethodKind, MethodName, PathError, PluginName, PluginPath, QuerySnapshot,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use crate::call_tree::CallTree;
use crate::deadline::CallDeadline;
use crate::dispatch::{CallOrigin, CheckedCall, Dispatcher, PendingNotifications};
use crate::hub::HubInner;
use crate::nested_items::{self, ItemSender};

/// A running call, or a named part of one (see `CallCtx::scope`).
pub(crate) struct RunningCall {
    pub(crate) info: CallInfo,
    pub(crate) hub: Arc<HubInner>,
    pub(crate) tree: Arc<CallTree>,
    parent: Option<Arc<RunningCall>>,
    /// No more children are accepted. Changed only under the lock of the tree.
    is_closed: AtomicBool,
    /// The call is no longer in the tree.
    is_removed: AtomicBool,
    /// The deadline of this call alone; its ancestors have their own.
    pub(crate) deadline: CallDeadline,
    /// The timeout of this call alone, if the caller or the method sets one. For messages.
    pub(crate) timeout: Option<Duration>,
    /// In-process readers of this call and of its ancestors. They get every item of this call.
    readers: Vec<ItemSender>,
    /// The newest data item is kept as the result.
    keep_last: bool,
    /// The plugins that may be called from here; `None` means any. A child never has more.
    callable: Option<Arc<BTreeSet<PluginName>>>,
    child_count: AtomicU32,
    started: Instant,
    state: Mutex<CallState>,
}

#[derive(Default)]
pub(crate) struct CallState {
    /// `Done` was written; no item may follow.
    has_ended: bool,
    last_data: Option<Value>,
    notifications: Vec<PendingNotifications>,
    /// The end of a tool call was reported to hooks and to the bus.
    pub(crate) is_reported: bool,
    /// Runs after the gates of a tool call have passed.
    pub(crate) on_start: Option<ToolStart>,
    /// How long the method of a tool call ran; `None` if it never started.
    pub(crate) ran: Option<Duration>,
}

/// When readers get an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// As soon as it is committed.
    Now,
    /// Together with the next item, if that comes soon. Saves a commit for the last item of a call.
    WithNextItem,
}

/// Options of a nested call.
#[derive(Default)]
struct CallOptions {
    timeout: Option<Duration>,
    reader: Option<ItemSender>,
    snapshot: Option<Arc<QuerySnapshot>>,
}

/// How a child differs from its parent.
pub(crate) struct ChildSpec<'a> {
    /// Its segment in the path.
    pub(crate) name: &'a str,
    /// `None` for a named part of a call.
    pub(crate) method: Option<&'a MethodName>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) reader: Option<ItemSender>,
    pub(crate) keep_last: bool,
    /// Default: the snapshot of the parent.
    pub(crate) snapshot: Option<Arc<QuerySnapshot>>,
    pub(crate) callable: Option<Arc<BTreeSet<PluginName>>>,
}

impl RunningCall {
    /// A call from a surface.
    pub(crate) fn root(
        hub: Arc<HubInner>,
        tree: Arc<CallTree>,
        info: CallInfo,
        started: Instant,
        keep_last: bool,
        callable: Option<Arc<BTreeSet<PluginName>>>,
    ) -> Arc<Self> {
        let deadline = info.deadline;
        Arc::new(Self {
            keep_last,
            callable,
            ..Self::new(hub, tree, info, started, deadline)
        })
    }

    fn new(
        hub: Arc<HubInner>,
        tree: Arc<CallTree>,
        info: CallInfo,
        started: Instant,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            info,
            hub,
            tree,
            parent: None,
            is_closed: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
            deadline: CallDeadline::new(deadline),
            timeout: None,
            readers: Vec::new(),
            keep_last: false,
            callable: None,
            child_count: AtomicU32::new(0),
            started,
            state: Mutex::default(),
        }
    }

    /// Creates a child of this call. It enters the tree when it is dispatched.
    pub(crate) fn child(self: &Arc<Self>, spec: ChildSpec<'_>) -> Result<Arc<Self>, CallError> {
        drop(self.lock_unless_ended()?);
        let ordinal = self.child_count.fetch_add(1, Ordering::Relaxed) + 1;
        let too_deep = || CallError::new(ErrorCode::TooDeep, "calls are nested too deeply");
        let call_id = self.info.call_id.child(ordinal).ok_or_else(too_deep)?;
        let path = self
            .child_path_parent(spec.method)
            .join(spec.name)
            .map_err(|error| match error {
                PathError::TooDeep => too_deep(),
                PathError::Segment(error) => CallError::new(ErrorCode::Internal, error.to_string()),
            })?;
        let started = Instant::now();
        let deadline = spec.timeout.map(|timeout| started + timeout);
        let info = CallInfo {
            call_id,
            path,
            method: spec.method.cloned(),
            principal: Arc::clone(&self.info.principal),
            project: self.info.project.clone(),
            deadline: deadline.into_iter().chain(self.info.deadline).min(),
            snapshot: spec.snapshot.or_else(|| self.info.snapshot.clone()),
            cancel: self.info.cancel.child_token(),
        };
        let (hub, tree) = (Arc::clone(&self.hub), Arc::clone(&self.tree));
        Ok(Arc::new(Self {
            parent: Some(Arc::clone(self)),
            readers: self.readers.iter().cloned().chain(spec.reader).collect(),
            keep_last: spec.keep_last,
            timeout: spec.timeout,
            callable: spec.callable,
            ..Self::new(hub, tree, info, started, deadline)
        }))
    }

    /// The path that a child's segment is appended to. For a named part of a plugin this skips a
    /// method of the same plugin that called another one, so that the path names the plugin once.
    fn child_path_parent(&self, method: Option<&MethodName>) -> &PluginPath {
        let plugin = |call: &Self| {
            let mut calls = call.self_and_ancestors();
            let method = calls.find_map(|call| call.info.method.clone());
            method.map(|method| method.plugin().to_owned())
        };
        match &self.parent {
            Some(parent) if method.is_none() && plugin(parent) == plugin(self) => &parent.info.path,
            _ => &self.info.path,
        }
    }

    pub(crate) fn ctx(self: &Arc<Self>) -> CallCtx {
        CallCtx::new(Arc::clone(self) as Arc<dyn Caller>)
    }

    pub(crate) fn self_and_ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |call| call.parent.as_deref())
    }

    pub(crate) fn is_root(&self) -> bool {
        self.info.call_id.depth() == 0
    }

    pub(crate) fn has_children(&self) -> bool {
        self.child_count.load(Ordering::Relaxed) > 0
    }

    /// Whether an item of this call would be journaled or read. Without a reader items are dropped.
    pub(crate) fn has_reader(&self) -> bool {
        self.tree.writer.is_some() || !self.readers.is_empty()
    }

    /// The newest data item, if `keep_last` is set.
    pub(crate) fn take_last_data(&self) -> Option<Value> {
        self.state().last_data.take()
    }

    /// Stores notifications for the agent that made the call.
    pub(crate) fn add_notifications(&self, pending: PendingNotifications) {
        self.state().notifications.push(pending);
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn summary(&self) -> CallSummary {
        let elapsed = self.elapsed();
        CallSummary {
            call_id: self.info.call_id,
            plugin_path: self.info.path.clone(),
            method: self.info.method.clone(),
            user: self.info.principal.user.clone(),
            // Computed here and not at the start: reading the wall clock is not free, and few calls
            // are ever listed.
            started: Timestamp::now() - elapsed,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Rejects children from now on. Call only under the lock of the tree.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn mark_removed(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }

    /// Whether the parent still accepts children. Call only under the lock of the tree.
    pub(crate) fn has_open_parent(&self) -> bool {
        self.parent.as_ref().is_none_or(|parent| {
            !parent.is_closed.load(Ordering::Relaxed) && !parent.state().has_ended
        })
    }

    /// Sends an item to the readers and to the journal. Waits while one of them is behind.
    pub(crate) async fn send(&self, body: ItemBody, flush: Flush) -> Result<(), CallError> {
        // A method that only sends items has no other await point at which it could be cancelled.
        consume_budget().await;
        self.send_to_readers(&body).await?;
        self.keep_data(&body)?;
        self.journal_item(body, flush).await
    }

    /// Sends an item that is not part of the result, such as an approval request.
    pub(crate) async fn send_notice(
        &self,
        body: impl FnOnce() -> ItemBody,
    ) -> Result<(), CallError> {
        if !self.has_reader() {
            return Ok(());
        }
        let body = body();
        self.send_to_readers(&body).await?;
        self.journal_item(body, Flush::Now).await
    }

    async fn send_to_readers(&self, body: &ItemBody) -> Result<(), CallError> {
        for reader in &self.readers {
            // A reader that was dropped has already cancelled this call.
            if let Some(permit) = reader.reserve().await {
                let _open = self.lock_unless_ended()?;
                reader.send(self.item(body.clone()), Some(permit));
            }
        }
        Ok(())
    }

    /// Sends the error of a call before its `Done`. Does not wait for readers: a reader that does
    /// not read must not keep a call from ending.
    pub(crate) async fn send_error(&self, body: ItemBody) -> Result<(), CallError> {
        for reader in &self.readers {
            let _open = self.lock_unless_ended()?;
            reader.send(self.item(body.clone()), None);
        }
        self.journal_item(body, Flush::WithNextItem).await
    }

    async fn journal_item(&self, body: ItemBody, flush: Flush) -> Result<(), CallError> {
        let Some(writer) = &self.tree.writer else {
            return Ok(());
        };
        let ready = writer
            .reserve(self.info.call_id, &self.info.path, body)
            .await?;
        // Sent under the lock, so that no item can follow `Done`.
        let _open = self.lock_unless_ended()?;
        match flush {
            Flush::Now => ready.send(),
            Flush::WithNextItem => ready.with_next().send(),
        }
        self.hub.items.increment(1);
        Ok(())
    }

    fn keep_data(&self, body: &ItemBody) -> Result<(), CallError> {
        let mut state = self.lock_unless_ended()?;
        if self.keep_last
            && let ItemBody::Data { data, .. } = body
        {
            state.last_data = Some(data.clone());
        }
        Ok(())
    }

    /// Writes `Done`. Does nothing if it was written before.
    pub(crate) fn write_done(&self, status: DoneStatus, reason: Option<&str>) {
        let mut state = self.state();
        if std::mem::replace(&mut state.has_ended, true) {
            return;
        }
        let reason = reason.map(str::to_owned);
        for reader in &self.readers {
            let reason = reason.clone();
            reader.send(self.item(ItemBody::Done { status, reason }), None);
        }
        if let Some(writer) = &self.tree.writer {
            writer.end(self.info.call_id, &self.info.path, status, reason);
        }
    }

    /// Lets in-process readers catch up before the call ends, for at most `timeout`.
    pub(crate) async fn wait_for_readers(&self, timeout: Duration) {
        if self.readers.is_empty() {
            return;
        }
        let all = async {
            for reader in &self.readers {
                reader.reserve().await;
            }
        };
        // Boxed, because few calls have in-process readers and all would hold the memory.
        let _ = Box::pin(tokio::time::timeout(timeout, all)).await;
    }

    /// An item of this call. The reader sets `seq`.
    fn item(&self, body: ItemBody) -> HubStreamItem {
        HubStreamItem {
            call_id: self.info.call_id,
            seq: 0,
            plugin_path: self.info.path.clone(),
            body,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state, so that `Done` cannot be written meanwhile. Fails if it was written.
    fn lock_unless_ended(&self) -> Result<MutexGuard<'_, CallState>, CallError> {
        let state = self.state();
        if state.has_ended {
            return Err(CallError::new(ErrorCode::Cancelled, "the call has ended"));
        }
        Ok(state)
    }

    /// Checks a nested call and creates it.
    fn check_child(
        self: &Arc<Self>,
        method: &str,
        params: Params,
        options: CallOptions,
    ) -> Result<(Arc<Self>, CheckedCall), CallError> {
        drop(self.lock_unless_ended()?);
        self.check_callable(method)?;
        let checked = self.hub.dispatcher().check(
            &self.info.principal,
            CallOrigin::NestedCall,
            self.info.project.as_deref(),
            method,
            params,
        )?;
        let descriptor = checked.route.descriptor();
        let child = self.child(ChildSpec {
            name: checked.route.plugin.as_str(),
            method: Some(&descriptor.name),
            timeout: descriptor.timeout.into_iter().chain(options.timeout).min(),
            keep_last: options.reader.is_none() && descriptor.kind == MethodKind::Streaming,
            reader: options.reader,
            snapshot: options.snapshot,
            callable: self.callable_from_child(checked.route.callable.as_ref()),
        })?;
        Ok((child, checked))
    }

    /// Rejects a method of a plugin that may not be called from here.
    fn check_callable(&self, method: &str) -> Result<(), CallError> {
        let plugin = method.split('.').next().unwrap_or_default();
        match &self.callable {
            Some(callable) if !callable.contains(plugin) => {
                let path = &self.info.path;
                let message = format!("`{path}` may not call plugin `{plugin}`");
                Err(CallError::new(ErrorCode::Forbidden, message).hint(format!(
                    "add `uses = [\"call:{plugin}\"]` to the calling plugin's manifest and grant it with `dodona plugins grant`"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The plugins that a child may call: at most those that this call may call.
    fn callable_from_child(
        &self,
        own: Option<&Arc<BTreeSet<PluginName>>>,
    ) -> Option<Arc<BTreeSet<PluginName>>> {
        match (&self.callable, own) {
            (None, own) => own.cloned(),
            (here, None) => here.clone(),
            (Some(here), Some(own)) => {
                let both = here.intersection(own).cloned().collect();
                Some(Arc::new(both))
            }
        }
    }
}

impl Caller for RunningCall {
    fn info(&self) -> &CallInfo {
        &self.info
    }

    fn call(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<Value, CallError>> {
        // Checked before the future is boxed, so that the box holds only the running call.
        match self.check_child(method, params, CallOptions::default()) {
            Ok((child, checked)) => Box::pin(Dispatcher::dispatch(child, checked)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn open(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<ItemStream, CallError>> {
        let (sender, receiver) = nested_items::channel();
        let options = CallOptions {
            reader: Some(sender),
            ..CallOptions::default()
        };
        let opened = self
            .check_child(method, params, options)
            .and_then(|(child, checked)| receiver.spawn_call(child, checked));
        Box::pin(std::future::ready(opened))
    }

    fn call_tool(self: Arc<Self>, method: &str, request: ToolRequest) -> BoxFuture<'_, ToolReply> {
        let options = CallOptions {
            timeout: request.timeout,
            snapshot: request.snapshot,
            reader: None,
        };
        let checked = self.check_child(method, request.params, options);
        let on_start = request.on_start;
        Box::pin(async move {
            let (child, checked) = match checked {
                Ok(checked) => checked,
                Err(error) => {
                    return ToolReply {
                        outcome: Err(error),
                        has_run: false,
                        duration: Duration::ZERO,
                        notifications: Vec::new(),
                        is_reported: false,
                        renderer: None,
                    };
                }
            };
            child.state().on_start = on_start;
            let renderer = checked.route.method.renderer();
            let outcome = Dispatcher::dispatch(Arc::clone(&child), checked).await;
            let (pending, is_reported, ran) = {
                let mut state = child.state();
                let pending = std::mem::take(&mut state.notifications);
                (pending, state.is_reported, state.ran)
            };
            ToolReply {
                outcome,
                has_run: ran.is_some(),
                duration: ran.unwrap_or_default(),
                notifications: (pending.into_iter())
                    .flat_map(PendingNotifications::take)
                    .collect(),
                is_reported,
                renderer,
            }
        })
    }

    fn methods(&self) -> Vec<Arc<MethodDescriptor>> {
        let project = self.info.project.as_ref().map(|project| &project.id);
        let mut methods = self.hub.methods(&self.info.principal, project);
        if let Some(callable) = &self.callable {
            methods.retain(|method| callable.contains(method.name.plugin()));
        }
        methods
    }

    fn scope<'a>(
        self: Arc<Self>,
        name: &'a str,
        work: ScopeWork<'a>,
    ) -> BoxFuture<'a, Result<Value, CallError>> {
        let spec = ChildSpec {
            name,
            method: None,
            timeout: None,
            reader: None,
            keep_last: false,
            snapshot: None,
            callable: self.callable.clone(),
        };
        match self.child(spec) {
            Ok(child) => {
                let ctx = child.ctx();
                let work = Box::pin(async move { work(ctx).await });
                Box::pin(Dispatcher::dispatch_scope(child, work))
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn emit(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>> {
        self.emit_unless_done(body, Flush::Now)
    }

    fn emit_with_next(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>> {
        self.emit_unless_done(body, Flush::WithNextItem)
    }
}

impl RunningCall {
    /// Sends an item of a plugin. A plugin ends its call by returning, not with an item.
    fn emit_unless_done(
        &self,
        body: ItemBody,
        flush: Flush,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        if matches!(body, ItemBody::Done { .. }) {
            let error = CallError::new(
                ErrorCode::Internal,
                "a plugin cannot emit `Done`; it ends its call by returning",
            );
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(self.send(body, flush))
    }
}
