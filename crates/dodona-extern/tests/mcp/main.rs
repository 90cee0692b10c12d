//! MCP servers as plugins, on a hub in this process.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod asked;
mod authorization;
mod calls;
mod conformance;
mod cycles;
mod hostile;
mod hostile_http;
mod killed;
mod life;
mod manifests;
mod peers;
mod support;
