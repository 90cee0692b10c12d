//! Plugins that live outside the binary: directories with a Luau script, programs in any language that
//! speak JSON-RPC over their standard input and output, and MCP servers.
//!
//! `declare` reads what a script or a manifest declares; `services` is what both may use of the server:
//! state, database, HTTP, events; `child` starts processes.
//!
//! # What it does not do
//!
//! It decides nothing about who may call what: a plugin from outside builds the same contribution as
//! one from inside, and the hub treats both alike.

mod child;
mod database;
mod declare;
pub mod luau;
pub mod mcp;
mod migrations;
pub mod process;
mod services;
mod text;

pub use child::{GuardCommand, run_guard};
pub use declare::Declared;
