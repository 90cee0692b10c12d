//! The event bus. Events are journaled first, then delivered to subscribers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_plugin::activation::{EventDraft, LONGEST_CHAIN};
use dodona_plugin::{BoxFuture, CallError, ErrorCode, EventBus, Lagged, Subscription};
use dodona_proto::Event;
use dodona_store::journal::Journal;
use jiff::Timestamp;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task;
use uuid::Uuid;

/// The bus of one hub. The journal delivers the events, so that subscribers see them in the order in which
/// they are stored.
pub(crate) struct Bus {
    journal: Journal,
    in_progress: Arc<EventsInProgress>,
}

impl Bus {
    pub(crate) fn new(journal: Journal) -> Self {
        Self {
            journal,
            in_progress: Arc::default(),
        }
    }

    async fn publish_caused(
        &self,
        draft: EventDraft<'_>,
        causes: Vec<String>,
    ) -> Result<(), CallError> {
        if causes.len() >= LONGEST_CHAIN {
            let error = chain_error(&causes, draft.kind);
            tracing::error!(source = draft.source, "{}", error.message);
            return Err(error);
        }
        let has_own_id = draft.id.is_some();
        self.journal.publish(build_event(draft, causes)).await?;
        if has_own_id {
            self.journal.flush().await?;
        }
        Ok(())
    }
}

impl EventBus for Bus {
    fn publish<'a>(&'a self, draft: EventDraft<'a>) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            let causes = self.in_progress.causes_of_this_task();
            self.publish_caused(draft, causes).await
        })
    }

    fn publish_after<'a>(
        &'a self,
        cause: &'a Event,
        draft: EventDraft<'a>,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(self.publish_caused(draft, cause.chain()))
    }

    fn subscribe(&self, prefix: &str) -> Box<dyn Subscription> {
        Box::new(BusSubscription {
            prefix: prefix.to_owned(),
            events: self.journal.events(),
            number: self.in_progress.number(),
            task: None,
            in_progress: Arc::clone(&self.in_progress),
        })
    }
}

fn build_event(draft: EventDraft<'_>, causes: Vec<String>) -> Event {
    Event {
        id: draft.id.unwrap_or_else(Uuid::now_v7),
        kind: draft.kind.to_owned(),
        source: draft.source.to_owned(),
        severity: draft.severity,
        payload: draft.payload,
        timestamp: Timestamp::now(),
        user: draft.behalf.map(|behalf| behalf.user.clone()),
        project: draft.behalf.and_then(|behalf| behalf.project.cloned()),
        call: draft.behalf.and_then(|behalf| Some(behalf.call?.call_id)),
        causes,
    }
}

fn chain_error(causes: &[String], kind: &str) -> CallError {
    let chain = causes.join(" → ");
    let message = format!(
        "`{kind}` was not published: {} events have led to each other already ({chain})",
        causes.len()
    );
    CallError::new(ErrorCode::TooDeep, message)
        .hint("change one of the plugins so that it does not react to this event")
}

/// Which task handles which event. An event published meanwhile by that task is recorded as caused by it. At
/// most one entry per subscription.
#[derive(Default)]
struct EventsInProgress {
    tasks: Mutex<HashMap<task::Id, EventInProgress>>,
    next: AtomicU64,
}

struct EventInProgress {
    /// The subscription that delivered the event.
    subscription: u64,
    event: Arc<Event>,
}

impl EventsInProgress {
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The causes of an event that this task publishes now.
    fn causes_of_this_task(&self) -> Vec<String> {
        let Some(task) = task::try_id() else {
            return Vec::new();
        };
        let tasks = self.tasks();
        tasks
            .get(&task)
            .map_or_else(Vec::new, |busy| busy.event.chain())
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<task::Id, EventInProgress>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct BusSubscription {
    prefix: String,
    events: broadcast::Receiver<Arc<Event>>,
    number: u64,
    /// The task that handles the last event taken.
    task: Option<task::Id>,
    in_progress: Arc<EventsInProgress>,
}

impl BusSubscription {
    fn wants(&self, kind: &str) -> bool {
        match kind.strip_prefix(self.prefix.as_str()) {
            Some(rest) => self.prefix.is_empty() || rest.is_empty() || rest.starts_with('.'),
            None => false,
        }
    }

    /// Records that this task handles the event from now on.
    fn begin(&mut self, event: &Arc<Event>) {
        self.task = task::try_id();
        if let Some(task) = self.task {
            let busy = EventInProgress {
                subscription: self.number,
                event: Arc::clone(event),
            };
            self.in_progress.tasks().insert(task, busy);
        }
    }

    /// Records that the last event taken was in_progress.
    fn end(&mut self) {
        let Some(task) = self.task.take() else { return };
        let mut tasks = self.in_progress.tasks();
        // The task may already handle an event of another subscription.
        if tasks
            .get(&task)
            .is_some_and(|busy| busy.subscription == self.number)
        {
            tasks.remove(&task);
        }
    }
}

impl Drop for BusSubscription {
    fn drop(&mut self) {
        self.end();
    }
}

impl Subscription for BusSubscription {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Arc<Event>, Lagged>>> {
        Box::pin(async move {
            self.end();
            loop {
                match self.events.recv().await {
                    Ok(event) if self.wants(&event.kind) => {
                        self.begin(&event);
                        return Some(Ok(event));
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(missed)) => return Some(Err(Lagged(missed))),
                    Err(RecvError::Closed) => return None,
                }
            }
        })
    }
}
