//! What rules did: the execution log, and how alive each rule is.
//!
//! An event leaves its notes in memory and goes on; they are written together a moment later, and
//! before anybody reads them. A crash loses at most that moment of notes: what was decided is in
//! the journal.

mod activity;
mod dropped;
mod lines;
mod liveness;
mod read;
mod schema;
mod write;

pub use lines::{LineFilter, RuleLogLine};
pub use liveness::{Counts, Liveness};
pub(crate) use read::DroppedExecution;
pub use read::{Execution, LogFilter};
pub(crate) use schema::MIGRATIONS;
pub(crate) use write::Log;
