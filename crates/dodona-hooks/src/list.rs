//! The callbacks of one hook point, and running them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dodona_proto::{PluginEffect, PluginName};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::about::AboutQuery;
use crate::breaker::{Breaker, Tripped};
use crate::firing::Fired;
use crate::hook::{OnFailure, Terms};
use crate::point::{Flow, Point};
use crate::trace::{RunRecord, Trace};
use crate::{HookFailure, Reply};

pub(crate) type InlineFn<P> = dyn Fn(&<P as Point>::Payload) -> Answer<P> + Send + Sync;
pub(crate) type AsyncFn<P> =
    dyn Fn(Arc<<P as Point>::Payload>) -> BoxFuture<'static, Answer<P>> + Send + Sync;
type Answer<P> = Result<Reply<<P as Point>::Edit>, HookFailure>;

/// The function to run.
pub(crate) enum Call<P: Point> {
    Inline(Arc<InlineFn<P>>),
    Waiting(Arc<AsyncFn<P>>),
}

impl<P: Point> Clone for Call<P> {
    fn clone(&self) -> Self {
        match self {
            Self::Inline(callback) => Self::Inline(Arc::clone(callback)),
            Self::Waiting(callback) => Self::Waiting(Arc::clone(callback)),
        }
    }
}

/// The plugin of the callback.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) plugin: PluginName,
    pub(crate) id: u64,
}

/// A callback in order.
pub(crate) struct Entry<P: Point> {
    call: Call<P>,
    breaker: Breaker,
    on_failure: OnFailure,
    timeout: Duration,
    name: Option<String>,
    live: bool,
    /// Number of firings that ended before this callback.
    missed: AtomicU64,
    pub(crate) who: Who,
}

/// The callbacks of one hook point, in order.
#[doc(hidden)]
pub struct List<P: Point> {
    entries: Vec<Entry<P>>,
    waits: bool,
    dispatches: AtomicU64,
}

impl<P: Point> Default for List<P> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            waits: false,
            dispatches: AtomicU64::new(0),
        }
    }
}

impl<P: Point> Entry<P> {
    pub(crate) fn new(call: Call<P>, who: Who, terms: &Terms) -> Self {
        Self {
            call,
            breaker: Breaker::new(),
            on_failure: terms.on_failure,
            timeout: terms.timeout,
            name: terms.name.clone(),
            live: terms.live,
            missed: AtomicU64::new(0),
            who,
        }
    }

    /// Runs a synchronous callback.
    #[inline]
    fn ask(&self, callback: &InlineFn<P>, payload: &P::Payload) -> Answer<P> {
        catch_unwind(AssertUnwindSafe(|| callback(payload))).unwrap_or_else(|_| Err(panicked()))
    }

    /// Runs an async callback with its timeout.
    async fn wait(&self, callback: &AsyncFn<P>, payload: Arc<P::Payload>) -> Answer<P> {
        // Called inside the guarded future, because creating the future may panic too.
        let asked = AssertUnwindSafe(async move { callback(payload).await }).catch_unwind();
        match tokio::time::timeout(self.timeout, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(panicked()),
            Err(_) => Err(HookFailure(format!(
                "it took longer than {:?}",
                self.timeout
            ))),
        }
    }
}

fn panicked() -> HookFailure {
    HookFailure::new("it panicked")
}

/// One firing of a hook point.
struct Dispatch<'a, P: Point> {
    effects: Vec<PluginEffect>,
    trace: &'a Trace,
    watched: bool,
    _point: std::marker::PhantomData<P>,
}

impl<P: Point> List<P> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn push(&mut self, entry: Entry<P>) {
        self.waits |= matches!(entry.call, Call::Waiting(_));
        self.entries.push(entry);
    }

    /// Number of runs of each callback, by id.
    pub(crate) fn runs(&self, id: u64) -> u64 {
        let all = self.dispatches.load(Ordering::Relaxed);
        let entry = self.entries.iter().find(|entry| entry.who.id == id);
        entry.map_or(0, |entry| {
            all.saturating_sub(entry.missed.load(Ordering::Relaxed))
        })
    }

    /// Whether one of the callbacks is async.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// Runs all callbacks, none of which is async, and returns their effects.
    #[inline]
    pub(crate) fn fire_inline(&self, payload: &mut P::Payload, trace: &Trace) -> Vec<PluginEffect> {
        if self.is_empty() {
            return Vec::new();
        }
        self.dispatches.fetch_add(1, Ordering::Relaxed);
        let mut dispatch = Dispatch::<P>::new(trace);
        self.run(payload, &mut dispatch);
        dispatch.effects
    }

    fn run(&self, payload: &mut P::Payload, dispatch: &mut Dispatch<'_, P>) {
        let mut next = 0;
        while next < self.entries.len() {
            let (at, answer) = if dispatch.watched {
                (next, None)
            } else {
                self.run_quietly(next, payload)
            };
            let Some(entry) = self.entries.get(at) else {
                return;
            };
            let flow = match answer {
                Some(answer) => dispatch.take(entry, answer, None, payload),
                None => dispatch.run(entry, payload),
            };
            next = at + 1;
            if flow.is_break() {
                return self.miss(next);
            }
        }
    }

    /// Runs callbacks as long as they return an empty reply. Returns the first one that did not, or that needs the
    /// slow path and was not run.
    ///
    /// One `catch_unwind` covers all of them, because one per callback takes longer than most callbacks.
    #[inline]
    fn run_quietly(&self, from: usize, payload: &P::Payload) -> (usize, Option<Answer<P>>) {
        let at = Cell::new(from);
        let run = || {
            for entry in &self.entries[from..] {
                let Call::Inline(callback) = &entry.call else {
                    return None;
                };
                if entry.breaker.is_troubled() {
                    return None;
                }
                match callback(payload) {
                    Ok(reply) if reply.is_none() => at.set(at.get() + 1),
                    answer => return Some(answer),
                }
            }
            None
        };
        let answer = catch_unwind(AssertUnwindSafe(run));
        (at.get(), answer.unwrap_or_else(|_| Some(Err(panicked()))))
    }

    /// Runs all callbacks, some of which are async.
    pub(crate) async fn fire_waiting(
        &self,
        payload: P::Payload,
        trace: &Trace,
    ) -> Fired<P::Payload> {
        self.dispatches.fetch_add(1, Ordering::Relaxed);
        let mut payload = Arc::new(payload);
        let mut dispatch = Dispatch::<P>::new(trace);
        for (at, entry) in self.entries.iter().enumerate() {
            let flow = match &entry.call {
                Call::Waiting(callback) if !entry.breaker.is_resting() => {
                    let began = Some(Instant::now());
                    let answer = entry.wait(&**callback, Arc::clone(&payload)).await;
                    dispatch.take(entry, answer, began, Arc::make_mut(&mut payload))
                }
                _ => dispatch.run(entry, Arc::make_mut(&mut payload)),
            };
            if flow.is_break() {
                self.miss(at + 1);
                break;
            }
        }
        Fired {
            payload: Arc::unwrap_or_clone(payload),
            effects: dispatch.effects,
        }
    }

    /// Runs all callbacks on a replayed payload, except those that are live only. Nothing is recorded, and a
    /// callback that fails is ignored.
    pub(crate) async fn ask_again(&self, payload: P::Payload) -> Fired<P::Payload> {
        let mut payload = Arc::new(payload);
        let mut effects = Vec::new();
        for entry in self.entries.iter().filter(|entry| !entry.live) {
            let answer = match &entry.call {
                Call::Inline(callback) => entry.ask(&**callback, &payload),
                Call::Waiting(callback) => entry.wait(&**callback, Arc::clone(&payload)).await,
            };
            let plugin = &entry.who.plugin;
            let Ok(reply) = answer else {
                continue;
            };
            effects.extend(reply.effects.into_iter().map(|effect| PluginEffect {
                plugin: plugin.clone(),
                effect,
            }));
            effects.extend(reply.on_behalf);
            if let Some(edit) = reply.edit
                && P::apply(Arc::make_mut(&mut payload), edit, plugin).is_break()
            {
                break;
            }
        }
        Fired {
            payload: Arc::unwrap_or_clone(payload),
            effects,
        }
    }

    /// Counts the callbacks that were not reached.
    fn miss(&self, from: usize) {
        for entry in &self.entries[from..] {
            entry.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<'a, P: Point> Dispatch<'a, P> {
    fn new(trace: &'a Trace) -> Self {
        Self {
            effects: Vec::new(),
            trace,
            watched: trace.is_watched(),
            _point: std::marker::PhantomData,
        }
    }

    /// Runs one callback with panic guard, timing and breaker, unless the breaker is open.
    fn run(&mut self, entry: &Entry<P>, payload: &mut P::Payload) -> Flow {
        match &entry.call {
            Call::Inline(callback) if !entry.breaker.is_resting() => {
                let began = self.watched.then(Instant::now);
                let answer = entry.ask(&**callback, payload);
                self.take(entry, answer, began, payload)
            }
            _ => self.rests(entry, payload),
        }
    }

    /// Applies the reply of a callback. Most replies are empty.
    #[inline]
    fn take(
        &mut self,
        entry: &Entry<P>,
        answer: Answer<P>,
        began: Option<Instant>,
        payload: &mut P::Payload,
    ) -> Flow {
        match answer {
            Ok(reply) => {
                entry.breaker.succeeded();
                if reply.is_none() && began.is_none() {
                    return Flow::Continue(());
                }
                self.act(entry, reply, began, payload)
            }
            Err(failure) => self.fail(entry, &failure, began, payload),
        }
    }

    #[cold]
    fn act(
        &mut self,
        entry: &Entry<P>,
        reply: Reply<P::Edit>,
        began: Option<Instant>,
        payload: &mut P::Payload,
    ) -> Flow {
        let edit = reply.edit.as_ref();
        let record = RunRecord {
            edit: edit.and_then(|edit| serde_json::to_value(edit).ok()),
            effects: reply.effects.len() + reply.on_behalf.len(),
            ..entry.record(began, payload)
        };
        self.trace.push(record);
        let plugin = &entry.who.plugin;
        let wanted = reply.effects.into_iter().map(|effect| PluginEffect {
            plugin: plugin.clone(),
            effect,
        });
        self.effects.extend(wanted);
        self.effects.extend(reply.on_behalf);
        match reply.edit {
            Some(edit) => P::apply(payload, edit, plugin),
            None => Flow::Continue(()),
        }
    }

    #[cold]
    fn fail(
        &mut self,
        entry: &Entry<P>,
        failure: &HookFailure,
        began: Option<Instant>,
        payload: &mut P::Payload,
    ) -> Flow {
        let plugin = &entry.who.plugin;
        tracing::warn!(%plugin, hook = %P::POINT, name = entry.name, "hook callback failed: {failure}");
        if entry.breaker.failed() == Tripped::Now {
            tracing::error!(%plugin, hook = %P::POINT, name = entry.name, "hook callback failed repeatedly and is skipped for a while");
        }
        let record = RunRecord {
            error: Some(failure.0.clone()),
            ..entry.record(began, payload)
        };
        self.trace.push(record);
        entry.refuse(payload)
    }

    /// The result for a callback whose breaker is open.
    #[cold]
    fn rests(&mut self, entry: &Entry<P>, payload: &mut P::Payload) -> Flow {
        entry.missed.fetch_add(1, Ordering::Relaxed);
        entry.refuse(payload)
    }
}

impl<P: Point> Entry<P> {
    /// A gate that fails closed denies the call.
    fn refuse(&self, payload: &mut P::Payload) -> Flow {
        let plugin = &self.who.plugin;
        match (self.on_failure, P::refusal(plugin)) {
            (OnFailure::Closed, Some(edit)) => P::apply(payload, edit, plugin),
            _ => Flow::Continue(()),
        }
    }

    fn record(&self, began: Option<Instant>, payload: &P::Payload) -> RunRecord {
        RunRecord {
            at: Timestamp::now(),
            plugin: self.who.plugin.clone(),
            hook: P::POINT,
            name: self.name.clone(),
            query: payload.query_id().map(str::to_owned),
            user: payload.user().cloned(),
            micros: began.map_or(0.0, |began| began.elapsed().as_secs_f64() * 1e6),
            edit: None,
            effects: 0,
            error: None,
        }
    }
}
