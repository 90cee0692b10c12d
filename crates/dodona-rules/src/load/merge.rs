//! Which rule applies if several have the same name.

use std::collections::BTreeMap;
use std::sync::Arc;

use dodona_plugin::reading;

use super::file::LoadedFile;
use super::set::PlacedRule;
use crate::Problem;
use crate::compile::CompiledRule;
use crate::identity::{RuleKey, Scope};

/// Loaded files, by origin.
#[derive(Debug, Default)]
pub struct Layers {
    pub bundled: Vec<LoadedFile>,
    /// The user's rules. They replace bundled rules, except core rules.
    pub user: Vec<LoadedFile>,
    /// Rules of the user's plugins.
    pub plugins: Vec<LoadedFile>,
    /// Rules of the project's plugins.
    pub project_plugins: Vec<LoadedFile>,
    /// Rules of the project. They can add rules but replace none.
    pub project: Vec<LoadedFile>,
}

/// Decides which rules apply, and reports the others.
pub fn merge(layers: Layers) -> (Vec<PlacedRule>, Vec<Problem>) {
    let mut merging = Merging::default();
    merging.layer(layers.bundled, stays);
    merging.layer(layers.user, yields_to_user);
    merging.layer(layers.plugins, stays);
    merging.is_of_project = true;
    merging.layer(layers.project_plugins, stays);
    merging.layer(layers.project, stays);
    (merging.rules.into_values().collect(), merging.problems)
}

#[derive(Default)]
struct Merging {
    rules: BTreeMap<RuleKey, PlacedRule>,
    problems: Vec<Problem>,
    /// Whether the following layers belong to a project.
    is_of_project: bool,
}

/// Why a rule with the same name cannot replace this one.
fn stays(known: &CompiledRule) -> Option<String> {
    let path = &known.origin.path;
    Some(format!("`{}` is already defined in {path}", known.key))
}

/// A user's rule replaces a bundled one unless that is a core rule.
fn yields_to_user(known: &CompiledRule) -> Option<String> {
    match (&known.origin.scope, known.is_core) {
        (Scope::Bundled, false) => None,
        (Scope::Bundled, true) => Some(format!(
            "`{}` is a core rule and cannot be replaced",
            known.key
        )),
        _ => stays(known),
    }
}

impl Merging {
    fn layer(&mut self, loaded: Vec<LoadedFile>, stays: fn(&CompiledRule) -> Option<String>) {
        for loaded in loaded {
            self.problems.extend(loaded.problems);
            let Some(rule) = loaded.rule else { continue };
            let known = self.rules.get(&rule.key);
            let why = known.and_then(|known| stays(&known.rule));
            match why {
                None => {
                    let placed = PlacedRule {
                        is_of_project: self.is_of_project,
                        inactive: loaded.inactive,
                        rule: Arc::clone(&rule),
                    };
                    self.rules.insert(rule.key.clone(), placed);
                }
                Some(why) => self.problems.push(double(&rule, why)),
            }
        }
    }
}

fn double(rule: &CompiledRule, why: String) -> Problem {
    let spot = &rule.rule.spots.id;
    Problem::error(reading::Problem {
        path: rule.origin.path.clone(),
        place: Some(reading::Place {
            line: spot.line,
            column: spot.column,
            width: spot.span.len(),
            text: spot.text.clone(),
        }),
        message: format!("{why}; this rule is ignored"),
        hint: Some("use another `id`".to_owned()),
    })
}
