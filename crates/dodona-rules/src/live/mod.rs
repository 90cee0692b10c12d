//! The engine at work: rules that change, state that lasts, decisions that are noted.

mod book;
mod decided;
mod hooks;
mod link;
mod run;

pub(crate) use book::Rulebook;
pub(crate) use hooks::hooks;
pub(crate) use link::EngineLink;
pub(crate) use run::{DECIDED, Live, Whose};
