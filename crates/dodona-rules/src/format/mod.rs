//! Parsing and validating a rule file. Every part has its position.
//!
//! [`parse`] turns a text into a [`Rule`] and reports all problems at once. Conditions and templates are
//! checked by [`compile`](crate::CompiledRule::compile).

mod action;
mod actions;
mod limits;
mod read;
mod rule;
mod test;
mod trigger;

pub use action::{Action, ActionKind};
pub use limits::{Cooldown, Limits, OnError, OncePer};
pub use read::parse;
pub(crate) use read::within;
pub use rule::{Condition, ID_LENGTH, Rule, Spot, Spots};
pub use test::{Expect, RuleTest};
pub use trigger::{Trigger, UnknownTrigger};
