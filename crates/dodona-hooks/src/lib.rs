//! Hook points: moments at which plugins may look, change or refuse.
//!
//! A plugin contributes [`Hook`]s: a callback for one [`Point`], with a priority. The hub puts
//! them into a [`HookRegistry`] and freezes that into [`Hooks`], an immutable, ordered set that
//! is read without a lock. Whoever comes to a point fires it with [`Hooks::fire`] and goes on
//! with what the callbacks made of the payload.
//!
//! A callback is shown the payload and returns a [`Reply`]: an edit of the point's own type, and
//! effects. Edits are applied after the callback returned well, so one that fails, panics or is
//! late has changed nothing.
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
//! It carries out no effect and waits for no person: a gate that wants somebody's word answers
//! [`Verdict::Ask`](dodona_proto::hook::Verdict), and the hub does the waiting.

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
