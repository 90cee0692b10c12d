//! A rule as its file has it: read, validated, every part with its place.
//!
//! [`parse`] turns a text into a [`Rule`] and tells everything that is wrong at once. What a
//! condition or a message says is looked at by [`compile`](crate::CompiledRule::compile).

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
