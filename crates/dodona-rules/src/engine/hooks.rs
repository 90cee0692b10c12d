//! The hook points at which rules are evaluated.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::hooks::{Hook, Reply, point};
use dodona_proto::PluginEffect;

use super::rule_engine::{EventOwner, RuleEngine};
use crate::context::Occurrence;

/// Timeout for the evaluation of one event. Scripts have shorter limits of their own; the rest allows for
/// a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Rules run after the hooks of other plugins with default priority, so that they see the arguments that
/// those have changed.
const PRIORITY: i32 = 500;

pub(crate) fn hooks(engine: &Arc<RuleEngine>) -> [Hook; 6] {
    [
        query_received(engine),
        turn_start(engine),
        turn_end(engine),
        tool_call(engine),
        tool_end(engine),
        session_end(engine),
    ]
    .map(|hook| {
        // Live only: an evaluation is logged and counts for cooldowns. Replays use `rules.again`.
        let hook = hook.named("rules").priority(PRIORITY);
        hook.timeout(TIMEOUT).live()
    })
}

fn query_received(engine: &Arc<RuleEngine>) -> Hook {
    let engine = Arc::clone(engine);
    Hook::waiting::<point::QueryReceived, _>(move |payload| {
        let engine = Arc::clone(&engine);
        async move {
            let owner = EventOwner::of_query(&payload.snapshot);
            let decisions = engine
                .evaluate(owner, Occurrence::query_start(&payload))
                .await;
            Ok(effects(decisions.effects))
        }
    })
}

fn turn_start(engine: &Arc<RuleEngine>) -> Hook {
    let engine = Arc::clone(engine);
    Hook::waiting::<point::PreLlmCall, _>(move |payload| {
        let engine = Arc::clone(&engine);
        async move {
            let owner = EventOwner::of_query(&payload.snapshot);
            let occurrence = Occurrence::turn_start(&payload);
            // Dropped early: while it is shared, a change would copy the whole request.
            drop(payload);
            let decisions = engine.evaluate(owner, occurrence).await;
            Ok(effects(decisions.effects))
        }
    })
}

fn turn_end(engine: &Arc<RuleEngine>) -> Hook {
    let engine = Arc::clone(engine);
    Hook::waiting::<point::TurnCompleted, _>(move |payload| {
        let engine = Arc::clone(&engine);
        async move {
            let owner = EventOwner::of_query(&payload.snapshot);
            let decisions = engine.evaluate(owner, Occurrence::turn_end(&payload)).await;
            Ok(effects(decisions.effects))
        }
    })
}

fn tool_call(engine: &Arc<RuleEngine>) -> Hook {
    let engine = Arc::clone(engine);
    Hook::waiting::<point::PreToolExecute, _>(move |payload| {
        let engine = Arc::clone(&engine);
        async move {
            let owner = EventOwner {
                user: payload.user.clone(),
                project: payload.project.clone(),
            };
            let occurrence = Occurrence::tool_call(&payload);
            drop(payload);
            let mut decisions = engine.evaluate(owner, occurrence).await;
            Ok(Reply {
                edit: decisions.verdict(),
                ..effects(decisions.effects)
            })
        }
    })
    // Each rule has its own `on_error`. If the whole evaluation fails, the call is denied.
    .fail_closed()
}

fn tool_end(engine: &Arc<RuleEngine>) -> Hook {
    let engine = Arc::clone(engine);
    Hook::waiting::<point::PostToolExecute, _>(move |payload| {
        let engine = Arc::clone(&engine);
        async move {
            let owner = EventOwner {
                user: payload.user.clone(),
                project: payload.project.clone(),
            };
            let occurrence = Occurrence::tool_end(&payload);
            drop(payload);
            let decisions = engine.evaluate(owner, occurrence).await;
            Ok(effects(decisions.effects))
        }
    })
}

fn session_end(engine: &Arc<RuleEngine>) -> Hook {
    let engine = Arc::clone(engine);
    Hook::waiting::<point::SessionEnd, _>(move |payload| {
        let engine = Arc::clone(&engine);
        async move {
            let owner = EventOwner {
                user: payload.user.clone(),
                project: payload.project.clone(),
            };
            let decisions = engine
                .evaluate(owner, Occurrence::session_end(&payload))
                .await;
            Ok(effects(decisions.effects))
        }
    })
}

/// Effects on behalf of the plugin that owns the rule.
fn effects<E>(effects: Vec<PluginEffect>) -> Reply<E> {
    Reply {
        on_behalf: effects,
        ..Reply::none()
    }
}

impl EventOwner {
    fn of_query(snapshot: &dodona_proto::QuerySnapshot) -> Self {
        Self {
            user: snapshot.user.clone(),
            project: snapshot.project.clone(),
        }
    }
}
