//! What becomes of a plugin whose files were broken by a change: it stays as it was.
//!
//! Somebody who edits a script saves it half-written. A guard that fails to compile must not be
//! gone because of that, nor a tool in the midst of a query.

use std::sync::Arc;

use dodona_proto::{PluginName, PluginState};

use super::View;
use super::activate::Active;
use super::discover::{Candidate, Kind, Plan};

/// How a plugin came out of a reload.
pub(super) enum Came {
    /// As it was, because nothing changed.
    Same,
    /// As it was, because the change is broken; and what is wrong with it.
    Kept(String),
    /// Activated.
    New(Active),
}

/// Why a plugin is not active.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) state: PluginState,
    pub(super) reason: String,
    /// Whether the plugin itself failed, and not something that it needs.
    is_fault: bool,
}

impl Refusal {
    /// It failed by itself.
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

/// A plugin from outside that was active and is broken now stays what it was. One that somebody
/// switched off, that lost a grant or its project's trust, or that lacks what it needs does not.
pub(super) fn or_what_was(
    candidate: &Candidate,
    was: &Option<Active>,
    came: Result<Came, Refusal>,
) -> Result<Came, Refusal> {
    let is_outside = candidate.kind == Kind::External && was.is_some();
    match came {
        Err(refusal) if is_outside && (refusal.is_fault || candidate.broken) => Ok(Came::Kept(
            format!("{}; the last good version stays active", refusal.reason),
        )),
        came => came,
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
