//! Delivering events to the event handlers of plugins.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use dodona_plugin::{EventHandler, LogLevel, PluginLog, Subscription};
use dodona_proto::{PluginName, ProjectId};
use futures_util::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Number of consecutive failures after which a handler is suspended.
const MAX_FAILURES: u32 = 5;
const REST: Duration = Duration::from_secs(30);

/// The running event handlers of one activation. They stop when this is dropped; a handler that is running
/// finishes its event.
#[derive(Default)]
pub(crate) struct Listeners(Vec<DropGuard>);

/// What an event handler needs to run.
pub(super) struct ActiveListener {
    pub(super) plugin: PluginName,
    /// The only project whose events are delivered.
    pub(super) project: Option<ProjectId>,
    pub(super) subscription: Box<dyn Subscription>,
    pub(super) handler: EventHandler,
    pub(super) log: PluginLog,
}

impl Listeners {
    /// Starts delivering events to a handler.
    pub(super) fn start(&mut self, listening: ActiveListener) {
        let stop = CancellationToken::new();
        tokio::spawn(listening.run(stop.clone()));
        self.0.push(stop.drop_guard());
    }
}

impl ActiveListener {
    async fn run(mut self, stop: CancellationToken) {
        let mut failures = 0;
        let mut resting: Option<Instant> = None;
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                next = self.subscription.next() => next,
            };
            let event = match next {
                None => return,
                Some(Err(lagged)) => {
                    self.warn(&lagged.to_string());
                    continue;
                }
                Some(Ok(event)) => event,
            };
            let is_elsewhere = self.project.is_some() && self.project != event.project;
            if is_elsewhere || resting.is_some_and(|until| Instant::now() < until) {
                continue;
            }
            resting = None;
            // Called in this task, so that events the handler publishes are recorded as caused by this one.
            let work = AssertUnwindSafe(self.handler.run(event)).catch_unwind();
            let limit = self.handler.time_limit();
            let failure = match tokio::time::timeout(limit, work).await {
                Ok(Ok(Ok(()))) => {
                    failures = 0;
                    continue;
                }
                Ok(Ok(Err(why))) => why,
                Ok(Err(_)) => "it panicked".to_owned(),
                Err(_) => format!("it took longer than {limit:?}"),
            };
            failures += 1;
            self.warn(&failure);
            if failures >= MAX_FAILURES {
                resting = Some(Instant::now() + REST);
                self.warn(&format!(
                    "it failed {failures} times in a row and is suspended for {REST:?}"
                ));
            }
        }
    }

    fn warn(&self, text: &str) {
        let part = format!("on {}", self.handler.label());
        self.log.write(LogLevel::Error, &part, text);
        tracing::warn!(plugin = %self.plugin, prefix = self.handler.prefix(), "event handler failed: {text}");
    }
}
