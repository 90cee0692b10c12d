//! MCP servers as plugins.
//!
//! A server is a program that speaks over its standard input and output, or an address that speaks
//! streamable HTTP. Its tools become methods, its resources and prompts can be read. From the
//! outside in: [`McpLoader`] makes an [`McpPlugin`] of what the roster or a manifest says; a
//! `mount` keeps its server, which is a chain of `session`s, each over `frames` and a child process,
//! or over `http`; the `tap` looks at what passes; `tools` and `extras` say what it brings, `call`
//! runs it, `result` bounds what comes of it.
//!
//! What a server says of itself is data: it is bounded, cleaned, and never rendered or run.

mod address;
mod cache;
mod call;
mod config;
mod extras;
mod frames;
mod http;
mod loader;
mod mount;
mod result;
mod session;
mod tap;
mod tools;
mod unreadable;
mod words;

pub use loader::{McpLoader, McpPlugin, module_of};
