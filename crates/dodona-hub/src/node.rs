//! One running call: its facts, and its way to others.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_plugin::{
    BoxFuture, CallCtx, CallInfo, Caller, ItemStream, Params, ScopeWork, ToolReply, ToolRequest,
};
use dodona_proto::{
    CallError, CallSummary, DoneStatus, ErrorCode, Item, ItemBody, MethodDescriptor, MethodKind,
    MethodName, PathError, PluginName, PluginPath, QuerySnapshot,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use crate::admit::{Admitted, Reach};
use crate::hub::Core;
use crate::pause::Clock;
use crate::run;
use crate::tap::{self, Tap};
use crate::tool::Undelivered;
use crate::tree::Root;

/// A running call, or a named inner part of one.
pub(crate) struct Node {
    pub(crate) info: CallInfo,
    pub(crate) core: Arc<Core>,
    pub(crate) root: Arc<Root>,
    /// The call that made this one.
    parent: Option<Arc<Node>>,
    /// Whether it takes no more calls below it. Guarded by the tree's lock.
    closing: AtomicBool,
    /// Whether it is no longer in the tree.
    left: AtomicBool,
    /// The time of this call itself; the call above it has its own.
    pub(crate) clock: Clock,
    /// How long this call itself may take, where that was said.
    pub(crate) timeout: Option<Duration>,
    /// In-process consumers of this call's items, and of the calls above.
    taps: Vec<Tap>,
    /// Whether the newest data is kept as the result.
    keep_last: bool,
    /// The plugins that may be called from here; `None` is any. It only shrinks on the way down.
    callable: Option<Arc<BTreeSet<PluginName>>>,
    children: AtomicU32,
    since: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    ended: bool,
    last: Option<Value>,
    /// Notifications for the agent that made the call.
    undelivered: Vec<Undelivered>,
    /// Whether the end of a tool's call was reported to hooks and to the bus.
    pub(crate) is_reported: bool,
}

/// When readers are to see an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Haste {
    /// As soon as it is stored.
    Now,
    /// Together with what follows it, if that comes soon.
    WithNext,
}

/// What the one who makes a call says about it.
#[derive(Default)]
struct How {
    timeout: Option<Duration>,
    tap: Option<Tap>,
    snapshot: Option<Arc<QuerySnapshot>>,
}

/// How a child differs from its parent.
pub(crate) struct ChildSpec<'a> {
    /// Its name in the path.
    pub(crate) name: &'a str,
    pub(crate) method: Option<&'a MethodName>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) tap: Option<Tap>,
    pub(crate) keep_last: bool,
    /// How the query stands, where the parent says.
    pub(crate) snapshot: Option<Arc<QuerySnapshot>>,
    /// The plugins that may be called from it.
    pub(crate) callable: Option<Arc<BTreeSet<PluginName>>>,
}

impl Node {
    /// The node of a call from outside.
    pub(crate) fn root(
        core: Arc<Core>,
        root: Arc<Root>,
        info: CallInfo,
        since: Instant,
        keep_last: bool,
        callable: Option<Arc<BTreeSet<PluginName>>>,
    ) -> Arc<Self> {
        let deadline = info.deadline;
        let node = Self::new(core, root, info, since, deadline);
        Arc::new(Self {
            keep_last,
            callable,
            ..node
        })
    }

    fn new(
        core: Arc<Core>,
        root: Arc<Root>,
        info: CallInfo,
        since: Instant,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            info,
            core,
            root,
            parent: None,
            closing: AtomicBool::new(false),
            left: AtomicBool::new(false),
            clock: Clock::new(deadline),
            timeout: None,
            taps: Vec::new(),
            keep_last: false,
            callable: None,
            children: AtomicU32::new(0),
            since,
            state: Mutex::default(),
        }
    }

    /// The node of a call that this one makes.
    pub(crate) fn child(self: &Arc<Self>, spec: ChildSpec<'_>) -> Result<Arc<Self>, CallError> {
        drop(self.unended()?);
        let ordinal = self.children.fetch_add(1, Ordering::Relaxed) + 1;
        let too_deep = || CallError::new(ErrorCode::TooDeep, "calls nest too deep");
        let call_id = self.info.call_id.child(ordinal).ok_or_else(too_deep)?;
        let path = self
            .place(spec.method)
            .join(spec.name)
            .map_err(|error| match error {
                PathError::TooDeep => too_deep(),
                PathError::Segment(error) => CallError::new(ErrorCode::Internal, error.to_string()),
            })?;
        let since = Instant::now();
        let deadline = spec.timeout.map(|timeout| since + timeout);
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
        let (core, root) = (Arc::clone(&self.core), Arc::clone(&self.root));
        Ok(Arc::new(Self {
            parent: Some(Arc::clone(self)),
            taps: self.taps.iter().cloned().chain(spec.tap).collect(),
            keep_last: spec.keep_last,
            timeout: spec.timeout,
            callable: spec.callable,
            ..Self::new(core, root, info, since, deadline)
        }))
    }

    /// Where a child's path begins. A part that a plugin names of itself stands below the plugin:
    /// a method of its own that it called to get there is no step of the way.
    fn place(&self, method: Option<&MethodName>) -> &PluginPath {
        let own = |node: &Self| {
            let mut lineage = node.lineage();
            let method = lineage.find_map(|node| node.info.method.clone());
            method.map(|method| method.plugin().to_owned())
        };
        match &self.parent {
            Some(parent) if method.is_none() && own(parent) == own(self) => &parent.info.path,
            _ => &self.info.path,
        }
    }

    /// What a method gets.
    pub(crate) fn ctx(self: &Arc<Self>) -> CallCtx {
        CallCtx::new(Arc::clone(self) as Arc<dyn Caller>)
    }

    /// This call and those above it.
    pub(crate) fn lineage(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |node| node.parent.as_deref())
    }

    pub(crate) fn is_root(&self) -> bool {
        self.info.call_id.depth() == 0
    }

    pub(crate) fn has_children(&self) -> bool {
        self.children.load(Ordering::Relaxed) > 0
    }

    /// Whether anybody would see an item of this call.
    pub(crate) fn is_watched(&self) -> bool {
        self.root.writer.is_some() || !self.taps.is_empty()
    }

    /// The newest data, where it was to be kept.
    pub(crate) fn take_last(&self) -> Option<Value> {
        self.state().last.take()
    }

    /// Leaves notifications for the agent that made the call.
    pub(crate) fn notify(&self, undelivered: Undelivered) {
        self.state().undelivered.push(undelivered);
    }

    /// How long the call has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    pub(crate) fn summary(&self) -> CallSummary {
        let elapsed = self.elapsed();
        CallSummary {
            call_id: self.info.call_id,
            plugin_path: self.info.path.clone(),
            method: self.info.method.clone(),
            user: self.info.principal.user.clone(),
            // Worked out here: few calls are looked at, and asking the clock is not free.
            started: Timestamp::now() - elapsed,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Makes sure that nothing is called from here any more. Under the tree's lock.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Notes that it is no longer in the tree.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// Whether the call that made this one takes it in. Under the tree's lock.
    pub(crate) fn is_wanted(&self) -> bool {
        self.parent
            .as_ref()
            .is_none_or(|parent| !parent.closing.load(Ordering::Relaxed) && !parent.state().ended)
    }

    /// Sends an item to whoever watches. Waits while the journal or a consumer is behind.
    pub(crate) async fn send(&self, body: ItemBody, haste: Haste) -> Result<(), CallError> {
        // A method that does nothing but send has no other moment at which it could be stopped.
        consume_budget().await;
        self.tap(&body).await?;
        self.keep(&body)?;
        self.store(body, haste).await
    }

    /// Sends something about the call that is not a part of its result.
    pub(crate) async fn notice(&self, body: impl FnOnce() -> ItemBody) -> Result<(), CallError> {
        if !self.is_watched() {
            return Ok(());
        }
        let body = body();
        self.tap(&body).await?;
        self.store(body, Haste::Now).await
    }

    async fn tap(&self, body: &ItemBody) -> Result<(), CallError> {
        for tap in &self.taps {
            // A consumer that went away is cancelling this call already.
            if let Some(room) = tap.room().await {
                let _open = self.unended()?;
                tap.put(self.item(body.clone()), Some(room));
            }
        }
        Ok(())
    }

    /// Sends the error a call ends with. Does not wait for consumers: one that does not read must
    /// not keep a call from ending.
    pub(crate) async fn send_error(&self, body: ItemBody) -> Result<(), CallError> {
        for tap in &self.taps {
            let _open = self.unended()?;
            tap.put(self.item(body.clone()), None);
        }
        // The terminal follows.
        self.store(body, Haste::WithNext).await
    }

    /// Journals the item where the stream is.
    async fn store(&self, body: ItemBody, haste: Haste) -> Result<(), CallError> {
        let Some(writer) = &self.root.writer else {
            return Ok(());
        };
        let ready = writer
            .reserve(self.info.call_id, &self.info.path, body)
            .await?;
        // Under the lock, so that nothing can follow the terminal.
        let _open = self.unended()?;
        match haste {
            Haste::Now => ready.send(),
            Haste::WithNext => ready.with_next().send(),
        }
        self.core.items.increment(1);
        Ok(())
    }

    /// Keeps data where it is the result.
    fn keep(&self, body: &ItemBody) -> Result<(), CallError> {
        let mut state = self.unended()?;
        if self.keep_last
            && let ItemBody::Data { data, .. } = body
        {
            state.last = Some(data.clone());
        }
        Ok(())
    }

    /// Writes the terminal, unless that has been done.
    pub(crate) fn end(&self, status: DoneStatus, reason: Option<&str>) {
        let mut state = self.state();
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        let reason = reason.map(str::to_owned);
        for tap in &self.taps {
            let reason = reason.clone();
            tap.put(self.item(ItemBody::Done { status, reason }), None);
        }
        if let Some(writer) = &self.root.writer {
            writer.end(self.info.call_id, &self.info.path, status, reason);
        }
    }

    /// Lets in-process consumers catch up before the call ends, but not for long.
    pub(crate) async fn make_room(&self, patience: Duration) {
        if self.taps.is_empty() {
            return;
        }
        let all = async {
            for tap in &self.taps {
                tap.room().await;
            }
        };
        let _ = tokio::time::timeout(patience, all).await;
    }

    /// Numbered by whoever reads it.
    fn item(&self, body: ItemBody) -> Item {
        Item {
            call_id: self.info.call_id,
            seq: 0,
            plugin_path: self.info.path.clone(),
            body,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds off the terminal; fails when there is one.
    fn unended(&self) -> Result<MutexGuard<'_, State>, CallError> {
        let state = self.state();
        if state.ended {
            return Err(CallError::new(ErrorCode::Cancelled, "the call has ended"));
        }
        Ok(state)
    }

    /// Checks a call this one wants to make, and makes its node.
    fn admit_child(
        self: &Arc<Self>,
        method: &str,
        params: Params,
        how: How,
    ) -> Result<(Arc<Self>, Admitted), CallError> {
        drop(self.unended()?);
        self.may_call(method)?;
        let admitted = self.core.admit(
            &self.info.principal,
            Reach::Inside,
            self.info.project.as_deref(),
            method,
            params,
        )?;
        let descriptor = admitted.route.descriptor();
        let node = self.child(ChildSpec {
            name: admitted.route.plugin.as_str(),
            method: Some(&descriptor.name),
            timeout: descriptor.timeout.into_iter().chain(how.timeout).min(),
            keep_last: how.tap.is_none() && descriptor.kind == MethodKind::Streaming,
            tap: how.tap,
            snapshot: how.snapshot,
            callable: self.callable_below(admitted.route.callable.as_ref()),
        })?;
        Ok((node, admitted))
    }

    /// Refuses a plugin that may not be called from here.
    fn may_call(&self, method: &str) -> Result<(), CallError> {
        let plugin = method.split('.').next().unwrap_or_default();
        match &self.callable {
            Some(callable) if !callable.contains(plugin) => {
                let path = &self.info.path;
                let message = format!("`{path}` may not call plugin `{plugin}`");
                Err(CallError::new(ErrorCode::Forbidden, message).hint(format!(
                    "a plugin that needs it says `uses = [\"call:{plugin}\"]` in its manifest, and is granted it with `dodona plugins grant`"
                )))
            }
            _ => Ok(()),
        }
    }

    /// What a call from here may call: never more than may be called from here.
    fn callable_below(
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

impl Caller for Node {
    fn info(&self) -> &CallInfo {
        &self.info
    }

    fn call(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<Value, CallError>> {
        // Admitted here and not in the future: the box then holds the run alone.
        match self.admit_child(method, params, How::default()) {
            Ok((node, admitted)) => Box::pin(run::admitted(node, admitted)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn open(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<ItemStream, CallError>> {
        let (tap, items) = tap::new();
        let how = How {
            tap: Some(tap),
            ..How::default()
        };
        let opened = self
            .admit_child(method, params, how)
            .and_then(|(node, admitted)| items.watch(node, admitted));
        Box::pin(std::future::ready(opened))
    }

    fn call_tool(self: Arc<Self>, method: &str, request: ToolRequest) -> BoxFuture<'_, ToolReply> {
        let how = How {
            timeout: request.timeout,
            snapshot: request.snapshot,
            tap: None,
        };
        let admitted = self.admit_child(method, request.params, how);
        Box::pin(async move {
            match admitted {
                Ok((node, admitted)) => {
                    let outcome = run::admitted(Arc::clone(&node), admitted).await;
                    let (undelivered, is_reported) = {
                        let mut state = node.state();
                        let undelivered = std::mem::take(&mut state.undelivered);
                        (undelivered, state.is_reported)
                    };
                    ToolReply {
                        outcome,
                        notifications: (undelivered.into_iter())
                            .flat_map(Undelivered::take)
                            .collect(),
                        is_reported,
                    }
                }
                Err(error) => ToolReply {
                    outcome: Err(error),
                    notifications: Vec::new(),
                    is_reported: false,
                },
            }
        })
    }

    fn methods(&self) -> Vec<Arc<MethodDescriptor>> {
        let project = self.info.project.as_ref().map(|project| &project.id);
        let mut methods = self.core.methods(&self.info.principal, project);
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
            tap: None,
            keep_last: false,
            snapshot: None,
            callable: self.callable.clone(),
        };
        match self.child(spec) {
            Ok(node) => {
                let ctx = node.ctx();
                Box::pin(run::scope(node, Box::pin(async move { work(ctx).await })))
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn emit(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>> {
        self.emit_as(body, Haste::Now)
    }

    fn emit_with_next(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>> {
        self.emit_as(body, Haste::WithNext)
    }
}

impl Node {
    fn emit_as(&self, body: ItemBody, haste: Haste) -> BoxFuture<'_, Result<(), CallError>> {
        if matches!(body, ItemBody::Done { .. }) {
            let error = CallError::new(
                ErrorCode::Internal,
                "a plugin cannot end its call by an item: it returns",
            );
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(self.send(body, haste))
    }
}
