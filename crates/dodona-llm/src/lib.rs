//! Models behind one trait, streaming.
//!
//! Start from [`Model`]: a [`ModelRequest`] in, [`ModelEvent`]s out as they come. [`Models`] makes
//! them from a configuration ([`ModelConfig`], one for each `[models.NAME]`):
//!
//! - models of providers, in OpenAI's protocol and in Anthropic's, with tries, timeouts, bounds
//!   and a fallback;
//! - [`Offline`], which needs no key, no network and no weights: it asks for searches through the
//!   tools it is offered, and answers with what they found;
//! - [`Scripted`] and [`Recorded`], which say the same every time.
//!
//! Beside them, [`TokenCounter`] counts what a request takes before it is sent, and [`Embedder`]
//! turns texts into vectors.
//!
//! ```
//! use dodona_llm::{Finish, Model, ModelEvent, ModelRequest, Script, Scripted};
//! use dodona_proto::Message;
//! use futures_util::StreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let model = Scripted::new("demo", [Script::text(&["Hel", "lo"])]);
//! let request = ModelRequest {
//!     system: "Be brief.".into(),
//!     messages: vec![Message::User { content: "Greet me.".into() }],
//!     ..ModelRequest::default()
//! };
//! let said: Vec<_> = model.stream(request.clone()).collect().await;
//! assert_eq!(said[0], Ok(ModelEvent::Text("Hel".into())));
//! assert_eq!(said[2], Ok(ModelEvent::Finished(Finish::Stop)));
//! assert_eq!(model.requests(), [request]);
//! # }
//! ```
//!
//! Inside, a protocol is what `wire` asks for (`openai`, `anthropic`); `remote` sends, waits and
//! tries again, the same for each; `http` decides where anything may go and with which key.
//!
//! # What it does not do
//!
//! It runs no tool, keeps no conversation and compacts none; it does not know that plugins exist.
//! It reads no configuration file: that is the binary's, and only the user's own may name models.

mod anthropic;
mod arguments;
mod config;
mod count;
mod digest;
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
mod responses;
mod retry;
mod scripted;
mod sse;
mod surrogates;
mod tokens;
mod windows;
mod wire;

pub use crate::http::{ApiKey, ApiKeyError};
pub use config::{
    Environment, KeySource, ModelConfig, ModelProblem, Models, Provider, process_environment,
};
pub use digest::{BasisDigest, Difference, RequestDigest};
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

/// The example of the how-to, which must compile and run as written.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/add-a-model-provider.md")]
struct HowTos;
