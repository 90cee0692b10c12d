//! Our wire: JSON-RPC over HTTP and WebSocket, SSE, the page, and the client that speaks it; and MCP.
//!
//! Start from [`serve`], a thin shell around a hub: it turns frames into requests, finds the
//! credential in them, and sends back what the hub answers. [`client::Client`] is the other end.
//!
//! ```
//! use std::sync::Arc;
//! use dodona_hub::{PluginHub, HubConfig, echo};
//! use dodona_server::{ServerOptions, client::Client, serve};
//! use serde_json::json;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! let hub = PluginHub::start(home.path(), HubConfig::default(), vec![Arc::new(echo::EchoPlugin::default())]).await?;
//! let token = hub.local_token(&home.path().join("token")).await?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let url = format!("http://{}", listener.local_addr()?);
//! let shutdown = CancellationToken::new();
//! let server = tokio::spawn(serve(listener, hub, ServerOptions::default(), shutdown.clone()));
//!
//! let client = Client::connect(&url, &token, None).await?;
//! assert_eq!(client.call("echo.say", json!({"text": "hello"})).await?, json!({"text": "hello"}));
//!
//! shutdown.cancel();
//! server.await??;
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//!
//! It decides nothing about a call: who may make it, how often, with what parameters and how it
//! ends is the hub's. No transport authenticates by itself.

mod app;
mod auth;
#[warn(missing_docs)]
pub mod client;
mod guard;
mod http;
mod io;
mod login;
pub mod mcp;
mod openrpc;
mod options;
mod page;
mod plugins;
mod refusals;
mod rpc;
mod serve;
mod sse;
mod telemetry;
mod ws;

pub use openrpc::document as openrpc_document;
pub use options::ServerOptions;
pub use serve::serve;
pub use telemetry::Metrics;
