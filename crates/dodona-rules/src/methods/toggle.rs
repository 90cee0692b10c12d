//! `rules.enable` and `rules.disable`.

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::RuleMethods;

/// The new status of a rule.
#[derive(Serialize, JsonSchema)]
pub(super) struct Toggled {
    /// The rule, as `plugin/id`.
    rule: String,
    /// Whether the rule is evaluated.
    enabled: bool,
}

pub(super) async fn disable(
    methods: &RuleMethods,
    ctx: &CallCtx,
    name: &str,
) -> Result<Toggled, CallError> {
    let rule = methods.rule(ctx, name).await?;
    if rule.is_core {
        let message = format!("`{}` is a core rule and cannot be disabled", rule.label);
        return Err(CallError::new(ErrorCode::Forbidden, message));
    }
    let host = &methods.engine.host;
    host.set_disabled(&ctx.principal.user, &rule.label, true)
        .await?;
    Ok(Toggled {
        rule: rule.label.clone(),
        enabled: false,
    })
}

pub(super) async fn enable(
    methods: &RuleMethods,
    ctx: &CallCtx,
    name: &str,
) -> Result<Toggled, CallError> {
    let rule = methods.rule(ctx, name).await?;
    let host = &methods.engine.host;
    host.set_disabled(&ctx.principal.user, &rule.label, false)
        .await?;
    if !rule.rule.enabled {
        let path = &rule.origin.path;
        let message = format!(
            "`{}` is disabled in its file (`enabled = false`)",
            rule.label
        );
        return Err(CallError::new(ErrorCode::InvalidRequest, message)
            .hint(format!("set `enabled = true` in {path}")));
    }
    Ok(Toggled {
        rule: rule.label.clone(),
        enabled: true,
    })
}
