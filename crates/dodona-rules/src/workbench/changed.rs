//! Rules that are not in use: texts to try.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::Problem;
use crate::compile::{CompiledRule, Origin};
use crate::identity::Scope;
use crate::load::{RuleSet, load_text};

/// A rule's file as a text, wherever it is: nothing is read on behalf of whoever sends it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct RuleText {
    /// What to call it in messages.
    #[schemars(length(max = 4096))]
    path: String,
    /// The text.
    #[schemars(length(max = 262_144))]
    text: String,
    /// The scripts that it names, by the paths by which it does.
    #[serde(default)]
    scripts: BTreeMap<String, String>,
}

/// The rules of texts, and what is wrong with them.
pub(super) fn load(texts: Vec<RuleText>) -> (Vec<Arc<CompiledRule>>, Vec<Problem>) {
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    for RuleText {
        path,
        text,
        scripts,
    } in texts
    {
        let origin = Origin {
            scope: Scope::User,
            path,
        };
        let script = |path: &str| {
            let found = scripts.get(path).cloned();
            found.ok_or_else(|| format!("the script `{path}` was not sent along"))
        };
        let loaded = load_text(origin, &text, &script);
        problems.extend(loaded.problems);
        rules.extend(loaded.rule);
    }
    (rules, problems)
}

/// A set with rules in the places of those that have the same names, or added to it.
pub(super) fn replaced(set: &RuleSet, with: &[Arc<CompiledRule>]) -> RuleSet {
    let stays = |rule: &&Arc<CompiledRule>| with.iter().all(|new| new.key != rule.key);
    let kept = set.active().filter(stays).cloned();
    RuleSet::new(kept.chain(with.iter().cloned()).collect())
}
