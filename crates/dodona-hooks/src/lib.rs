//! Hook points: moments at which plugins may look, change or refuse.
//!
//! So far there is the one the dispatcher needs: the *gate* before a tool-marked method runs
//! (`PRE_TOOL_EXECUTE`). Start from [`Gate`], which a plugin contributes, and [`Gates`], the
//! frozen, ordered set the hub asks.
//!
//! ```
//! use dodona_hooks::{Decision, Gate, Gates, OnFailure, PendingCall, Verdict};
//! use dodona_proto::{MethodName, PluginName};
//! use serde_json::json;
//!
//! let no_secrets = Gate::new(PluginName::new("guard")?, OnFailure::Closed, |call: &PendingCall<'_>| {
//!     match call.params["path"].as_str() {
//!         Some(path) if path.starts_with("secret/") => Verdict::Deny("not there".into()),
//!         _ => Verdict::Allow,
//!     }
//! });
//! let gates = Gates::freeze(vec![no_secrets]);
//! let method = MethodName::new("vault.read")?;
//! let decision = gates.decide(PendingCall::new(&method, json!({"path": "secret/key"})));
//! assert!(matches!(decision, Decision::Deny { .. }));
//! # Ok::<(), dodona_proto::NameError>(())
//! ```
//!
//! # What it does not do
//!
//! It calls nobody and waits for nothing: a gate that wants a person's word answers
//! [`Verdict::Ask`], and the hub does the waiting.

mod gate;

pub use gate::{Decision, Gate, Gates, OnFailure, PendingCall, Verdict};
