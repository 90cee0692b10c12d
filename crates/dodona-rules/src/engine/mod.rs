//! The rule engine: evaluates the rules of a trigger when a hook point fires.
//!
//! Start reading at [`RuleEngine::evaluate`]. [`RuleStore`] holds the current rules and follows changes of
//! their files.

mod combined_decisions;
mod engine_handle;
mod hooks;
mod rule_engine;
mod rule_store;

pub(crate) use engine_handle::EngineHandle;
pub(crate) use hooks::hooks;
pub(crate) use rule_engine::{DECISIONS_EVENT, EventOwner, RuleEngine};
pub(crate) use rule_store::RuleStore;
