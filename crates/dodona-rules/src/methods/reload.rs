//! `rules.reload`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::Serialize;

use super::RuleMethods;

/// What is in use now.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reloaded {
    /// How many rules.
    rules: usize,
    /// How many problems; `rules.check` tells them.
    problems: usize,
}

pub(super) async fn reload(methods: &RuleMethods, ctx: &CallCtx) -> Result<Reloaded, CallError> {
    let rules = methods.rules(ctx).await;
    Ok(Reloaded {
        rules: rules.library.rules.rules().len(),
        problems: rules.library.problems.len(),
    })
}
