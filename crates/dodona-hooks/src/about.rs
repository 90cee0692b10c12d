//! Which query and which user a payload is about.

use dodona_proto::hook::{
    Compacted, Compacting, ModelCall, ModelResponse, Preload, Preloaded, QueryReceived, RouteTable,
    SessionEnded, SessionResolved, SystemPrompt, ToolEnded, ToolPending, ToolTable, TurnCompleted,
};
use dodona_proto::{QuerySnapshot, UserId};

/// The query and the user that a payload is about.
pub trait AboutQuery {
    /// The query's id, where it is about one.
    fn query_id(&self) -> Option<&str>;

    /// The user whose data it contains; nothing where it contains none.
    fn user(&self) -> Option<&UserId>;
}

fn known(snapshot: &QuerySnapshot) -> Option<&str> {
    Some(snapshot.query_id.as_str()).filter(|id| !id.is_empty())
}

macro_rules! about_query {
    ($($payload:ty => $query:expr, $user:expr;)+) => {
        $(impl AboutQuery for $payload {
            fn query_id(&self) -> Option<&str> {
                let query: fn(&$payload) -> Option<&str> = $query;
                query(self)
            }

            fn user(&self) -> Option<&UserId> {
                let user: fn(&$payload) -> Option<&UserId> = $user;
                user(self)
            }
        })+
    };
}

about_query! {
    SessionResolved => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    QueryReceived => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    SystemPrompt => |shown| shown.query_id.as_deref(), |shown| Some(&shown.user);
    Preload => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    Preloaded => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    ModelCall => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    ModelResponse => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    ToolPending => |shown| shown.snapshot.as_deref().and_then(known), |shown| Some(&shown.user);
    ToolEnded => |shown| shown.snapshot.as_deref().and_then(known), |shown| Some(&shown.user);
    TurnCompleted => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    Compacting => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    Compacted => |shown| known(&shown.snapshot), |shown| Some(&shown.snapshot.user);
    ToolTable => |_| None, |shown| Some(&shown.user);
    SessionEnded => |_| None, |shown| Some(&shown.user);
    RouteTable => |_| None, |_| None;
}
