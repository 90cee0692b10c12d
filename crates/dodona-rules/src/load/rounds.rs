//! How often the rules of a trigger were evaluated, by user and project.
//!
//! All rules of a trigger are evaluated together, so an event adds one to a counter of its owner, and
//! not one to every rule. What each rule comes to is worked out when the counters are taken.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use dodona_proto::Surface;
use jiff::Timestamp;

use crate::live::Whose;

/// Evaluations since [`Rounds::take`] was last called.
#[derive(Debug, Default)]
pub(super) struct Rounds(Mutex<HashMap<Whose, Vec<Round>>>);

/// Events of one owner that came the same way.
#[derive(Debug)]
pub(super) struct Round {
    /// The surface of tool calls outside of a query; nothing for events of a query.
    pub(super) outside: Option<Surface>,
    pub(super) events: u64,
    pub(super) last: Timestamp,
    /// At how many of the events a rule was switched off, by its place.
    pub(super) left_out: BTreeMap<usize, u64>,
}

impl Round {
    /// How often the rule in a place was evaluated.
    pub(super) fn evaluated(&self, place: usize) -> u64 {
        let left_out = self.left_out.get(&place).copied().unwrap_or(0);
        self.events.saturating_sub(left_out)
    }
}

impl Rounds {
    /// Counts an event at which all rules were evaluated but those in the given places.
    pub(super) fn count(
        &self,
        whose: &Whose,
        outside: Option<Surface>,
        left_out: impl Iterator<Item = usize>,
    ) {
        let now = Timestamp::now();
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The owner is cloned for its first event only.
        let rounds = match owners.get_mut(whose) {
            Some(rounds) => rounds,
            None => owners.entry(whose.clone()).or_default(),
        };
        let known = rounds.iter().position(|round| round.outside == outside);
        let at = known.unwrap_or_else(|| {
            rounds.push(Round {
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

    /// Takes what was counted.
    pub(super) fn take(&self) -> HashMap<Whose, Vec<Round>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
