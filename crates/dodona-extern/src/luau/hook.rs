//! Hooks of a script.

use std::sync::Arc;

use dodona_plugin::hooks::{Hook, HookFailure};
use dodona_plugin::{BoxFuture, PluginSettings, State, StateStore};
use dodona_proto::{HookKind, HookPoint, ProjectId, UserId};
use dodona_script::Request;
use serde_json::{Value, json};

use super::method::{Shared, state};
use super::program::{Answers, Ask, BRIEF, Program};
use super::spec::HookSpec;

/// A hook that runs what the script declared.
pub(super) fn hook(shared: &Shared, entry: usize, spec: HookSpec) -> Result<Hook, String> {
    let point = spec.point()?;
    let work = Arc::new(Work {
        program: Arc::clone(&shared.program),
        settings: shared.settings.clone(),
        state: shared.state.clone(),
        project: shared.project.clone(),
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
    program: Arc<Program>,
    settings: PluginSettings,
    state: StateStore,
    /// The only project that it concerns.
    project: Option<ProjectId>,
    entry: usize,
    point: HookPoint,
    part: String,
}

impl Work {
    async fn run(&self, payload: Value) -> Result<Value, HookFailure> {
        let whose = whose(&payload);
        let here = whose.as_ref().and_then(|(_, project)| project.as_ref());
        // A server's routes are nobody's; those of a project's plugin lead to what is there for it alone.
        let concerns_all = self.point == HookPoint::DaemonServerRegister;
        if !concerns_all && self.project.is_some() && self.project.as_ref() != here {
            return Ok(Value::Null);
        }
        let settings = match &whose {
            Some((user, _)) => self.settings.of(user),
            None => self.settings.values().clone(),
        };
        let ask = Ask {
            entry: self.entry,
            kind: "hook",
            part: self.part.clone(),
            arguments: vec![json!({ "settings": settings }), payload],
            limits: BRIEF,
        };
        let answers = OfHook {
            state: whose.map(|(user, project)| self.state.for_user(user, project)),
        };
        let answer = self.program.run(ask, &answers).await;
        let answer = answer.map_err(|error| HookFailure(error.to_string()))?;
        Ok(tidied(answer, self.point))
    }
}

/// For whom a point is fired, where its payload says.
pub(super) fn whose(payload: &Value) -> Option<(UserId, Option<ProjectId>)> {
    let of = |holder: &Value| {
        let user = UserId::new(holder["user"].as_str()?).ok()?;
        let project = holder["project"].as_str();
        let project = project.and_then(|project| ProjectId::new(project).ok());
        Some((user, project))
    };
    of(payload).or_else(|| of(&payload["snapshot"]))
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

/// Answers what a script wants in a hook: it may look at its state, and nothing else.
struct OfHook {
    state: Option<State>,
}

impl Answers for OfHook {
    fn answer(&self, request: Request) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let key = request.arguments.into_iter().next().unwrap_or_default();
            match (request.name.as_str(), &self.state) {
                ("state.get" | "state.list", Some(state_)) => {
                    let read = state(state_, &request.name, key, Value::Null).await;
                    read.map_err(|error| error.message)
                }
                ("state.get" | "state.list", None) => {
                    Err("there is no user here, and so no state".to_owned())
                }
                ("state.set" | "state.delete", _) => Err(
                    "a hook changes nothing by itself: answer with the effect `set_state`"
                        .to_owned(),
                ),
                (other, _) => Err(format!("a hook cannot use `{other}`")),
            }
        })
    }
}
