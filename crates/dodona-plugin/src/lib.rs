//! The API for plugin authors.
//!
//! A plugin implements [`Plugin`]. Its `activate` returns a [`Contribution`], a plain value that the hub installs
//! completely or not at all. Methods are ordinary async functions; [`plugin`] and [`method`](macro@method)
//! generate descriptors and closures for them. A running method gets a [`CallCtx`] with the caller, the deadline
//! and nested calls.
//!
//! ```
//! use std::sync::Arc;
//! use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, activation, plugin};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct GreetParams {
//!     /// Who to greet.
//!     name: String,
//! }
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Greeting {
//!     text: String,
//! }
//!
//! struct Greeter;
//!
//! #[plugin(name = "greeter")]
//! impl Greeter {
//!     /// Greets somebody by name.
//!     #[method(scope = "greeter:use")]
//!     async fn greet(&self, _ctx: &CallCtx, p: GreetParams) -> Result<Greeting, CallError> {
//!         Ok(Greeting { text: format!("Hello, {}!", p.name) })
//!     }
//! }
//!
//! struct GreeterPlugin;
//!
//! impl Plugin for GreeterPlugin {
//!     fn name(&self) -> &'static str { "greeter" }
//!     fn version(&self) -> &'static str { "1.0.0" }
//!     fn activate(&self, _ctx: PluginContext) -> activation::Activating<'_> {
//!         Box::pin(async { Ok(Contribution::new().methods(Arc::new(Greeter).plugin_methods()?)) })
//!     }
//! }
//! # let methods = Arc::new(Greeter).plugin_methods()?;
//! # assert_eq!(methods[0].descriptor().description, "Greets somebody by name.");
//! # Ok::<(), dodona_plugin::ContractError>(())
//! ```
//!
//! # What it does not do
//!
//! No policy: the hub is responsible for scopes, limits, validation, cancellation and `Done` items. A plugin never
//! holds the hub; what it may use comes with the call.

#![warn(missing_docs)]

pub mod activation;
mod call;
mod capability;
mod emitter;
mod event_handler;
mod history;
mod loader;
mod log;
pub mod manifest;
mod method;
pub mod reading;
mod rules;
mod schema;
mod settings;
mod state;
mod system;
mod telemetry;
pub mod tool_text;
mod trusted;

pub use activation::{
    ActivationError, Behalf, Contribution, EventBus, HookHost, Lagged, MethodHost, Plugin,
    PluginContext, Subscription,
};
pub use call::{
    CallCtx, CallInfo, Caller, ItemStream, Origin, Params, ScopeWork, ToolReply, ToolRequest,
    ToolStart,
};
pub use capability::{Capabilities, Capability, CapabilityError};
pub use dodona_hooks as hooks;
pub use dodona_http as http;
pub use dodona_macros::{method, plugin};
pub use dodona_proto as proto;
pub use dodona_proto::{CallError, ErrorCode};
pub use dodona_store as store;
pub use emitter::{Emitter, forward};
pub use event_handler::{EventCallback, EventHandler};
pub use futures_util::future::BoxFuture;
pub use history::EventHistory;
pub use loader::{Loaded, Loader, Loaders, Outside, OutsideSource};
pub use log::{LogLevel, LogLine, PluginLog};
pub use manifest::Manifest;
pub use method::{ContractError, Handler, Method, MethodSpec, NoParams, ToolSpec};
pub use rules::{
    DroppedNotification, PROJECT_RULES, RuleHost, RuleRefresh, RuleSource, RuleTrust, WrittenFiles,
};
pub use schema::{content_hash, hash as schema_hash};
pub use settings::{Overrides, PluginSettings, Setting, SettingKind, Settings};
pub use state::{State, StateBackend, StateOwner, StateSnapshot, StateStore};
pub use system::{AuthContext, SystemContext};
pub use telemetry::{MetricError, Telemetry};
pub use tool_text::{ToolRenderer, ToolText};
pub use trusted::{ProjectInstructions, TrustHost, TrustedFolder, TrustedTexts};

/// The examples of the how-tos, which must compile and run as written.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/add-a-method.md")]
#[doc = include_str!("../../../docs/how-to/add-a-plugin.md")]
#[doc = include_str!("../../../docs/how-to/write-hooks.md")]
struct HowTo;
