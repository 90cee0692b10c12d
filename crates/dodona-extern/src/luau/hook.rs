//! Hooks of a script.

use std::sync::Arc;

use dodona_plugin::hooks::{Hook, HookFailure};
use dodona_plugin::{BoxFuture, State};
use dodona_proto::{HookKind, HookPoint};
use dodona_script::Request;
use serde_json::{Value, json};

use super::plugin::Shared;
use super::program::{Answers, Ask, BRIEF};
use crate::database::{PluginDb, Statement};
use crate::declare::HookSpec;
use crate::services::{answer_state, concerns, whose};

/// A hook that runs what the script declared.
pub(super) fn hook(shared: &Shared, entry: usize, spec: HookSpec) -> Result<Hook, String> {
    let point = spec.point()?;
    let work = Arc::new(Work {
        shared: shared.clone(),
        entry,
        point,
        part: spec.part(),
    });
    let hook = Hook::foreign(point, move |payload| {
        let work = Arc::clone(&work);
        Box::pin(async move { work.run(payload).await })
    });
    spec.with_terms(hook)
}

struct Work {
    shared: Shared,
    entry: usize,
    point: HookPoint,
    part: String,
}

impl Work {
    async fn run(&self, payload: Value) -> Result<Value, HookFailure> {
        let services = &self.shared.services;
        let whose = whose(&payload);
        if !concerns(services.project.as_ref(), self.point, whose.as_ref()) {
            return Ok(Value::Null);
        }
        let settings = match &whose {
            Some((user, _)) => services.settings.of(user),
            None => services.settings.values().clone(),
        };
        let ask = Ask {
            entry: self.entry,
            kind: "hook",
            part: self.part.clone(),
            arguments: vec![json!({ "settings": settings }), payload],
            limits: BRIEF,
        };
        let answers = OfHook {
            state: whose.map(|(user, project)| services.state.for_user(user, project)),
            db: services.db.clone(),
        };
        let answer = self.shared.program.run(ask, &answers).await;
        let answer = answer.map_err(|error| HookFailure(error.to_string()))?;
        Ok(tidied(answer, self.point))
    }
}

/// An empty table is an object in JSON; where only a list has a place, it is an empty list.
pub(super) fn tidied(mut answer: Value, point: HookPoint) -> Value {
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty(&answer) {
        return Value::Null;
    }
    if let Some(fields) = answer.as_object_mut() {
        if fields.get("effects").is_some_and(is_empty) {
            fields.remove("effects");
        }
        if point.kind() == HookKind::Collect && fields.get("edit").is_some_and(is_empty) {
            fields.remove("edit");
        }
    }
    answer
}

/// Answers what a script wants in a hook: it may look at its state and its database, and nothing else.
struct OfHook {
    state: Option<State>,
    db: PluginDb,
}

impl Answers for OfHook {
    fn answer(&self, request: Request) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let mut arguments = request.arguments.into_iter();
            let mut next = || arguments.next().unwrap_or_default();
            let (first, second) = (next(), next());
            match (request.name.as_str(), &self.state) {
                (name @ ("state.get" | "state.list"), Some(state)) => {
                    let name = name.strip_prefix("state.").unwrap_or(name);
                    let read = answer_state(state, name, &first, Value::Null).await;
                    read.map_err(|error| error.message)
                }
                ("state.get" | "state.list", None) => {
                    Err("there is no user here, and so no state".to_owned())
                }
                ("state.set" | "state.delete", _) => Err(
                    "a hook changes nothing by itself: answer with the effect `set_state`"
                        .to_owned(),
                ),
                ("db.query", _) => self.db.read(Statement::read(&first, &second)?).await,
                ("db.execute" | "db.begin", _) => {
                    Err("a hook changes nothing by itself: it may use `dodona.db.query`".to_owned())
                }
                ("publish", _) => Err(
                    "a hook changes nothing by itself: answer with the effect `emit_event`"
                        .to_owned(),
                ),
                (other, _) => Err(format!("a hook cannot use `{other}`")),
            }
        })
    }
}
