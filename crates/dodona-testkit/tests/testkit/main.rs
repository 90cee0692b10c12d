//! What is left on disk when a process is killed, or when its disk fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod agent;
mod crash;
mod faults;
mod ledger;
mod writer;
