//! One running call: its facts, and its way to others.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dodona_plugin::{BoxFuture, CallCtx, CallInfo, Caller, ItemStream, Params, ScopeWork};
use dodona_proto::{
    CallError, CallId, CallSummary, DoneStatus, ErrorCode, Item, ItemBody, MethodKind, MethodName,
    PluginPath,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::admit::{Admitted, Reach};
use crate::hub::Core;
use crate::run;
use crate::stream;
use crate::tree::Root;

/// A running call, or a named inner part of one.
pub(crate) struct Node {
    pub(crate) info: CallInfo,
    pub(crate) core: Arc<Core>,
    pub(crate) root: Arc<Root>,
    /// When this call itself must be over, where that is sooner than for the call above.
    pub(crate) own_deadline: Option<Instant>,
    /// In-process consumers of this call's items, and of the calls above.
    taps: Vec<Tap>,
    /// Whether the newest data is kept as the result.
    keep_last: bool,
    children: AtomicU32,
    started: Timestamp,
    since: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ended: bool,
    last: Option<Value>,
}

/// An in-process consumer of items. Its items are numbered for it alone.
#[derive(Clone)]
pub(crate) struct Tap {
    sender: mpsc::Sender<Item>,
    seq: Arc<AtomicU64>,
}

impl Tap {
    pub(crate) fn new(sender: mpsc::Sender<Item>) -> Self {
        Self {
            sender,
            seq: Arc::default(),
        }
    }

    fn item(&self, call_id: CallId, path: &PluginPath, body: ItemBody) -> Item {
        let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
        Item {
            call_id,
            seq,
            plugin_path: path.clone(),
            body,
        }
    }
}

/// How a child differs from its parent.
pub(crate) struct ChildSpec<'a> {
    /// Its name in the path.
    pub(crate) name: &'a str,
    pub(crate) method: Option<&'a MethodName>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) tap: Option<Tap>,
    pub(crate) keep_last: bool,
}

impl Node {
    /// The node of a call from outside.
    pub(crate) fn root(
        core: Arc<Core>,
        root: Arc<Root>,
        info: CallInfo,
        keep_last: bool,
    ) -> Arc<Self> {
        let own_deadline = info.deadline;
        Arc::new(Self::new(
            core,
            root,
            info,
            own_deadline,
            Vec::new(),
            keep_last,
        ))
    }

    fn new(
        core: Arc<Core>,
        root: Arc<Root>,
        info: CallInfo,
        own_deadline: Option<Instant>,
        taps: Vec<Tap>,
        keep_last: bool,
    ) -> Self {
        let (children, state) = (AtomicU32::new(0), Mutex::default());
        let (started, since) = (Timestamp::now(), Instant::now());
        Self {
            info,
            core,
            root,
            own_deadline,
            taps,
            keep_last,
            children,
            started,
            since,
            state,
        }
    }

    /// The node of a call that this one makes.
    pub(crate) fn child(&self, spec: ChildSpec<'_>) -> Result<Arc<Self>, CallError> {
        let ordinal = self.children.fetch_add(1, Ordering::Relaxed) + 1;
        let too_deep = || CallError::new(ErrorCode::TooDeep, "calls nest too deep");
        let call_id = self.info.call_id.child(ordinal).ok_or_else(too_deep)?;
        let path = self.info.path.join(spec.name).map_err(|_| too_deep())?;
        let own_deadline = spec
            .timeout
            .map(|timeout| Instant::now() + timeout)
            .filter(|own| self.info.deadline.is_none_or(|all| *own < all));
        let info = CallInfo {
            call_id,
            path,
            method: spec.method.cloned(),
            principal: Arc::clone(&self.info.principal),
            project: self.info.project.clone(),
            deadline: own_deadline.or(self.info.deadline),
            cancel: self.info.cancel.child_token(),
        };
        let taps = self.taps.iter().cloned().chain(spec.tap).collect();
        let (core, root) = (Arc::clone(&self.core), Arc::clone(&self.root));
        Ok(Arc::new(Self::new(
            core,
            root,
            info,
            own_deadline,
            taps,
            spec.keep_last,
        )))
    }

    /// What a method gets.
    pub(crate) fn ctx(self: &Arc<Self>) -> CallCtx {
        CallCtx::new(Arc::clone(self) as Arc<dyn Caller>)
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

    /// How long the call has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    pub(crate) fn summary(&self) -> CallSummary {
        CallSummary {
            call_id: self.info.call_id,
            plugin_path: self.info.path.clone(),
            method: self.info.method.clone(),
            user: self.info.principal.user.clone(),
            started: self.started,
            elapsed_ms: u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Sends an item to whoever watches. Waits while the journal or a consumer is behind.
    pub(crate) async fn send(&self, body: ItemBody) -> Result<(), CallError> {
        for tap in &self.taps {
            let item = tap.item(self.info.call_id, &self.info.path, body.clone());
            // A consumer that went away is cancelling this call already.
            let _ = tap.sender.send(item).await;
        }
        if self.keep_last
            && let ItemBody::Data { data, .. } = &body
        {
            self.state().last = Some(data.clone());
        }
        let Some(writer) = &self.root.writer else {
            return Ok(());
        };
        let ready = writer
            .reserve(self.info.call_id, &self.info.path, body)
            .await?;
        // Under the lock, so that nothing can follow the terminal.
        let state = self.state();
        if state.ended {
            return Err(ended());
        }
        ready.send();
        self.core.items.increment(1);
        Ok(())
    }

    /// Writes the terminal. The first to do so wins; returns whether it was this one.
    pub(crate) fn end(&self, status: DoneStatus, reason: Option<&str>) -> bool {
        let mut state = self.state();
        if std::mem::replace(&mut state.ended, true) {
            return false;
        }
        if let Some(writer) = &self.root.writer {
            writer.end(
                self.info.call_id,
                &self.info.path,
                status,
                reason.map(str::to_owned),
            );
        }
        true
    }

    /// Tells in-process consumers that the call has ended, as far as they have room for it.
    pub(crate) fn tell_end(&self, status: DoneStatus, reason: Option<&str>) {
        for tap in &self.taps {
            let body = ItemBody::Done {
                status,
                reason: reason.map(str::to_owned),
            };
            let _ = tap
                .sender
                .try_send(tap.item(self.info.call_id, &self.info.path, body));
        }
    }

    /// Waits until in-process consumers have room for one more item, but not for long: one that
    /// does not read must not keep a call from ending.
    pub(crate) async fn make_room(&self, patience: Duration) {
        for tap in &self.taps {
            let _ = tokio::time::timeout(patience, tap.sender.reserve()).await;
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a call this one wants to make, and makes its node.
    fn admit_child(
        &self,
        method: &str,
        params: Params,
        tap: Option<Tap>,
    ) -> Result<(Arc<Self>, Admitted), CallError> {
        if self.state().ended {
            return Err(ended());
        }
        let admitted = self
            .core
            .admit(&self.info.principal, Reach::Inside, method, params)?;
        let descriptor = admitted.route.descriptor();
        let node = self.child(ChildSpec {
            name: admitted.route.plugin.as_str(),
            method: Some(&descriptor.name),
            timeout: descriptor.timeout,
            keep_last: tap.is_none() && descriptor.kind == MethodKind::Streaming,
            tap,
        })?;
        Ok((node, admitted))
    }
}

fn ended() -> CallError {
    CallError::new(ErrorCode::Cancelled, "the call has ended")
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
        match self.admit_child(method, params, None) {
            Ok((node, admitted)) => Box::pin(run::admitted(node, admitted)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn open(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<ItemStream, CallError>> {
        let (tap, items) = stream::tap();
        let opened = self
            .admit_child(method, params, Some(tap))
            .map(|(node, admitted)| items.watch(node, admitted));
        Box::pin(std::future::ready(opened))
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
        };
        match self.child(spec) {
            Ok(node) => {
                Box::pin(async move { run::scope(Arc::clone(&node), work(node.ctx())).await })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn emit(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>> {
        if matches!(body, ItemBody::Done { .. }) {
            let error = CallError::new(
                ErrorCode::Internal,
                "a plugin cannot end its call by an item: it returns",
            );
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(self.send(body))
    }
}
