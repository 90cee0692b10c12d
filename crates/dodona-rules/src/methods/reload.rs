//! `rules.reload`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::Serialize;

use super::RuleMethods;

/// The rules after the scan.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reloaded {
    /// Number of active rules.
    rules: usize,
    /// Number of problems. `rules.check` lists them.
    problems: usize,
}

pub(super) async fn reload(methods: &RuleMethods, ctx: &CallCtx) -> Result<Reloaded, CallError> {
    let rules = methods.rules(ctx).await;
    Ok(Reloaded {
        rules: rules.loaded.rules.rules().len(),
        problems: rules.loaded.problems.len(),
    })
}
