//! `/mcp`, on real sockets.

mod calls;
mod client;
mod conformance;
mod fixture;
mod hostile;

use crate::support::{Builder, Server};

/// A server with the tools that the conformance suite wants.
fn builder() -> Builder {
    Server::builder().hub(|hub| {
        hub.plugin(|| fixture::TestPlugin)
            .plugin(|| fixture::VaultPlugin)
    })
}
