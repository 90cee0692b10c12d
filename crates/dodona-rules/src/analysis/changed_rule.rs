//! Rules that a caller sends as text, to try them before they are saved.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::Problem;
use crate::compile::{CompiledRule, Origin};
use crate::identity::Scope;
use crate::load::{RuleSet, load_text};

/// The text of a rule file. The server reads no file for it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct RuleText {
    /// The file name shown in messages.
    #[schemars(length(max = 4096))]
    path: String,
    /// The text in TOML.
    #[schemars(length(max = 262_144))]
    text: String,
    /// The scripts it refers to, by the path in the rule.
    #[serde(default)]
    scripts: BTreeMap<String, String>,
}

/// Compiles the texts and returns the rules and their problems.
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
            found.ok_or_else(|| format!("script `{path}` is missing in `scripts`"))
        };
        let loaded = load_text(origin, &text, &script);
        problems.extend(loaded.problems);
        rules.extend(loaded.rule);
    }
    (rules, problems)
}

/// A rule set in which the given rules replace those with the same id, or are added.
pub(super) fn replaced(set: &RuleSet, with: &[Arc<CompiledRule>]) -> RuleSet {
    let stays = |rule: &&Arc<CompiledRule>| with.iter().all(|new| new.key != rule.key);
    let kept = set.active().filter(stays).cloned();
    RuleSet::new(kept.chain(with.iter().cloned()).collect())
}
