//! `rules.enable` and `rules.disable`.

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::RuleMethods;

/// How a rule stands now.
#[derive(Serialize, JsonSchema)]
pub(super) struct Toggled {
    /// Which rule, as `plugin/id`.
    rule: String,
    /// Whether it is asked.
    enabled: bool,
}

pub(super) async fn disable(
    methods: &RuleMethods,
    ctx: &CallCtx,
    name: &str,
) -> Result<Toggled, CallError> {
    let rule = methods.rule(ctx, name).await?;
    if rule.is_core {
        let message = format!(
            "`{}` is a core rule, and nobody switches it off",
            rule.label
        );
        return Err(CallError::new(ErrorCode::Forbidden, message));
    }
    let host = &methods.live.host;
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
    let host = &methods.live.host;
    host.set_disabled(&ctx.principal.user, &rule.label, false)
        .await?;
    if !rule.rule.enabled {
        let path = &rule.origin.path;
        let message = format!("`{}` is off in its file", rule.label);
        return Err(CallError::new(ErrorCode::InvalidRequest, message)
            .hint(format!("set `enabled = true` in {path}")));
    }
    Ok(Toggled {
        rule: rule.label.clone(),
        enabled: true,
    })
}
