//! The hook points at which rules are asked.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::hooks::{Hook, Reply, point};
use dodona_proto::PluginEffect;

use super::run::{Live, Whose};
use crate::context::Occurrence;

/// How long rules may take with an event. Scripts have bounds of their own below this; what is
/// left is waiting for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// All of them. Rules come after other plugins' callbacks of the usual priority, so that they see
/// calls as those left them.
const PRIORITY: i32 = 500;

/// The callbacks.
pub(crate) fn hooks(live: &Arc<Live>) -> [Hook; 6] {
    [
        query_received(live),
        turn_start(live),
        turn_end(live),
        tool_call(live),
        tool_end(live),
        session_end(live),
    ]
    .map(|hook| {
        // What fired is logged and counts for cooldowns: the past is asked by `rules.again`.
        let hook = hook.named("rules").priority(PRIORITY);
        hook.timeout(PATIENCE).live()
    })
}

fn query_received(live: &Arc<Live>) -> Hook {
    let live = Arc::clone(live);
    Hook::waiting::<point::QueryReceived, _>(move |payload| {
        let live = Arc::clone(&live);
        async move {
            let whose = Whose::of_query(&payload.snapshot);
            let decided = live.run(whose, Occurrence::query_start(&payload)).await;
            Ok(effects(decided.effects))
        }
    })
}

fn turn_start(live: &Arc<Live>) -> Hook {
    let live = Arc::clone(live);
    Hook::waiting::<point::PreLlmCall, _>(move |payload| {
        let live = Arc::clone(&live);
        async move {
            let whose = Whose::of_query(&payload.snapshot);
            let occurrence = Occurrence::turn_start(&payload);
            // Held longer, the request would have to be copied to be changed.
            drop(payload);
            let decided = live.run(whose, occurrence).await;
            Ok(effects(decided.effects))
        }
    })
}

fn turn_end(live: &Arc<Live>) -> Hook {
    let live = Arc::clone(live);
    Hook::waiting::<point::TurnCompleted, _>(move |payload| {
        let live = Arc::clone(&live);
        async move {
            let whose = Whose::of_query(&payload.snapshot);
            let decided = live.run(whose, Occurrence::turn_end(&payload)).await;
            Ok(effects(decided.effects))
        }
    })
}

fn tool_call(live: &Arc<Live>) -> Hook {
    let live = Arc::clone(live);
    Hook::waiting::<point::PreToolExecute, _>(move |payload| {
        let live = Arc::clone(&live);
        async move {
            let whose = Whose {
                user: payload.user.clone(),
                project: payload.project.clone(),
            };
            let occurrence = Occurrence::tool_call(&payload);
            drop(payload);
            let mut decided = live.run(whose, occurrence).await;
            Ok(Reply {
                edit: decided.verdict(),
                ..effects(decided.effects)
            })
        }
    })
    // A rule says itself what its failure means; that all of them cannot be asked means no.
    .fail_closed()
}

fn tool_end(live: &Arc<Live>) -> Hook {
    let live = Arc::clone(live);
    Hook::waiting::<point::PostToolExecute, _>(move |payload| {
        let live = Arc::clone(&live);
        async move {
            let whose = Whose {
                user: payload.user.clone(),
                project: payload.project.clone(),
            };
            let occurrence = Occurrence::tool_end(&payload);
            drop(payload);
            let decided = live.run(whose, occurrence).await;
            Ok(effects(decided.effects))
        }
    })
}

fn session_end(live: &Arc<Live>) -> Hook {
    let live = Arc::clone(live);
    Hook::waiting::<point::SessionEnd, _>(move |payload| {
        let live = Arc::clone(&live);
        async move {
            let whose = Whose {
                user: payload.user.clone(),
                project: payload.project.clone(),
            };
            let decided = live.run(whose, Occurrence::session_end(&payload)).await;
            Ok(effects(decided.effects))
        }
    })
}

/// A rule of a plugin speaks in that plugin's name.
fn effects<E>(effects: Vec<PluginEffect>) -> Reply<E> {
    Reply {
        on_behalf: effects,
        ..Reply::none()
    }
}

impl Whose {
    fn of_query(snapshot: &dodona_proto::QuerySnapshot) -> Self {
        Self {
            user: snapshot.user.clone(),
            project: snapshot.project.clone(),
        }
    }
}
