//! What each node was in an evaluation.

use crate::error::Fault;
use crate::ir::Id;
use crate::value::Value;

/// What became of a node the last time it was evaluated.
#[derive(Debug, Clone)]
pub(crate) enum Outcome<'a> {
    Value(Value<'a>),
    Failed(String),
}

/// Outcomes by the number of the node; none for one that was not reached.
pub(crate) struct Trace<'a> {
    outcomes: Vec<Option<Outcome<'a>>>,
    times: Vec<u32>,
}

impl<'a> Trace<'a> {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            outcomes: vec![None; nodes],
            times: vec![0; nodes],
        }
    }

    pub(super) fn record(&mut self, id: Id, answer: &Result<Value<'a>, Fault>) {
        let at = id as usize;
        self.times[at] = self.times[at].saturating_add(1);
        self.outcomes[at] = Some(match answer {
            Ok(value) => Outcome::Value(value.clone()),
            Err(fault) => Outcome::Failed(fault.message().to_owned()),
        });
    }

    pub(crate) fn outcome(&self, id: Id) -> Option<&Outcome<'a>> {
        self.outcomes.get(id as usize)?.as_ref()
    }

    /// How often the node was evaluated: more than once in a comprehension.
    pub(crate) fn times(&self, id: Id) -> u32 {
        self.times.get(id as usize).copied().unwrap_or_default()
    }
}
