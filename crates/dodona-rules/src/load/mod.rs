//! From files to a set of rules. What is wrong with one concerns that one.

mod bundled;
mod directory;
mod file;
mod merge;
mod rounds;
mod scan;
mod set;
mod versions;

pub use bundled::{BUNDLED, BundledFile, bundled};
pub use directory::{load_directory, rule_files};
pub use file::{Inactive, LARGEST, Loaded, SourceText, load_file, load_text};
pub(crate) use file::{read_text, relative, script_below, script_path};
pub use merge::{Layers, merge};
pub(crate) use scan::{Places, ProjectPlace, ProjectRules, Scanner, Sets};
pub(crate) use set::Entry;
pub use set::{PlacedRule, RuleSet, TriggerRules};

use std::sync::atomic::AtomicBool;

use crate::Problem;

/// Everything that a set of sources came to.
#[derive(Debug, Default)]
pub struct Library {
    /// The rules that run, indexed by trigger.
    pub rules: RuleSet,
    /// What is wrong, and what does not count.
    pub problems: Vec<Problem>,
    /// Why the rules cannot be read at all. Then no tool may run.
    pub unreadable: Option<String>,
    /// Whether the log counts its evaluations.
    pub(crate) is_counted: AtomicBool,
}

impl Library {
    /// The rules of these sources: what stands above in [`Layers`] wins.
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
