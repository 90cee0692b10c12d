//! Dodona as an MCP server: methods as tools, notes as resources, and `ask`.
//!
//! The protocol is rmcp's (2025-06-18, 2025-11-25 with sessions, 2026-07-28 without). What it is
//! used for is ours: an `endpoint` answers requests from a `desk`, which is the hub in this
//! process (`/mcp`, `http`) or one behind our own wire (`dodona mcp`, `stdio`). Either way a
//! call goes through the one dispatcher as that of an MCP client, gates and approvals included.

mod ask;
mod blocks;
mod call;
mod catalogue;
mod desk;
mod endpoint;
mod groups;
mod http;
mod name;
mod notes;
mod page;
mod progress;
mod schema;
mod sessions;
mod stdio;

pub(crate) use http::{Mcp, answer};

pub use groups::{Groups, GroupsError};
pub use stdio::{Connect, StdioError, serve_stdio};
