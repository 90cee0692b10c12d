//! Which rule counts where several have the same name.

use std::collections::BTreeMap;
use std::sync::Arc;

use dodona_plugin::reading;

use super::file::Loaded;
use super::set::PlacedRule;
use crate::Problem;
use crate::compile::CompiledRule;
use crate::identity::{RuleKey, Scope};

/// What was loaded, by where it comes from.
#[derive(Debug, Default)]
pub struct Layers {
    /// With the program.
    pub bundled: Vec<Loaded>,
    /// The user's own: they replace bundled ones, but for core ones.
    pub user: Vec<Loaded>,
    /// Of the user's plugins.
    pub plugins: Vec<Loaded>,
    /// Of the project's plugins.
    pub project_plugins: Vec<Loaded>,
    /// Of a project: it may add rules and replace none.
    pub project: Vec<Loaded>,
}

/// Decides which rules count. What does not is said.
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
    /// Whether the layers from here on are a project's.
    is_of_project: bool,
}

/// Why a rule with the same name does not take its place.
fn stays(known: &CompiledRule) -> Option<String> {
    let path = &known.origin.path;
    Some(format!("`{}` is defined in {path} already", known.key))
}

/// A bundled rule can be replaced by the user's, unless it is core.
fn yields_to_user(known: &CompiledRule) -> Option<String> {
    match (&known.origin.scope, known.is_core) {
        (Scope::Bundled, false) => None,
        (Scope::Bundled, true) => Some(format!(
            "`{}` is a core rule, and nothing replaces it",
            known.key
        )),
        _ => stays(known),
    }
}

impl Merging {
    fn layer(&mut self, loaded: Vec<Loaded>, stays: fn(&CompiledRule) -> Option<String>) {
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
        message: format!("{why}; this one does not run"),
        hint: Some("give it another `id`".to_owned()),
    })
}
