//! The real program, run in a temporary home: what it prints, and how it exits.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod ask;
mod call;
mod completions;
mod contexts;
mod doctor;
mod harness;
mod help;
#[cfg(unix)]
mod index_killed;
mod methods;
mod notes;
mod serve;
mod settings;
#[cfg(unix)]
mod signals;
