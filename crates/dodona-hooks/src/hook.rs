//! What a plugin contributes.

use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{HookPoint, PluginName};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::list::{AsyncFn, Call, Entry, InlineFn, Who};
use crate::point::{self, Lists, Point, Visitor};
use crate::{HookFailure, Reply};

/// How long an async callback may take where it does not say.
const PATIENCE: Duration = Duration::from_secs(5);

/// What counts when a gate fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The call goes on as if the gate had allowed it.
    Open,
    /// The call is denied.
    Closed,
}

/// A callback for one hook point. Which plugin it belongs to is the registry's word.
pub struct Hook {
    pub(crate) terms: Terms,
    install: Box<dyn Install>,
}

/// When a callback runs, and what becomes of it when it fails.
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
    /// A callback that is done at once: no waiting, no deadline. Its panics are caught.
    pub fn inline<P: Point>(
        callback: impl Fn(&P::Payload) -> Result<Reply<P::Edit>, HookFailure> + Send + Sync + 'static,
    ) -> Self {
        let callback: Arc<InlineFn<P>> = Arc::new(callback);
        Self::new::<P>(Call::Inline(callback))
    }

    /// A callback that may wait, for as long as its timeout.
    pub fn waiting<P: Point, F>(
        callback: impl Fn(Arc<P::Payload>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Reply<P::Edit>, HookFailure>> + Send + 'static,
    {
        let callback: Arc<AsyncFn<P>> = Arc::new(move |payload| Box::pin(callback(payload)));
        Self::new::<P>(Call::Waiting(callback))
    }

    /// A callback from outside this program: it is given the payload as JSON and answers with
    /// `{"edit": …, "effects": […]}`, or null for nothing.
    pub fn foreign(
        point: HookPoint,
        callback: impl Fn(Value) -> BoxFuture<'static, Result<Value, HookFailure>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        point::visit(point, Foreign(Arc::new(callback)))
    }

    /// Whether an answer from outside is one that a point takes, for whoever tries a callback
    /// without firing it.
    ///
    /// # Errors
    ///
    /// What does not fit.
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

    /// At which point.
    pub fn point(&self) -> HookPoint {
        self.terms.point
    }

    /// What logs and records call it, beside the plugin's name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.terms.name = Some(name.into());
        self
    }

    /// Runs it earlier (lower) or later (higher); 100 is usual.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.terms.priority = priority;
        self
    }

    /// Runs it before those of another plugin, whatever the priorities.
    #[must_use]
    pub fn before(mut self, plugin: PluginName) -> Self {
        self.terms.before.push(plugin);
        self
    }

    /// Runs it after those of another plugin, whatever the priorities.
    #[must_use]
    pub fn after(mut self, plugin: PluginName) -> Self {
        self.terms.after.push(plugin);
        self
    }

    /// How long it may take; for those that wait.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.terms.timeout = timeout;
        self
    }

    /// For a gate: denies the call when it fails. Without this, a gate that fails has no say.
    #[must_use]
    pub fn fail_closed(mut self) -> Self {
        self.terms.on_failure = OnFailure::Closed;
        self
    }

    /// Asks it only about what happens, never about what is replayed: it keeps something of what it
    /// sees.
    #[must_use]
    pub fn live(mut self) -> Self {
        self.terms.live = true;
        self
    }

    /// Puts it into the list of its point.
    pub(crate) fn install(&self, lists: &mut Lists, who: Who) {
        self.install.install(lists, &self.terms, who);
    }
}

/// A callback whose point's type is forgotten.
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

/// Puts types around a callback that speaks JSON.
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

/// What an answer in JSON says.
fn reply<P: Point>(answer: Value) -> Result<Reply<P::Edit>, HookFailure> {
    match answer {
        Value::Null => Ok(Reply::none()),
        answer => serde_json::from_value(answer)
            .map_err(|error| HookFailure(format!("its answer does not fit: {error}"))),
    }
}

/// Reads an answer as a point would.
struct Check<'a>(&'a Value);

impl Visitor for Check<'_> {
    type Output = Result<(), HookFailure>;

    fn visit<P: Point>(self) -> Self::Output {
        reply::<P>(self.0.clone()).map(|_| ())
    }
}
