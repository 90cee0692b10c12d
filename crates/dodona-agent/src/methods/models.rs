//! `agent.models`.

use dodona_llm::Models;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelsResult {
    /// The models, by name.
    models: Vec<ModelInfo>,
}

#[derive(Serialize, JsonSchema)]
struct ModelInfo {
    /// What it is called in the configuration.
    name: String,
    /// Whether it is asked where no other is named.
    is_default: bool,
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
            context_window: model.context_window(),
            is_priced: model.price().is_some(),
        })
    };
    ModelsResult {
        models: models.names().filter_map(info).collect(),
    }
}
