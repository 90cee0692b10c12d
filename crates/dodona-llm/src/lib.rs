//! Models behind one trait, streaming.
//!
//! Start from [`Model`]. [`Offline`] needs no key, no network and no weights: it asks for
//! searches through the tools it is offered, and answers with what they found.
//!
//! ```
//! use dodona_llm::{Model, ModelEvent, ModelRequest, Offline, ToolOffer};
//! use dodona_proto::Message;
//! use futures_util::StreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let request = ModelRequest {
//!     messages: vec![Message::User { content: "How does login work?".into() }],
//!     tools: vec![ToolOffer { name: "code_search".into(), description: String::new(), parameters: serde_json::json!({}) }],
//!     ..ModelRequest::default()
//! };
//! let events: Vec<_> = Offline.stream(request).collect().await;
//! assert!(matches!(&events[0], Ok(ModelEvent::ToolCall(call)) if call.name == "code_search"));
//! # }
//! ```
//!
//! # What it does not do
//!
//! It runs no tool and keeps no conversation; it does not know that plugins exist.

mod anthropic;
mod arguments;
mod config;
mod embed;
mod error;
mod fallback;
mod http;
mod model;
mod offline;
mod openai;
mod price;
mod recorded;
mod remote;
mod retry;
mod scripted;
mod sse;
mod tokens;
mod wire;

pub use crate::http::{ApiKey, ApiKeyError};
pub use config::{
    Environment, KeySource, ModelConfig, ModelProblem, Models, Provider, process_environment,
};
pub use embed::{Embedder, EmbedderConfig};
pub use error::ModelError;
pub use model::{
    Finish, Model, ModelEvent, ModelOptions, ModelRequest, ReasoningEffort, ToolOffer,
};
pub use offline::Offline;
pub use price::Price;
pub use recorded::{Exchange, Recorded, Recorder, Recording, request_hash};
pub use scripted::{Script, Scripted};
pub use tokens::{Exactness, TokenCounter};
