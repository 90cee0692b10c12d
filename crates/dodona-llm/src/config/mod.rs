//! Models as the configuration names them.

mod key_source;
mod link;
mod model_config;
mod models;
mod provider;
mod time;

pub use key_source::{Environment, KeySource, process_environment};
pub use model_config::ModelConfig;
pub use models::{ModelProblem, Models};
pub use provider::Provider;

pub(crate) use link::{Link, LinkSettings};
pub(crate) use provider::Dialect;

#[cfg(test)]
mod tests;
