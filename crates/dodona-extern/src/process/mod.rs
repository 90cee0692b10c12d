//! Plugins that are processes, in any language: JSON-RPC 2.0 over standard input and output, one message
//! in each line.
//!
//! The manifest declares methods, hooks and events, so nothing has to run to know what a plugin brings.
//! From the outside in: [`ProcessLoader`] makes a plugin of a manifest whose `[process]` has
//! `protocol = "dodona"`; a `runner` keeps its process, which is a chain of `peer`s, one for each start;
//! `method`, `hook` and `event` send requests to the process, `host` answers those that come from it.
//! The protocol is described in `docs/reference/process-plugins.md`.

mod config;
mod declared;
mod event;
mod hook;
mod host;
mod loader;
mod method;
mod peer;
mod plugin;
mod runner;
mod scope;

pub use declared::inspect;
pub use loader::ProcessLoader;
