//! The execution log and the counts of each rule.
//!
//! Entries are buffered in memory and written together shortly after, and before each read. A crash loses
//! at most the buffered entries; the decisions themselves are in the journal.

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
