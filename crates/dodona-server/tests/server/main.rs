//! The wire, on real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approvals;
mod auth;
mod client;
mod daemon_integration;
mod discovery;
mod errors;
mod fuzz;
mod generated_client;
mod guard;
mod hostile;
mod http;
mod mcp;
mod metrics;
mod page;
mod peer;
mod restart;
mod rpc;
mod seed_wire;
mod sse;
mod stalled;
mod support;
mod users;
mod websocket;
mod ws;
