//! Ending sessions, and telling that they have ended.

use std::sync::{Arc, Weak};
use std::time::Duration;

use dodona_plugin::activation::EventDraft;
use dodona_plugin::hooks::point;
use dodona_plugin::{Behalf, CallError, EventBus, HookHost};
use dodona_proto::Severity;
use dodona_proto::hook::SessionEnded;
use serde_json::json;
use tokio::sync::Mutex;

use crate::conversation::{ConversationError, Conversations, EndedSession, SessionEnding};
use crate::notify::notify;

/// How often it is looked for sessions in which nothing happens, at least.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Ends sessions and tells of it: whoever ends one, it is told once.
pub(crate) struct Keeper {
    conversations: Conversations,
    bus: Arc<dyn EventBus>,
    host: Arc<dyn HookHost>,
    telling: Mutex<()>,
}

impl Keeper {
    pub(crate) fn new(
        conversations: Conversations,
        bus: Arc<dyn EventBus>,
        host: Arc<dyn HookHost>,
    ) -> Arc<Self> {
        Arc::new(Self {
            conversations,
            bus,
            host,
            telling: Mutex::new(()),
        })
    }

    /// Ends what an earlier process left open, and from then on what nobody goes on with.
    pub(crate) fn watch(self: &Arc<Self>, idle: Duration) {
        let keeper = Arc::downgrade(self);
        let host = Arc::clone(&self.host);
        tokio::spawn(async move {
            // Whoever wants to hear of it must be there.
            host.ready().await;
            drop(host);
            let mut which = SessionEnding::Left;
            while end(&keeper, which).await {
                tokio::time::sleep(LOOK_EVERY.min(idle / 4)).await;
                which = SessionEnding::Idle(idle);
            }
        });
    }

    /// Ends sessions and tells of those, and of any that were not told.
    pub(crate) async fn end(&self, which: SessionEnding) {
        if let Err(error) = self.try_end(which).await {
            tracing::warn!(%error, "sessions could not be ended; it is tried again");
        }
    }

    async fn try_end(&self, which: SessionEnding) -> Result<(), ConversationError> {
        self.conversations.end_sessions(which).await?;
        self.tell().await
    }

    /// Tells of the sessions that have ended. What cannot be told now is told later.
    pub(crate) async fn tell(&self) -> Result<(), ConversationError> {
        let _alone = self.telling.lock().await;
        for session in self.conversations.untold_sessions().await? {
            if let Err(error) = self.tell_one(&session).await {
                tracing::warn!(context = %session.context, %error, "the end of a session could not be told");
                break;
            }
            self.conversations.session_told(session.id).await?;
        }
        Ok(())
    }

    /// The event has the session's id: it is stored once, however often this is tried.
    async fn tell_one(&self, session: &EndedSession) -> Result<(), CallError> {
        let payload = SessionEnded {
            context_id: session.context.to_string(),
            user: session.user.clone(),
            project: Some(session.project.clone()),
            reason: session.reason,
            turns: session.turns,
        };
        let behalf = Behalf {
            user: &session.user,
            project: Some(&session.project),
            call: None,
        };
        let draft = EventDraft {
            kind: "session.end",
            source: "agent",
            severity: Severity::Info,
            payload: json!(payload),
            behalf: Some(behalf),
            id: Some(session.id),
        };
        self.bus.publish(draft).await?;
        let hooks = self.host.hooks();
        let fired = hooks.fire::<point::SessionEnd>(payload).await;
        let told = self.host.apply_effects(behalf, fired.effects).await;
        let (conversations, host) = (&self.conversations, self.host.as_ref());
        Ok(notify(conversations, host, behalf, &session.context, told).await?)
    }
}

/// Whether there is still somebody to do it for.
async fn end(keeper: &Weak<Keeper>, which: SessionEnding) -> bool {
    match keeper.upgrade() {
        Some(keeper) => {
            keeper.end(which).await;
            true
        }
        None => false,
    }
}
