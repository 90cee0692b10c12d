//! The plugin `events`: recent events and new ones as they happen, from any surface.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::activation::Activating;
use dodona_plugin::{
    CallCtx, CallError, Contribution, Emitter, ErrorCode, EventBus, EventHistory, Plugin,
    PluginContext, plugin,
};
use dodona_proto::Event;
use dodona_store::journal::{EventFilter, ReadPosition, RecordedEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The type that is listed by default: the events that rules and plugins publish.
const CUSTOM: &str = "custom";

/// How many events one watch sends. Its items are journaled like those of any stream, so a watch has
/// an end; the caller goes on with the last position.
const MAX_EVENTS: usize = 10_000;

/// How long before the deadline of its call a watch ends by itself, so that it ends as complete.
const MARGIN: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub struct EventsPlugin;

impl Plugin for EventsPlugin {
    fn name(&self) -> &'static str {
        "events"
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn description(&self) -> &'static str {
        "Lists recent events and streams new ones."
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        let methods = Arc::new(EventMethods {
            history: ctx.history,
            bus: Arc::clone(&ctx.system.event_bus),
        })
        .plugin_methods();
        Box::pin(async { Ok(Contribution::new().methods(methods?)) })
    }
}

struct EventMethods {
    history: Arc<dyn EventHistory>,
    bus: Arc<dyn EventBus>,
}

#[derive(Deserialize, JsonSchema)]
struct RecentParams {
    /// Events of this type and its subtypes, such as `custom.release` or `tool.call`. An empty string means all
    /// types.
    #[serde(default = "custom", rename = "type")]
    #[schemars(length(max = 256))]
    kind: String,
    /// Maximum number of events. Default 50.
    #[serde(default = "some")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
}

fn custom() -> String {
    CUSTOM.to_owned()
}

fn some() -> u32 {
    50
}

/// A list of recent events.
#[derive(Serialize, JsonSchema)]
struct RecentResult {
    /// The events, newest first.
    events: Vec<EventRecord>,
    /// Whether older events exist.
    more: bool,
}

/// An event and its position in the journal.
#[derive(Serialize, JsonSchema)]
struct EventRecord {
    /// Grows with time. `events.watch` with `after` set to it continues with the next event.
    position: u64,
    #[serde(flatten)]
    event: Event,
}

impl TryFrom<&RecordedEvent> for EventRecord {
    type Error = CallError;

    fn try_from(recorded: &RecordedEvent) -> Result<Self, CallError> {
        let event = recorded.to_event().map_err(|error| {
            let message = "an event of the journal cannot be read";
            CallError::new(ErrorCode::Storage, message).log(error.to_string())
        })?;
        let position = recorded.position;
        Ok(Self { position, event })
    }
}

#[derive(Deserialize, JsonSchema)]
struct WatchParams {
    /// Send events of these types and below, such as `custom.release` or `tool.call`. Empty for every
    /// type.
    #[serde(default = "customs")]
    #[schemars(length(max = 32), inner(length(max = 256)))]
    types: Vec<String>,
    /// Start after this position: that of the last event received, or 0 for everything that the journal
    /// has. Without it, start with the next event that happens.
    #[serde(default)]
    after: Option<u64>,
}

fn customs() -> Vec<String> {
    vec![custom()]
}

/// What one watch sends.
struct Watch {
    filter: EventFilter,
    types: Vec<String>,
    position: u64,
    sent: usize,
}

impl Watch {
    fn wants(&self, kind: &str) -> bool {
        let below = |prefix: &str| match kind.strip_prefix(prefix) {
            Some(rest) => rest.is_empty() || rest.starts_with('.'),
            None => false,
        };
        self.types.is_empty() || self.types.iter().any(|prefix| below(prefix))
    }

    /// Whether an event on the bus is one that this watch may send.
    fn concerns(&self, event: &Event) -> bool {
        let project = self.filter.project.as_ref();
        event.user.as_ref() == Some(&self.filter.user)
            && (project.is_none() || event.project.as_ref() == project)
            && self.wants(&event.kind)
    }

    /// Sends what the journal has after the position. Whether there is room for more.
    async fn send(
        &mut self,
        history: &dyn EventHistory,
        out: &Emitter<EventRecord>,
    ) -> Result<bool, CallError> {
        loop {
            let place = ReadPosition::After(self.position);
            let page = history.page(self.filter.clone(), place).await?;
            let Some(last) = page.last() else {
                return Ok(true);
            };
            let last = last.position;
            for recorded in &page {
                if !self.wants(&recorded.kind) {
                    continue;
                }
                if self.sent == MAX_EVENTS {
                    return Ok(false);
                }
                out.send(recorded.try_into()?).await?;
                self.sent += 1;
                self.position = recorded.position;
            }
            self.position = last;
        }
    }
}

#[plugin(name = "events")]
impl EventMethods {
    /// List your recent events, newest first: those that rules and plugins published, or those of one
    /// type. In a project, those of the project.
    #[method(scope = "events:read")]
    async fn recent(&self, ctx: &CallCtx, p: RecentParams) -> Result<RecentResult, CallError> {
        let below = p.kind.trim_end_matches('.');
        let recent = self.history.recent(filter(ctx), below, p.limit).await?;
        let events = recent.events.iter().map(EventRecord::try_from);
        Ok(RecentResult {
            events: events.collect::<Result<_, _>>()?,
            more: recent.more,
        })
    }

    /// Stream your events as they happen, oldest first, each with its position in the journal. Pass the
    /// last position received as `after` to continue without a gap, also after a restart. In a project,
    /// only events of the project are sent. The stream ends as complete after 10 000 events or shortly
    /// before its deadline.
    #[method(scope = "events:read")]
    async fn watch(
        &self,
        ctx: &CallCtx,
        p: WatchParams,
        out: Emitter<EventRecord>,
    ) -> Result<(), CallError> {
        let filter = filter(ctx);
        // Before the journal is read: what happens from here on wakes the loop.
        let mut news = self.bus.subscribe("");
        let position = match p.after {
            Some(after) => after,
            None => {
                let newest = self.history.recent(filter.clone(), "", 1).await?;
                newest.events.first().map_or(0, |event| event.position)
            }
        };
        let types = p
            .types
            .iter()
            .map(|kind| kind.trim_end_matches('.').to_owned());
        let types: Vec<String> = types.collect();
        let mut watch = Watch {
            filter,
            types: if types.iter().any(String::is_empty) {
                Vec::new()
            } else {
                types
            },
            position,
            sent: 0,
        };
        let end = ctx
            .deadline
            .and_then(|deadline| deadline.checked_sub(MARGIN));
        while watch.send(&*self.history, &out).await? {
            loop {
                let next = tokio::select! {
                    next = news.next() => next,
                    () = at(end) => return Ok(()),
                };
                match next {
                    Some(Ok(event)) if !watch.concerns(&event) => {}
                    Some(_) => break,
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }
}

/// The events that a caller may see: its own, in a project those of the project.
fn filter(ctx: &CallCtx) -> EventFilter {
    EventFilter {
        project: ctx.project.as_ref().map(|project| project.id.clone()),
        ..EventFilter::of(ctx.principal.user.clone())
    }
}

/// Completes at a moment; never, without one.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
