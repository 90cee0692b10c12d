//! The plugin hub: it loads plugins and runs their methods.
//!
//! Start reading at [`PluginHub`], then at `dispatch/mod.rs`. Every call, from a surface or from another
//! call, goes through the dispatcher: check (scope, limits, lookup, parameters) → enter the call tree →
//! gates (tools only) → journal (mutating methods) → execute → end with exactly one `Done`.
//!
//! ```
//! use std::sync::Arc;
//! use dodona_hub::{PluginHub, HubConfig, Request, echo};
//! use dodona_proto::{Principal, Scopes, Surface, UserId};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let hub = PluginHub::start(folder.path(), HubConfig::default(), vec![Arc::new(echo::EchoPlugin::default())]).await?;
//! let alice = Arc::new(Principal { user: UserId::new("alice")?, scopes: Scopes::all(), surface: Surface::Internal });
//! let result = hub.call(Request::new(alice, "echo.say", json!({"text": "hello"}))).await?;
//! assert_eq!(result, json!({"text": "hello"}));
//! hub.stop(std::time::Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//!
//! It opens no socket and prints nothing. It knows no plugin except its own: `hub`, `plugins`, `events`
//! and `echo`. It reads the roster, manifests and settings of plugins; its own configuration is an
//! argument.

mod accounts;
mod approvals;
mod bus;
mod call;
mod call_tree;
mod cancel;
mod config;
mod database;
mod deadline;
mod dispatch;
pub mod echo;
pub mod events;
mod history;
mod host;
mod hub;
mod limits;
mod manager;
mod meter;
mod methods;
mod nested_items;
mod overrides;
mod plugins;
mod projects;
mod reader_count;
mod request;
mod router;
mod state;
mod stream;
mod trust;
mod validate;

/// The databases of this crate and their newest schema versions.
pub const SCHEMAS: &[(&str, usize)] = &[
    (database::FILE, database::MIGRATIONS.len()),
    ("plugins/echo/echo.db", echo::MIGRATIONS.len()),
];

pub use accounts::{LOCAL_USER, TokenInfo};
pub use cancel::CancelTarget;
pub use config::{
    ApprovalsConfig, Approvers, CapabilityMode, HubConfig, HubPaths, Limit, LimitsConfig,
};
pub use dispatch::PreparedCall;
pub use dodona_store::journal::StoredItem;
pub use hub::{Health, PluginHub, StartError};
pub use manager::{Directory, Module};
pub use request::{Request, UnreadPolicy};
pub use stream::{CallStream, Reader};
