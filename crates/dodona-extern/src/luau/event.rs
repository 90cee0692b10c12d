//! Callbacks of a script for events.

use std::sync::Arc;

use dodona_plugin::{Behalf, BoxFuture, EventHandler, State};
use dodona_proto::Event;
use dodona_script::Request;
use serde_json::{Value, json};

use super::method::in_transaction;
use super::plugin::Shared;
use super::program::{Answers, Ask, METHOD};
use crate::database::DbSession;
use crate::declare::EventSpec;
use crate::services::answer_state;

/// A handler that runs what the script declared.
pub(super) fn event_handler(
    shared: &Shared,
    entry: usize,
    spec: &EventSpec,
) -> Result<EventHandler, String> {
    let work = Arc::new(Work {
        shared: shared.clone(),
        entry,
        part: format!("on {}", spec.part()),
    });
    spec.handler(move |event| {
        let work = Arc::clone(&work);
        async move { work.run(event).await }
    })
}

struct Work {
    shared: Shared,
    entry: usize,
    part: String,
}

impl Work {
    async fn run(&self, event: Arc<Event>) -> Result<(), String> {
        let services = &self.shared.services;
        let settings = match &event.user {
            Some(user) => services.settings.of(user),
            None => services.settings.values().clone(),
        };
        let ask = Ask {
            entry: self.entry,
            kind: "event",
            part: self.part.clone(),
            arguments: vec![json!({ "settings": settings }), json!(&*event)],
            limits: METHOD,
        };
        let state = event.user.clone().map(|user| {
            let project = event.project.clone();
            services.state.for_user(user, project)
        });
        let answers = OfEvent {
            shared: &self.shared,
            state,
            db: DbSession::new(services.db.clone()),
            event,
        };
        let ran = self.shared.program.run(ask, &answers).await;
        ran.map(drop).map_err(|error| error.to_string())
    }
}

/// Answers what a script wants while it handles an event.
struct OfEvent<'a> {
    shared: &'a Shared,
    state: Option<State>,
    db: DbSession,
    event: Arc<Event>,
}

impl Answers for OfEvent<'_> {
    fn answer(&self, request: Request) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let Request { name, arguments } = request;
            let mut arguments = arguments.into_iter();
            let mut next = || arguments.next().unwrap_or_default();
            let (first, second) = (next(), next());
            if let Some(name) = name.strip_prefix("db.") {
                return self.db.answer(name, &first, &second).await;
            }
            if self.db.is_open().await {
                return Err(in_transaction(&name));
            }
            let services = &self.shared.services;
            match (name.as_str(), &self.state) {
                ("publish", _) => {
                    let behalf = self.event.user.as_ref().map(|user| Behalf {
                        user,
                        project: self.event.project.as_ref(),
                        call: None,
                    });
                    let kind = first.as_str().unwrap_or_default();
                    let cause = Some(&*self.event);
                    let published = services.publish(behalf, cause, kind, second).await;
                    published.map_err(|error| error.message)
                }
                ("http", _) => services.http(first).await,
                (name, Some(state)) if name.starts_with("state.") => {
                    let name = name.strip_prefix("state.").unwrap_or(name);
                    let answer = answer_state(state, name, &first, second).await;
                    answer.map_err(|error| error.message)
                }
                (name, None) if name.starts_with("state.") => {
                    Err("this event belongs to no user, and so there is no state".to_owned())
                }
                (other, _) => Err(format!("a callback for events cannot use `{other}`")),
            }
        })
    }
}
