//! Which rule counts where several have the same name.

use std::collections::BTreeMap;
use std::sync::Arc;

use dodona_plugin::reading;

use super::file::Loaded;
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
    /// Of plugins.
    pub plugins: Vec<Loaded>,
    /// Of a project: it may add rules and replace none.
    pub project: Vec<Loaded>,
}

/// Decides which rules count. What does not is said.
pub fn merge(layers: Layers) -> (Vec<Arc<CompiledRule>>, Vec<Problem>) {
    let mut merging = Merging::default();
    merging.layer(layers.bundled, stays);
    merging.layer(layers.user, yields_to_user);
    merging.layer(layers.plugins, stays);
    merging.layer(layers.project, stays);
    (merging.rules.into_values().collect(), merging.problems)
}

#[derive(Default)]
struct Merging {
    rules: BTreeMap<RuleKey, Arc<CompiledRule>>,
    problems: Vec<Problem>,
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
        for Loaded { rule, problems, .. } in loaded {
            self.problems.extend(problems);
            let Some(rule) = rule else { continue };
            let why = self.rules.get(&rule.key).and_then(|known| stays(known));
            match why {
                None => {
                    self.rules.insert(rule.key.clone(), rule);
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
