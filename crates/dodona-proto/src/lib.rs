//! The words of Dodona that cross a crate or a wire.
//!
//! Start from [`HubStreamItem`] (what a call emits), [`MethodDescriptor`] (what can be called),
//! [`CallId`] and [`PluginPath`] (who is calling) and [`CallError`] (how it went wrong).
//!
//! ```
//! use dodona_proto::{DoneStatus, HubStreamItem, ItemBody, PluginName, PluginPath, StreamId};
//!
//! let stream = StreamId::random();
//! let item = HubStreamItem {
//!     call_id: stream.root_call(),
//!     seq: 1,
//!     plugin_path: PluginPath::root(&PluginName::new("echo")?),
//!     body: ItemBody::Done { status: DoneStatus::Complete, reason: None },
//! };
//! assert_eq!(serde_json::to_value(&item)?["plugin_path"], "echo");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! No I/O, no clock, no runtime: a type that is used by one crate alone, or a function that
//! decides something, belongs elsewhere.

#![warn(missing_docs)]

mod approval;
mod call_id;
mod client_request;
mod descriptor;
mod effect;
mod error;
mod event;
pub mod hook;
mod item;
mod message;
mod name;
mod path;
mod principal;
mod project;
mod rule_context;
mod snapshot;
mod source;
mod status;
mod usage;

pub use approval::{
    ApprovalAnswer, ApprovalId, ApprovalIdError, ApprovalRecord, ApprovalRequest, ApprovalState,
};
pub use call_id::{CallId, CallIdError, MAX_NESTING, StreamId};
pub use client_request::ClientRequest;
pub use descriptor::{Approval, MethodDescriptor, MethodKind, Mutation, ToolCategory, ToolMark};
pub use effect::{Category, DeliverAt, Effect, NOTICES, Notification, PluginEffect, Priority};
pub use error::{CallError, ErrorCode, ExitKind};
pub use event::{Event, Severity};
pub use hook::{HookKind, HookPoint};
pub use item::{DoneStatus, HubStreamItem, ItemBody, ItemKind};
pub use message::{Message, ToolCall};
pub use name::{MethodName, NameError, PluginName};
pub use path::{PathError, PluginPath};
pub use principal::{Principal, ProjectId, Scope, ScopeError, Scopes, Surface, UserId};
pub use project::Project;
pub use rule_context::{RULE_CONTEXT, RULE_TRIGGERS};
pub use snapshot::{ExchangeRange, HistorySnapshot, QuerySnapshot, TurnSnapshot};
pub use source::{Source, SourceKind};
pub use status::{CallSummary, PluginState, PluginStatus};
pub use usage::Usage;
