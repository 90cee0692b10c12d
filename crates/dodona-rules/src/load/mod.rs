//! From files to a set of rules. What is wrong with one concerns that one.

mod bundled;
mod directory;
mod file;
mod merge;
mod scan;
mod set;

pub use bundled::{BUNDLED, BundledFile, bundled};
pub use directory::{load_directory, rule_files};
pub use file::{LARGEST, Loaded, load_file, load_text};
pub(crate) use file::{read_text, relative, script_below};
pub use merge::{Layers, merge};
pub(crate) use scan::{Places, ProjectRules, Scanner, Sets};
pub(crate) use set::Entry;
pub use set::{RuleSet, TriggerRules};

use crate::Problem;

/// Everything that a set of sources came to.
#[derive(Debug, Default)]
pub struct Library {
    /// The rules that run, indexed by trigger.
    pub rules: RuleSet,
    /// What is wrong, and what does not count.
    pub problems: Vec<Problem>,
}

impl Library {
    /// The rules of these sources: what stands above in [`Layers`] wins.
    pub fn of(layers: Layers) -> Self {
        let (rules, problems) = merge(layers);
        Self {
            rules: RuleSet::new(rules),
            problems,
        }
    }
}
