//! Callbacks for events.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dodona_proto::Event;
use futures_util::future::BoxFuture;

/// How long a callback may take where it does not say.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs for one event. The error's text is for the plugin's log.
pub type EventCallback = dyn Fn(Arc<Event>) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// A callback for the events of a type, as a plugin contributes it.
///
/// The hub runs it for one event after the other, in the order of the journal, from the moment the
/// plugin is active. An event that happens while the plugin is not active is not delivered later; a
/// plugin that must see every event reads them again with [`EventHistory`](crate::EventHistory). A
/// callback that fails or is late is logged, and the next event is delivered all the same.
///
/// What the callback publishes is caused by its event: a chain of too many events ends with an error.
#[derive(Clone)]
pub struct EventHandler {
    prefix: String,
    name: Option<String>,
    timeout: Duration,
    callback: Arc<EventCallback>,
}

impl EventHandler {
    /// A callback for events whose type is `prefix` or begins with `prefix` and a dot. An empty
    /// prefix is every event.
    pub fn new<F>(
        prefix: impl Into<String>,
        callback: impl Fn(Arc<Event>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self {
            prefix: prefix.into(),
            name: None,
            timeout: TIMEOUT,
            callback: Arc::new(move |event| Box::pin(callback(event))),
        }
    }

    /// What logs call it; without a name they use the prefix.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How long it may take for one event: 30 s if it does not say.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Which events it is for.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Its name in logs.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.prefix)
    }

    /// How long it may take.
    pub fn time_limit(&self) -> Duration {
        self.timeout
    }

    /// Runs it. The caller bounds the time.
    pub fn run(&self, event: Arc<Event>) -> BoxFuture<'static, Result<(), String>> {
        (self.callback)(event)
    }
}

impl fmt::Debug for EventHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventHandler")
            .field("prefix", &self.prefix)
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Whether an event's type is a prefix or lies below it in whole words.
pub(crate) fn is_below(prefix: &str, kind: &str) -> bool {
    match kind.strip_prefix(prefix) {
        Some(rest) => rest.is_empty() || rest.starts_with('.'),
        None => false,
    }
}
