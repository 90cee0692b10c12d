//! Which query a payload is about.

use dodona_proto::QuerySnapshot;
use dodona_proto::hook::{
    Compacted, Compacting, ModelCall, ModelResponse, Preload, Preloaded, QueryReceived, RouteTable,
    SessionEnded, SessionResolved, SystemPrompt, ToolEnded, ToolPending, ToolTable, TurnCompleted,
};

/// Tells which query it is about, where it is about one.
pub trait AboutQuery {
    /// The query's id.
    fn query_id(&self) -> Option<&str>;
}

fn known(snapshot: &QuerySnapshot) -> Option<&str> {
    Some(snapshot.query_id.as_str()).filter(|id| !id.is_empty())
}

macro_rules! about_query {
    ($($payload:ty => $query:expr;)+) => {
        $(impl AboutQuery for $payload {
            fn query_id(&self) -> Option<&str> {
                let query: fn(&$payload) -> Option<&str> = $query;
                query(self)
            }
        })+
    };
}

about_query! {
    SessionResolved => |shown| known(&shown.snapshot);
    QueryReceived => |shown| known(&shown.snapshot);
    SystemPrompt => |shown| shown.query_id.as_deref();
    Preload => |shown| known(&shown.snapshot);
    Preloaded => |shown| known(&shown.snapshot);
    ModelCall => |shown| known(&shown.snapshot);
    ModelResponse => |shown| known(&shown.snapshot);
    ToolPending => |shown| shown.snapshot.as_deref().and_then(known);
    ToolEnded => |shown| shown.snapshot.as_deref().and_then(known);
    TurnCompleted => |shown| known(&shown.snapshot);
    Compacting => |shown| known(&shown.snapshot);
    Compacted => |shown| known(&shown.snapshot);
    ToolTable => |_| None;
    SessionEnded => |_| None;
    RouteTable => |_| None;
}
