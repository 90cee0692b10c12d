//! What is left on disk when a process is killed, or when its disk fails.

mod crash;
mod faults;
mod ledger;
mod writer;
