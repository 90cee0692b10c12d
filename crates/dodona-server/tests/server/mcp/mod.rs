//! `/mcp`, on real sockets.

mod asking;
mod calls;
mod changes;
mod client;
mod conformance;
mod fixture;
mod hostile;
mod reading;

use crate::support::{Builder, Server};

/// A server with the tools that the conformance suite wants.
fn builder() -> Builder {
    Server::builder().hub(fixture::install)
}
