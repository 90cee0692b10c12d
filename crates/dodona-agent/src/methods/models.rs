//! `agent.models`, `agent.set_model` and `agent.local_models`.

use dodona_llm::{Models, Provider};
use dodona_plugin::{CallError, ErrorCode};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Agent;

/// The settings of models. The agent does not know where they are stored.
pub trait ModelSettings: Send + Sync {
    /// Check that the model answers, then store it and use it from now on. Nothing is stored where
    /// it does not answer.
    fn set(&self, model: SetModelParams) -> BoxFuture<'_, Result<SetModelResult, CallError>>;

    /// Look for model servers on this machine.
    fn local(&self) -> BoxFuture<'_, Vec<LocalServer>>;
}

/// A model to be stored.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SetModelParams {
    /// Its name in the configuration: letters, digits, `-` and `_`.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Who answers.
    pub provider: Provider,
    /// The provider's name for the model, such as `claude-sonnet-4-5`.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// The address of the provider, where it is not the usual one.
    #[schemars(length(max = 2048))]
    pub base_url: Option<String>,
    // The journal redacts fields of this name.
    /// The provider's key. Stored in a file that only its owner can read, and never returned.
    #[schemars(length(max = 4096))]
    pub api_key: Option<String>,
    /// Whether it becomes the default model.
    #[serde(default = "yes")]
    pub default: bool,
}

fn yes() -> bool {
    true
}

/// A model that answered and was stored.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetModelResult {
    /// Its name in the configuration.
    pub name: String,
    /// Its answer to the test.
    pub answer: String,
    /// Milliseconds until the first word of the answer.
    pub first_token_ms: u64,
}

/// A model server on this machine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LocalServer {
    /// Its name, such as `Ollama`.
    pub title: String,
    /// The provider to set it with.
    pub provider: Provider,
    /// Its address.
    pub base_url: String,
    /// The models it has, sorted.
    pub models: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct LocalModelsResult {
    /// The servers that answered.
    servers: Vec<LocalServer>,
}

pub(crate) async fn set(agent: &Agent, p: SetModelParams) -> Result<SetModelResult, CallError> {
    settings(agent)?.set(p).await
}

pub(crate) async fn local(agent: &Agent) -> Result<LocalModelsResult, CallError> {
    let servers = settings(agent)?.local().await;
    Ok(LocalModelsResult { servers })
}

fn settings(agent: &Agent) -> Result<&dyn ModelSettings, CallError> {
    agent.options.model_settings.as_deref().ok_or_else(|| {
        let message = "this program has no settings for models";
        CallError::new(ErrorCode::InvalidRequest, message)
    })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelsResult {
    /// The models, by name.
    models: Vec<ModelInfo>,
}

#[derive(Serialize, JsonSchema)]
struct ModelInfo {
    /// Its name in the configuration.
    name: String,
    /// Whether it is the default model.
    is_default: bool,
    /// Whether it is `offline`, which quotes passages and calls no model.
    is_offline: bool,
    /// How many tokens it takes, request and answer together, where that is known.
    context_window: Option<u32>,
    /// Whether it is known what it costs.
    is_priced: bool,
}

pub(crate) fn list(models: &Models) -> ModelsResult {
    let default = models.default_model().name().to_owned();
    let info = |name: &str| {
        let model = models.get(name)?;
        Some(ModelInfo {
            name: name.to_owned(),
            is_default: name == default,
            is_offline: name == "offline",
            context_window: model.context_window(),
            is_priced: model.price().is_some(),
        })
    };
    ModelsResult {
        models: models
            .names()
            .iter()
            .filter_map(|name| info(name))
            .collect(),
    }
}
