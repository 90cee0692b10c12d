//! Hooks that plugins contribute.

use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{HookPoint, PluginName};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::list::{AsyncFn, Call, Entry, InlineFn, Who};
use crate::point::{self, Lists, Point, Visitor};
use crate::{HookFailure, Reply};

/// Default timeout of an async callback.
const PATIENCE: Duration = Duration::from_secs(5);

/// What happens if a gate fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The call continues as if the gate had allowed it.
    Open,
    /// The call is denied.
    Closed,
}

/// A callback for one hook point. The registry assigns it to a plugin.
pub struct Hook {
    pub(crate) terms: Terms,
    install: Box<dyn Install>,
}

/// Order, timeout and failure policy of a callback.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) point: HookPoint,
    pub(crate) name: Option<String>,
    pub(crate) priority: i32,
    pub(crate) before: Vec<PluginName>,
    pub(crate) after: Vec<PluginName>,
    pub(crate) timeout: Duration,
    pub(crate) on_failure: OnFailure,
    pub(crate) live: bool,
}

impl Hook {
    /// A synchronous callback without timeout. Panics are caught.
    pub fn inline<P: Point>(
        callback: impl Fn(&P::Payload) -> Result<Reply<P::Edit>, HookFailure> + Send + Sync + 'static,
    ) -> Self {
        let callback: Arc<InlineFn<P>> = Arc::new(callback);
        Self::new::<P>(Call::Inline(callback))
    }

    /// An async callback, limited by its timeout.
    pub fn waiting<P: Point, F>(
        callback: impl Fn(Arc<P::Payload>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Reply<P::Edit>, HookFailure>> + Send + 'static,
    {
        let callback: Arc<AsyncFn<P>> = Arc::new(move |payload| Box::pin(callback(payload)));
        Self::new::<P>(Call::Waiting(callback))
    }

    /// A callback outside this program. It gets the payload as JSON and returns `{"edit": …, "effects": […]}`, or
    /// null.
    pub fn foreign(
        point: HookPoint,
        callback: impl Fn(Value) -> BoxFuture<'static, Result<Value, HookFailure>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        point::visit(point, Foreign(Arc::new(callback)))
    }

    /// Checks whether a JSON reply is valid for a hook point, without firing it.
    ///
    /// # Errors
    ///
    /// If the reply does not match the hook point.
    pub fn check_answer(point: HookPoint, answer: &Value) -> Result<(), HookFailure> {
        point::visit(point, Check(answer))
    }

    fn new<P: Point>(call: Call<P>) -> Self {
        Self {
            terms: Terms {
                point: P::POINT,
                name: None,
                priority: 100,
                before: Vec::new(),
                after: Vec::new(),
                timeout: PATIENCE,
                on_failure: OnFailure::Open,
                live: false,
            },
            install: Box::new(call),
        }
    }

    pub fn point(&self) -> HookPoint {
        self.terms.point
    }

    /// Sets the name shown in logs and traces, next to the plugin's name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.terms.name = Some(name.into());
        self
    }

    /// Sets the priority. Lower runs earlier. Default 100.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.terms.priority = priority;
        self
    }

    /// Runs it before the callbacks of another plugin, regardless of priority.
    #[must_use]
    pub fn before(mut self, plugin: PluginName) -> Self {
        self.terms.before.push(plugin);
        self
    }

    /// Runs it after the callbacks of another plugin, regardless of priority.
    #[must_use]
    pub fn after(mut self, plugin: PluginName) -> Self {
        self.terms.after.push(plugin);
        self
    }

    /// Sets the timeout of an async callback.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.terms.timeout = timeout;
        self
    }

    /// For a gate: denies the call if the callback fails. Default: a failing gate is ignored.
    #[must_use]
    pub fn fail_closed(mut self) -> Self {
        self.terms.on_failure = OnFailure::Closed;
        self
    }

    /// Skips the callback in replays, because it records what it sees.
    #[must_use]
    pub fn live(mut self) -> Self {
        self.terms.live = true;
        self
    }

    /// Adds it to the list of its hook point.
    pub(crate) fn install(&self, lists: &mut Lists, who: Who) {
        self.install.install(lists, &self.terms, who);
    }
}

trait Install: Send + Sync {
    fn install(&self, lists: &mut Lists, terms: &Terms, who: Who);
}

impl<P: Point> Install for Call<P> {
    fn install(&self, lists: &mut Lists, terms: &Terms, who: Who) {
        let entry = Entry::new(self.clone(), who, terms);
        P::list_mut(lists).push(entry);
    }
}

type ForeignFn = dyn Fn(Value) -> BoxFuture<'static, Result<Value, HookFailure>> + Send + Sync;

/// Wraps a JSON callback in the types of a hook point.
struct Foreign(Arc<ForeignFn>);

impl Visitor for Foreign {
    type Output = Hook;

    fn visit<P: Point>(self) -> Hook {
        Hook::waiting::<P, _>(move |payload: Arc<P::Payload>| {
            let callback = Arc::clone(&self.0);
            async move {
                let shown = serde_json::to_value(&*payload)
                    .map_err(|error| HookFailure(format!("the payload is no JSON: {error}")))?;
                drop(payload);
                reply::<P>(callback(shown).await?)
            }
        })
    }
}

/// Parses a JSON reply.
fn reply<P: Point>(answer: Value) -> Result<Reply<P::Edit>, HookFailure> {
    match answer {
        Value::Null => Ok(Reply::none()),
        answer => serde_json::from_value(answer)
            .map_err(|error| HookFailure(format!("its answer does not fit: {error}"))),
    }
}

/// Parses a reply for a hook point known by name.
struct Check<'a>(&'a Value);

impl Visitor for Check<'_> {
    type Output = Result<(), HookFailure>;

    fn visit<P: Point>(self) -> Self::Output {
        reply::<P>(self.0.clone()).map(|_| ())
    }
}
