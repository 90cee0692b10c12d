//! What rules decided in a query, asked of the rules of now.

use dodona_plugin::{CallCtx, CallError};
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::json;

use super::Divergence;
use crate::conversation::RecordedQuery;

/// What asks them. Without that plugin there are none.
const AGAIN: &str = "rules.again";

/// What is journaled of a query's end comes just after it.
const AFTERWARDS: SignedDuration = SignedDuration::from_secs(5);

#[derive(Default, Deserialize)]
pub(super) struct Again {
    pub(super) difference: Option<RuleDifference>,
    pub(super) not_asked: Vec<String>,
}

/// The first thing that rules would not do as they did.
#[derive(Deserialize)]
pub(super) struct RuleDifference {
    turn: u32,
    trigger: String,
    rule: String,
    what: String,
}

pub(super) async fn again(ctx: &CallCtx, recorded: &RecordedQuery) -> Result<Again, CallError> {
    let known = ctx.methods();
    if !known.iter().any(|method| method.name.as_str() == AGAIN) {
        return Ok(Again::default());
    }
    let until = recorded.info.ended_at.map(|at| at + AFTERWARDS);
    let params = json!({ "query_id": recorded.info.id, "until": until });
    ctx.call(AGAIN, params).await
}

impl RuleDifference {
    /// Whether it comes before something else in which the query differs.
    pub(super) fn comes_before(&self, other: &Divergence) -> bool {
        self.requests_before() < other.turn as usize
    }

    /// How many requests came before it.
    pub(super) fn requests_before(&self) -> usize {
        let turn = self.turn as usize;
        match self.trigger.as_str() {
            // Before the request of its turn.
            "on_query_start" | "on_turn_start" => turn.saturating_sub(1),
            _ => turn,
        }
    }
}

impl From<RuleDifference> for Divergence {
    fn from(other: RuleDifference) -> Self {
        Self {
            turn: other.turn,
            what: format!(
                "the rule `{}` ({}) {}",
                other.rule, other.trigger, other.what
            ),
        }
    }
}
