//! The hub, from the place of a surface and of a plugin: no socket, no command line.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod activation;
mod approvals;
mod audit;
mod bad_input;
mod bus;
mod capabilities;
mod config;
mod events;
mod gates;
mod homes;
mod identity;
mod integration;
mod journal;
mod limits;
mod loaders;
mod manager;
mod manifests;
mod nesting;
mod readers;
mod reload;
mod state;
mod stopping;
mod support;
mod system;
mod taps;
mod terminals;
