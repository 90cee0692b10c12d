//! The real program, run in a temporary home: what it prints, and how it exits.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod agents;
mod approvals;
#[cfg(target_os = "linux")]
mod approvals_terminal;
mod ask;
mod call;
mod chat;
#[cfg(target_os = "linux")]
mod chat_terminal;
mod completions;
mod contexts;
mod damage;
mod doctor;
mod eval;
mod harness;
mod help;
#[cfg(unix)]
mod index_killed;
mod library;
mod luau;
mod mcp;
mod methods;
mod model;
mod models;
mod mounts;
mod notes;
mod plugins;
#[cfg(unix)]
mod privacy;
mod projects;
mod prompt;
#[cfg(target_os = "linux")]
mod pty;
mod query;
mod rules;
mod secrets;
mod seed_examples;
mod seeds;
mod serve;
mod settings;
#[cfg(unix)]
mod signals;
mod steer;
mod surfaces;
mod threads;
mod trust;
mod trusted;
mod tutorial;
#[cfg(target_os = "linux")]
mod unwritable;
mod versions;
mod wire;
