//! `rules.check`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RuleMethods;
use crate::compile::Origin;
use crate::identity::Scope;
use crate::load::load_text;
use crate::settings::Declared;
use crate::{Problem, load};

#[derive(Deserialize, JsonSchema)]
pub(super) struct CheckParams {
    /// The text of a rule to check instead of the files. A rule with a script cannot be checked this way.
    #[schemars(length(max = 262_144))]
    text: Option<String>,
    /// The file name shown in messages. Default `rule.toml`.
    #[schemars(length(max = 4096))]
    path: Option<String>,
}

/// The result of a check.
#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    /// Number of valid rules.
    rules: usize,
    /// All problems, with file, line and column.
    problems: Vec<Problem>,
}

pub(super) async fn check(
    methods: &RuleMethods,
    ctx: &CallCtx,
    p: CheckParams,
) -> Result<Checked, CallError> {
    let Some(text) = p.text else {
        let loaded = methods.rules(ctx).await.loaded;
        let rules = loaded.rules.rules();
        let misnamed = rules.iter().filter_map(|rule| rule.file_name_warning());
        return Ok(Checked {
            rules: rules.len(),
            problems: loaded.problems.iter().cloned().chain(misnamed).collect(),
        });
    };
    let origin = Origin {
        scope: Scope::User,
        path: p.path.unwrap_or_else(|| "rule.toml".to_owned()),
    };
    let no_script = |_: &str| Err("a rule with a script can only be checked as a file".to_owned());
    let load::LoadedFile {
        rule, mut problems, ..
    } = load_text(origin, &text, &no_script);
    if let Some(rule) = &rule {
        let here = methods.rules(ctx).await;
        let (none, known) = (Map::new(), Value::as_object);
        let user = known(&here.user_settings).unwrap_or(&none);
        let project = known(&here.settings).unwrap_or(&none);
        problems.extend(Declared::of(user, project).problems(rule));
    }
    Ok(Checked {
        rules: usize::from(rule.is_some()),
        problems,
    })
}
