//! MCP servers as plugins, on a hub in this process.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

mod calls;
mod cycles;
mod hostile;
mod killed;
mod life;
mod peers;
mod support;
