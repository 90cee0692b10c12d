//! Hooks of a process.

use std::sync::Arc;

use dodona_plugin::hooks::{Hook, HookFailure};
use dodona_proto::HookPoint;
use serde_json::{Value, json};

use super::runner::Runner;
use super::scope::Scope;
use crate::declare::HookSpec;
use crate::services::{Services, concerns, whose};

/// A hook that the process answers. One that does not answer in time, or whose process is gone, has
/// failed; a gate with `on_error = "closed"` then denies.
pub(super) fn hook(
    runner: &Arc<Runner>,
    services: &Services,
    point: HookPoint,
    spec: HookSpec,
) -> Result<Hook, String> {
    let work = Arc::new(Work {
        runner: Arc::clone(runner),
        services: services.clone(),
        point,
        name: spec.part(),
    });
    let hook = Hook::foreign(point, move |payload| {
        let work = Arc::clone(&work);
        Box::pin(async move { work.run(payload).await })
    });
    spec.with_terms(hook)
}

struct Work {
    runner: Arc<Runner>,
    services: Services,
    point: HookPoint,
    name: String,
}

impl Work {
    async fn run(&self, payload: Value) -> Result<Value, HookFailure> {
        let whose = whose(&payload);
        if !concerns(self.services.project.as_ref(), self.point, whose.as_ref()) {
            return Ok(Value::Null);
        }
        let settings = match &whose {
            Some((user, _)) => self.services.settings.of(user),
            None => self.services.settings.values().clone(),
        };
        let call = payload["call_id"].as_str().map(str::to_owned);
        let request = json!({
            "point": self.point,
            "name": self.name,
            "payload": payload,
            "settings": settings,
        });
        let peer = self.runner.peer().await.map_err(HookFailure)?;
        let answer = peer.request("hook", request, Scope::Hook { whose, call });
        answer
            .await
            .map_err(|failure| HookFailure(failure.to_string()))
    }
}
