//! Hook points at which plugins observe, change or deny what happens.
//!
//! A plugin contributes [`Hook`]s: a callback for one [`Point`], with a priority. The hub collects them in a
//! [`HookRegistry`] and freezes that into [`Hooks`], an immutable, ordered set that is read without a lock.
//! The code at a hook point calls [`Hooks::fire`] and continues with the changed payload.
//!
//! A callback gets the payload and returns a [`Reply`]: an edit of the hook point's type, and effects. Edits are
//! applied after the callback has succeeded, so a callback that fails, panics or times out changes nothing.
//!
//! ```
//! use dodona_hooks::point::PreToolExecute;
//! use dodona_hooks::{Hook, HookRegistry, Reply};
//! use dodona_proto::PluginName;
//! use dodona_proto::hook::Verdict;
//!
//! let no_secrets = Hook::inline::<PreToolExecute>(|call| {
//!     Ok(match call.arguments["path"].as_str() {
//!         Some(path) if path.starts_with("secret/") => Reply::edit(Verdict::Deny("not there".into())),
//!         _ => Reply::none(),
//!     })
//! })
//! .fail_closed();
//!
//! let mut registry = HookRegistry::default();
//! registry.register(&PluginName::new("guard")?, no_secrets);
//! let hooks = registry.freeze();
//! assert!(hooks.has_subscribers::<PreToolExecute>());
//! # Ok::<(), dodona_proto::NameError>(())
//! ```
//!
//! # What it does not do
//!
//! It applies no effects and does not wait for approvals: a gate that requires one returns
//! [`Verdict::Ask`](dodona_proto::hook::Verdict), and the hub waits.

mod about;
mod breaker;
mod firing;
mod hook;
mod list;
mod order;
pub mod point;
mod registry;
mod reply;
mod trace;

pub use about::AboutQuery;
pub use firing::{Fired, Firing};
pub use hook::{Hook, OnFailure};
pub use point::Point;
pub use registry::{HookId, HookRegistry, HookSubscription, Hooks};
pub use reply::{HookFailure, Reply};
pub use trace::{RunRecord, Trace};
