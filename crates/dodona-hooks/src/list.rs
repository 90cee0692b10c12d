//! The callbacks of one point, and running them.

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

/// What is run.
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

/// Whose callback it is.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) plugin: PluginName,
    pub(crate) id: u64,
}

/// A callback in its place.
pub(crate) struct Entry<P: Point> {
    call: Call<P>,
    breaker: Breaker,
    on_failure: OnFailure,
    timeout: Duration,
    name: Option<String>,
    /// Whether it keeps something of what it sees.
    live: bool,
    /// Dispatches that did not come to it.
    missed: AtomicU64,
    pub(crate) who: Who,
}

/// The callbacks of one point, in order.
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

    /// Asks a callback that does not wait.
    #[inline]
    fn ask(&self, callback: &InlineFn<P>, payload: &P::Payload) -> Answer<P> {
        catch_unwind(AssertUnwindSafe(|| callback(payload))).unwrap_or_else(|_| Err(panicked()))
    }

    /// Asks a callback that may wait, for as long as it may take.
    async fn wait(&self, callback: &AsyncFn<P>, payload: Arc<P::Payload>) -> Answer<P> {
        // Called inside the guarded future: making it may panic as running it may.
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

/// One firing of a point.
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

    /// How often each callback was run, by its id.
    pub(crate) fn runs(&self, id: u64) -> u64 {
        let all = self.dispatches.load(Ordering::Relaxed);
        let entry = self.entries.iter().find(|entry| entry.who.id == id);
        entry.map_or(0, |entry| {
            all.saturating_sub(entry.missed.load(Ordering::Relaxed))
        })
    }

    /// Whether one of its callbacks may wait.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// Runs every callback, of which none waits; what they want to happen.
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
            let (at, answer) = match dispatch.watched {
                false => self.run_quietly(next, payload),
                true => (next, None),
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

    /// Runs callbacks for as long as they have nothing to say. Tells which one stopped that: one
    /// that answered, or one that needs more care than this and was not run.
    ///
    /// One guard against panics serves them all; to set one up for each takes longer than most of
    /// them do.
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

    /// Runs every callback, of which some may wait.
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

    /// Asks every callback once more about something that was, but for those that keep something of
    /// what they see. Nothing is recorded of it, and one that fails has no say.
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

    /// Notes that the callbacks from one on were not come to.
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

    /// Runs one callback with all the care there is, unless it rests.
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

    /// Does what a callback answered. Mostly that is nothing.
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
        tracing::warn!(%plugin, hook = %P::POINT, name = entry.name, "a callback failed: {failure}");
        if entry.breaker.failed() == Tripped::Now {
            tracing::error!(%plugin, hook = %P::POINT, name = entry.name, "a callback failed too often in a row and is left alone for a while");
        }
        let record = RunRecord {
            error: Some(failure.0.clone()),
            ..entry.record(began, payload)
        };
        self.trace.push(record);
        entry.refuse(payload)
    }

    /// What it means that a callback is left alone.
    #[cold]
    fn rests(&mut self, entry: &Entry<P>, payload: &mut P::Payload) -> Flow {
        entry.missed.fetch_add(1, Ordering::Relaxed);
        entry.refuse(payload)
    }
}

impl<P: Point> Entry<P> {
    /// A gate that must not fail refuses when it did.
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
