//! Development only: what the tests and the speed tables of the workspace share.
//!
//! Start from [`TestHub`], a hub in this process on a temporary home, and
//! [`assert_well_formed`], which every stream has to pass whatever happened to its call.
//!
//! ```
//! use dodona_testkit::{TestHub, assert_well_formed};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), dodona_proto::CallError> {
//! let hub = TestHub::start().await;
//! let said = hub.call("alice", "echo.say", json!({"text": "hello"})).await?;
//! assert_eq!(said, json!({"text": "hello"}));
//!
//! let items = hub.open("alice", "echo.count", json!({"to": 3})).await?.collect().await?;
//! assert_well_formed(&items);
//!
//! let hub = hub.restart().await;
//! assert!(hub.call("alice", "echo.stats", json!({})).await.is_ok());
//! # Ok(())
//! # }
//! ```
//!
//! The binary `crash-writer` keeps a hub busy and prints whatever was acknowledged to it; the
//! tests of this crate kill it, or let its system calls fail, and compare what is left on disk.
//! [`model_server`] is a model provider that says what a test wants, faults included.
//! [`measure`] is the loop behind the speed tables in `benches/`. [`Python`] and [`Node`] bring the
//! libraries and programs that ours are compared with, [`Peer`] runs one that serves.
//! The binary `real-model` asks a real small model through the program that ships; `cargo xtask test
//! --with-model` runs it.
//!
//! # What it does not do
//!
//! It is part of no product: other crates use it from their `tests/` folders only. It fakes no
//! part of the hub or the store: what runs here is what ships. It cuts no power: a killed process
//! shows what was handed to the operating system, not what reached the disk.

mod alone;
mod chance;
mod hub;
pub mod measure;
pub mod model_server;
mod node;
mod peer;
mod python;
mod stream;
mod target;

pub use alone::is_alone;
pub use chance::Chance;
pub use hub::{HubBuilder, TestHub, principal};
#[doc(hidden)]
pub use mimalloc::MiMalloc;
pub use node::Node;
pub use peer::Peer;
pub use python::{Lines, Python};
/// For tests that look at a database, or hold it, as another process would.
pub use rusqlite;
pub use stream::{assert_well_formed, fault, fingerprint};
pub use target::target_directory;

/// Gives a bench the allocator of the binary that ships, for us and for its peers alike.
#[macro_export]
macro_rules! allocate_as_shipped {
    () => {
        #[global_allocator]
        static ALLOCATOR: $crate::MiMalloc = $crate::MiMalloc;
    };
}
