//! `rules.settings`.

use dodona_plugin::CallCtx;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::RuleMethods;
use crate::settings::SettingsState;

/// The settings that rules can read.
#[derive(Serialize, JsonSchema)]
pub(super) struct SettingsResult {
    /// `context.user.settings`: `[settings]` in the server's `config.toml`, and your settings of plugins under
    /// `plugins`.
    user: Map<String, Value>,
    /// `context.project.settings`: `[settings]` in the project's `.dodona/config.toml`. Empty while
    /// they are not trusted.
    project: Map<String, Value>,
    /// Whether the project's settings are in force.
    project_state: SettingsState,
}

pub(super) async fn show(methods: &RuleMethods, ctx: &CallCtx) -> SettingsResult {
    let rules = methods.rules(ctx).await;
    let user = methods.engine.user_settings(&ctx.principal.user, &rules);
    let map = |value: &Value| value.as_object().cloned().unwrap_or_default();
    SettingsResult {
        user: map(&user),
        project: map(&rules.settings),
        project_state: rules.settings_state,
    }
}
