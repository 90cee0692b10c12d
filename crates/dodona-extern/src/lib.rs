//! Plugins that live outside the binary: directories with a Luau script, and MCP servers.
//!
//! # What it does not do
//!
//! It decides nothing about who may call what: a plugin from outside builds the same contribution as
//! one from inside, and the hub treats both alike.

pub mod luau;
pub mod mcp;
