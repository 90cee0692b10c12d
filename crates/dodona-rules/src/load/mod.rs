//! Loading rule files into a rule set. A broken file affects only its own rule.

mod bundled;
mod directory;
mod evaluation_counts;
mod file;
mod merge;
mod scan;
mod set;
mod versions;

pub use bundled::{BUNDLED, BundledFile, bundled};
pub use directory::{load_directory, rule_files};
pub use file::{Inactive, LARGEST, LoadedFile, SourceText, load_file, load_text};
pub(crate) use file::{read_text, relative, script_below, script_path};
pub use merge::{Layers, merge};
pub(crate) use scan::{ProjectLocation, ProjectRules, RuleLocations, RuleSets, Scanner};
pub(crate) use set::Entry;
pub use set::{PlacedRule, RuleSet, TriggerRules};

use std::sync::atomic::AtomicBool;

use crate::Problem;

/// The rules loaded from all sources.
#[derive(Debug, Default)]
pub struct LoadedRules {
    /// The active rules, indexed by trigger.
    pub rules: RuleSet,
    pub problems: Vec<Problem>,
    /// Set if the rules cannot be read at all. Then no tool may run.
    pub unreadable: Option<String>,
    /// Whether the log counts the evaluations of this set.
    pub(crate) is_counted: AtomicBool,
}

impl LoadedRules {
    /// Merges the layers. An earlier field of [`Layers`] takes precedence.
    pub fn of(layers: Layers) -> Self {
        let (rules, problems) = merge(layers);
        Self {
            rules: RuleSet::placed(rules),
            problems,
            unreadable: None,
            is_counted: AtomicBool::new(false),
        }
    }
}
