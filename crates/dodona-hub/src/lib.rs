//! The host: it activates plugins and runs their methods.
//!
//! Start from [`Hub`]. Every surface, and every call between plugins, goes through the one
//! dispatcher behind [`Hub::call`] and [`Hub::open`]: authorise → limit → find → validate, and then,
//! as a call with its place in the tree: gate → run → guard.
//!
//! ```
//! use std::sync::Arc;
//! use dodona_hub::{Hub, HubConfig, Request, echo};
//! use dodona_proto::{Principal, Scopes, Surface, UserId};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let hub = Hub::start(folder.path(), HubConfig::default(), vec![Arc::new(echo::EchoPlugin::default())]).await?;
//! let alice = Arc::new(Principal { user: UserId::new("alice")?, scopes: Scopes::all(), surface: Surface::Internal });
//! let said = hub.call(Request::new(alice, "echo.say", json!({"text": "hello"}))).await?;
//! assert_eq!(said, json!({"text": "hello"}));
//! hub.stop(std::time::Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//!
//! It knows no wire and no plugin but its own, `hub`, `plugins` and `echo`; it opens no socket and
//! prints nothing. Of what users write it reads the roster, manifests and plugins' own settings;
//! its own settings are an argument.

mod accounts;
mod admit;
mod approvals;
mod attendance;
mod bus;
mod cancel;
mod config;
mod database;
pub mod echo;
pub mod events;
mod gate;
mod history;
mod host;
mod hub;
mod limits;
mod manager;
mod meter;
mod methods;
mod node;
mod overrides;
mod pause;
mod plugins;
mod projects;
mod request;
mod router;
mod run;
mod state;
mod stream;
mod tap;
mod tool;
mod tree;
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
    Answerers, ApprovalsConfig, CapabilityMode, HubConfig, Limit, LimitsConfig, Places,
};
pub use dodona_store::journal::StoredItem;
pub use hub::{Health, Hub, StartError};
pub use manager::{Directory, Module};
pub use request::{Keep, Request};
pub use stream::{CallStream, Reader};
