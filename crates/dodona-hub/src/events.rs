//! The plugin `events`: what happened lately, from any surface.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{
    CallCtx, CallError, Contribution, ErrorCode, EventHistory, Plugin, PluginContext, plugin,
};
use dodona_proto::Event;
use dodona_store::journal::EventFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is listed if nobody says otherwise: the events that rules and plugins make up.
const CUSTOM: &str = "custom";

/// The plugin.
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
        "Lists what happened lately."
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        let methods = Arc::new(EventMethods {
            history: ctx.history,
        })
        .plugin_methods();
        Box::pin(async { Ok(Contribution::new().methods(methods?)) })
    }
}

struct EventMethods {
    history: Arc<dyn EventHistory>,
}

#[derive(Deserialize, JsonSchema)]
struct RecentParams {
    /// Events of this type and below, such as `custom.release` or `tool.call`; an empty text is
    /// every type.
    #[serde(default = "custom", rename = "type")]
    #[schemars(length(max = 256))]
    kind: String,
    /// At most so many.
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

/// What happened lately.
#[derive(Serialize, JsonSchema)]
struct RecentResult {
    /// The newest first.
    events: Vec<Event>,
    /// Whether there are older ones.
    more: bool,
}

#[plugin(name = "events")]
impl EventMethods {
    /// Lists your latest events, the newest first: those that rules and plugins emitted, or those of
    /// a type. In a project, those of the project.
    #[method(scope = "events:read")]
    async fn recent(&self, ctx: &CallCtx, p: RecentParams) -> Result<RecentResult, CallError> {
        let filter = EventFilter {
            project: ctx.project.as_ref().map(|project| project.id.clone()),
            ..EventFilter::of(ctx.principal.user.clone())
        };
        let below = p.kind.trim_end_matches('.');
        let recent = self.history.recent(filter, below, p.limit).await?;
        let events = recent.events.iter().map(|event| event.to_event());
        let events = events.collect::<Result<_, _>>().map_err(|error| {
            let message = "an event of the journal cannot be read";
            CallError::new(ErrorCode::Storage, message).log(error.to_string())
        })?;
        Ok(RecentResult {
            events,
            more: recent.more,
        })
    }
}
