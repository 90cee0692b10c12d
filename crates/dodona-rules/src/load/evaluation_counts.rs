//! How often the rules of a trigger were evaluated, by user and project.
//!
//! All rules of a trigger are evaluated together, so an event increments one counter of its owner and not one
//! per rule. The counts per rule are computed when the counters are read.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use dodona_proto::Surface;
use jiff::Timestamp;

use crate::engine::EventOwner;

/// Evaluations since [`EvaluationCounts::take`] was last called.
#[derive(Debug, Default)]
pub(super) struct EvaluationCounts(Mutex<HashMap<EventOwner, Vec<OwnerCount>>>);

/// Events of one owner from the same origin.
#[derive(Debug)]
pub(super) struct OwnerCount {
    /// The surface of tool calls outside queries; `None` for events of queries.
    pub(super) outside: Option<Surface>,
    pub(super) events: u64,
    pub(super) last: Timestamp,
    /// Number of events at which a rule was disabled, by its index.
    pub(super) left_out: BTreeMap<usize, u64>,
}

impl OwnerCount {
    /// How often the rule at an index was evaluated.
    pub(super) fn evaluated(&self, place: usize) -> u64 {
        let left_out = self.left_out.get(&place).copied().unwrap_or(0);
        self.events.saturating_sub(left_out)
    }
}

impl EvaluationCounts {
    /// Counts an event at which all rules except the given indices were evaluated.
    pub(super) fn count(
        &self,
        owner: &EventOwner,
        outside: Option<Surface>,
        left_out: impl Iterator<Item = usize>,
    ) {
        let now = Timestamp::now();
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The owner is cloned for its first event only.
        let rounds = match owners.get_mut(owner) {
            Some(rounds) => rounds,
            None => owners.entry(owner.clone()).or_default(),
        };
        let known = rounds.iter().position(|round| round.outside == outside);
        let at = known.unwrap_or_else(|| {
            rounds.push(OwnerCount {
                outside,
                events: 0,
                last: now,
                left_out: BTreeMap::new(),
            });
            rounds.len() - 1
        });
        let round = &mut rounds[at];
        round.events += 1;
        round.last = now;
        for place in left_out {
            *round.left_out.entry(place).or_default() += 1;
        }
    }

    /// Returns and resets the counts.
    pub(super) fn take(&self) -> HashMap<EventOwner, Vec<OwnerCount>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
