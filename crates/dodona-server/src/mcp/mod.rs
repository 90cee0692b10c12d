//! Dodona as an MCP server: methods as tools, notes as resources, and `ask`.
//!
//! What plugins have of resources and prompts, mounted servers above all, is passed on (`sources`).
//! A call can ask its client something on the way (`question`): a client with a session is sent a
//! request, another gets a result that says what is needed and comes back (`parked`).
//!
//! The protocol is rmcp's (2025-06-18, 2025-11-25 with sessions, 2026-07-28 without). What it is
//! used for is ours: an `endpoint` answers requests from a `desk`, which is the hub in this
//! process (`/mcp`, `http`) or one behind our own wire (`dodona mcp`, `stdio`). Either way a
//! call goes through the one dispatcher as that of an MCP client, gates and approvals included.

mod ask;
mod blocks;
mod call;
mod catalogue;
mod changes;
mod client;
mod desk;
mod endpoint;
mod errand;
mod groups;
mod http;
mod name;
mod notes;
mod page;
mod parked;
mod progress;
mod prompts;
mod question;
mod resources;
mod running;
mod schema;
mod sessions;
mod sources;
mod stdio;
mod subscriptions;

pub(crate) use http::{Mcp, answer};

pub use groups::{Groups, GroupsError};
pub use stdio::{Connect, StdioError, serve_pipes, serve_stdio};
