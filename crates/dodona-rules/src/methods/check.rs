//! `rules.check`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuleMethods;
use crate::compile::Origin;
use crate::identity::Scope;
use crate::load::load_text;
use crate::{Problem, load};

#[derive(Deserialize, JsonSchema)]
pub(super) struct CheckParams {
    /// A rule's text to check in place of the files. One with a script cannot be checked so.
    #[schemars(length(max = 262_144))]
    text: Option<String>,
    /// What to call the text in messages.
    #[schemars(length(max = 4096))]
    path: Option<String>,
}

/// What is wrong.
#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    /// How many rules can run.
    rules: usize,
    /// Everything, with file, line and column.
    problems: Vec<Problem>,
}

pub(super) async fn check(
    methods: &RuleMethods,
    ctx: &CallCtx,
    p: CheckParams,
) -> Result<Checked, CallError> {
    let Some(text) = p.text else {
        let rules = methods.rules(ctx).await;
        return Ok(Checked {
            rules: rules.library.rules.rules().len(),
            problems: rules.library.problems.clone(),
        });
    };
    let origin = Origin {
        scope: Scope::User,
        path: p.path.unwrap_or_else(|| "rule.toml".to_owned()),
    };
    let no_script = |_: &str| Err("a text alone has no scripts; check the file".to_owned());
    let load::Loaded { rule, problems, .. } = load_text(origin, &text, &no_script);
    Ok(Checked {
        rules: usize::from(rule.is_some()),
        problems,
    })
}
