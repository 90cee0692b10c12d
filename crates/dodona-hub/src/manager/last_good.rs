//! Keeping the last good version of a plugin whose files were broken by a change.
//!
//! A user may save a half-written script while editing. A gate must not disappear because of that, nor a tool
//! in the middle of a query.

use std::sync::Arc;

use dodona_proto::{PluginName, PluginState};

use super::View;
use super::activate::Active;
use super::discover::{Candidate, Kind, Plan};

/// The result of a reload for one plugin.
pub(super) enum ReloadOutcome {
    Same,
    /// The previous version is kept, because the changed one is broken, with the reason.
    Kept(String),
    New(Active),
}

/// Why a plugin is not active.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) state: PluginState,
    pub(super) reason: String,
    /// Whether the plugin itself failed, and not a dependency.
    is_fault: bool,
}

impl Refusal {
    /// The plugin itself failed.
    pub(super) fn failed(reason: String) -> Self {
        Self {
            state: PluginState::Failed,
            reason,
            is_fault: true,
        }
    }
}

impl From<(PluginState, String)> for Refusal {
    fn from((state, reason): (PluginState, String)) -> Self {
        Self {
            state,
            reason,
            is_fault: false,
        }
    }
}

/// Keeps an external plugin that was active and is broken now. Does not keep one that was disabled, lost a
/// capability or the trust of its project, or lacks a dependency.
pub(super) fn or_last_good(
    candidate: &Candidate,
    was: &Option<Active>,
    outcome: Result<ReloadOutcome, Refusal>,
) -> Result<ReloadOutcome, Refusal> {
    let is_outside = candidate.kind == Kind::External && was.is_some();
    match outcome {
        Err(refusal) if is_outside && (refusal.is_fault || candidate.broken) => {
            Ok(ReloadOutcome::Kept(format!(
                "{}; the last good version stays active",
                refusal.reason
            )))
        }
        outcome => outcome,
    }
}

/// The plan, with those that stayed as they were described as they were. What is wrong with their
/// files now is told all the same.
pub(super) fn with_outlived(mut plan: Plan, outlived: &[PluginName], before: &Arc<View>) -> Plan {
    for name in outlived {
        let Some(was) = before.candidates.get(name) else {
            continue;
        };
        let now = plan.candidates.insert(name.clone(), was.clone());
        let problems = now.map(|now| now.problems).unwrap_or_default();
        if let Some(kept) = plan.candidates.get_mut(name) {
            kept.problems = problems;
        }
    }
    plan
}
