//! The event bus: journaled first, then told.

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

/// The bus of one hub. The journal's pump does the telling, so subscribers see events in the
/// order in which they are stored.
pub(crate) struct Bus {
    journal: Journal,
    handled: Arc<Handled>,
}

impl Bus {
    pub(crate) fn new(journal: Journal) -> Self {
        Self {
            journal,
            handled: Arc::default(),
        }
    }

    async fn publish_caused(
        &self,
        draft: EventDraft<'_>,
        causes: Vec<String>,
    ) -> Result<(), CallError> {
        if causes.len() >= LONGEST_CHAIN {
            let error = too_long(&causes, draft.kind);
            tracing::error!(source = draft.source, "{}", error.message);
            return Err(error);
        }
        let is_told_again = draft.id.is_some();
        self.journal.publish(stamped(draft, causes)).await?;
        if is_told_again {
            self.journal.flush().await?;
        }
        Ok(())
    }
}

impl EventBus for Bus {
    fn publish<'a>(&'a self, draft: EventDraft<'a>) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            let causes = self.handled.here();
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
        Box::new(Place {
            prefix: prefix.to_owned(),
            events: self.journal.events(),
            number: self.handled.number(),
            task: None,
            handled: Arc::clone(&self.handled),
        })
    }
}

fn stamped(draft: EventDraft<'_>, causes: Vec<String>) -> Event {
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

fn too_long(causes: &[String], kind: &str) -> CallError {
    let chain = causes.join(" → ");
    let message = format!(
        "`{kind}` was not published: {} events have led to each other already ({chain})",
        causes.len()
    );
    CallError::new(ErrorCode::TooDeep, message)
        .hint("one of the plugins that answer these events must not answer this one")
}

/// Which task is busy with which event: what it publishes meanwhile was caused by it. There is at
/// most one entry for each subscription.
#[derive(Default)]
struct Handled {
    tasks: Mutex<HashMap<task::Id, Busy>>,
    next: AtomicU64,
}

struct Busy {
    /// The subscription that the event came from.
    place: u64,
    event: Arc<Event>,
}

impl Handled {
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// What leads to an event that is published now, by this task.
    fn here(&self) -> Vec<String> {
        let Some(task) = task::try_id() else {
            return Vec::new();
        };
        let tasks = self.tasks();
        tasks
            .get(&task)
            .map_or_else(Vec::new, |busy| busy.event.chain())
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<task::Id, Busy>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Place {
    prefix: String,
    events: broadcast::Receiver<Arc<Event>>,
    number: u64,
    /// Who is busy with the event that was taken last.
    task: Option<task::Id>,
    handled: Arc<Handled>,
}

impl Place {
    fn wants(&self, kind: &str) -> bool {
        match kind.strip_prefix(self.prefix.as_str()) {
            Some(rest) => self.prefix.is_empty() || rest.is_empty() || rest.starts_with('.'),
            None => false,
        }
    }

    /// Notes that this task is busy with an event from now on.
    fn begin(&mut self, event: &Arc<Event>) {
        self.task = task::try_id();
        if let Some(task) = self.task {
            let busy = Busy {
                place: self.number,
                event: Arc::clone(event),
            };
            self.handled.tasks().insert(task, busy);
        }
    }

    /// Whoever took the last event is done with it.
    fn end(&mut self) {
        let Some(task) = self.task.take() else { return };
        let mut tasks = self.handled.tasks();
        // The task may be busy with an event of another subscription by now.
        if tasks
            .get(&task)
            .is_some_and(|busy| busy.place == self.number)
        {
            tasks.remove(&task);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end();
    }
}

impl Subscription for Place {
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
