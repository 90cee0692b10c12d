//! All models of a configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::stream::{self, BoxStream, StreamExt};
use serde::Deserialize;

use super::key_source::Environment;
use super::model_config::ModelConfig;
use super::provider::Provider;
use crate::error::ModelError;
use crate::fallback::WithFallback;
use crate::http;
use crate::model::{Model, ModelEvent, ModelRequest};
use crate::offline::Offline;

/// The name of the model that is always there.
const OFFLINE: &str = "offline";

/// The largest list of models that is read.
const LIST_BYTES: u64 = 8 << 20;

/// The models by name.
///
/// Every configured model is among them; one whose settings are wrong answers with what is wrong.
/// Clones share one set: [`Models::replace`] on one of them changes all, so that new settings need
/// no restart. A query keeps the model it started with.
#[derive(Clone)]
pub struct Models {
    current: Arc<RwLock<Arc<ModelSet>>>,
}

/// The models of one reading of the configuration.
#[derive(Clone)]
struct ModelSet {
    by_name: BTreeMap<String, Arc<dyn Model>>,
    default: String,
}

/// What is wrong with a model's settings. The others are not affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProblem {
    /// Which model.
    pub model: String,
    /// What is wrong.
    pub error: ModelError,
}

/// A model whose settings are wrong.
struct Broken {
    name: String,
    error: ModelError,
}

impl Model for Broken {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        stream::iter([Err(self.error.clone())]).boxed()
    }
}

impl Default for Models {
    /// Only `offline`, which needs nothing.
    fn default() -> Self {
        ModelSet::default().into()
    }
}

impl From<ModelSet> for Models {
    fn from(set: ModelSet) -> Self {
        Self {
            current: Arc::new(RwLock::new(Arc::new(set))),
        }
    }
}

impl Default for ModelSet {
    fn default() -> Self {
        let offline: Arc<dyn Model> = Arc::new(Offline);
        Self {
            by_name: BTreeMap::from([(OFFLINE.to_owned(), offline)]),
            default: OFFLINE.to_owned(),
        }
    }
}

impl Models {
    /// The models of a configuration, and what is wrong with them.
    ///
    /// Without `default` the only configured model is it; with none or several of them, `offline`
    /// is. Nothing is sent, and no key is read.
    pub fn from_config(
        configs: &BTreeMap<String, ModelConfig>,
        default: Option<&str>,
        environment: &Environment,
    ) -> (Self, Vec<ModelProblem>) {
        let mut models = ModelSet::default();
        let mut problems = Vec::new();
        for (name, config) in configs {
            let built = build(name, config, environment);
            let model = built.unwrap_or_else(|error| broken(name, error, &mut problems));
            models.by_name.insert(name.clone(), model);
        }
        models.add_fallbacks(configs, &mut problems);
        models.choose_default(configs, default, &mut problems);
        (models.into(), problems)
    }

    /// A model in place of all: for tests, replays and demonstrations.
    pub fn only(model: Arc<dyn Model>) -> Self {
        let name = model.name().to_owned();
        let mut models = ModelSet::default();
        models.by_name.insert(name.clone(), model);
        models.default = name;
        models.into()
    }

    /// Replace the models of this value and of all its clones by those of another one.
    pub fn replace(&self, with: &Self) {
        let new = with.set();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// A model by its name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Model>> {
        self.set().by_name.get(name).cloned()
    }

    /// The default model.
    pub fn default_model(&self) -> Arc<dyn Model> {
        let set = self.set();
        let model = set.by_name.get(&set.default);
        Arc::clone(model.expect("the default is chosen among the models"))
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.set().by_name.keys().cloned().collect()
    }

    fn set(&self) -> Arc<ModelSet> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }
}

impl ModelSet {
    /// Fallbacks go one step: the model that takes over has no one behind it, so that no request
    /// wanders in a circle.
    fn add_fallbacks(
        &mut self,
        configs: &BTreeMap<String, ModelConfig>,
        problems: &mut Vec<ModelProblem>,
    ) {
        let alone = self.by_name.clone();
        for (name, config) in configs {
            let Some(fallback) = config.fallback.as_deref() else {
                continue;
            };
            let model = match alone.get(fallback) {
                Some(second) if fallback != name => Arc::new(WithFallback {
                    first: Arc::clone(&alone[name]),
                    second: Arc::clone(second),
                }),
                found => {
                    let reason = match found {
                        Some(_) => "the model is its own `fallback`".to_owned(),
                        None => format!("there is no model `{fallback}` to fall back to"),
                    };
                    broken(name, unknown(reason, alone.keys()), problems)
                }
            };
            self.by_name.insert(name.clone(), model);
        }
    }

    fn choose_default(
        &mut self,
        configs: &BTreeMap<String, ModelConfig>,
        default: Option<&str>,
        problems: &mut Vec<ModelProblem>,
    ) {
        let mut configured = configs.keys().filter(|name| *name != OFFLINE);
        let only = match (configured.next(), configured.next()) {
            (Some(only), None) => only,
            _ => OFFLINE,
        };
        let default = default.unwrap_or(only);
        if !self.by_name.contains_key(default) {
            let reason = format!("there is no model `{default}`");
            let model = broken(default, unknown(reason, self.by_name.keys()), problems);
            self.by_name.insert(default.to_owned(), model);
        }
        default.clone_into(&mut self.default);
    }
}

fn build(
    name: &str,
    config: &ModelConfig,
    environment: &Environment,
) -> Result<Arc<dyn Model>, ModelError> {
    if name == OFFLINE && config.provider != Provider::Offline {
        return Err(ModelError::Settings {
            reason: "the name `offline` stands for the model that needs nothing".to_owned(),
            hint: "choose another name".to_owned(),
        });
    }
    config.build(name, Arc::clone(environment))
}

fn broken(name: &str, error: ModelError, problems: &mut Vec<ModelProblem>) -> Arc<dyn Model> {
    problems.push(ModelProblem {
        model: name.to_owned(),
        error: error.clone(),
    });
    Arc::new(Broken {
        name: name.to_owned(),
        error,
    })
}

fn unknown<'a>(reason: String, names: impl Iterator<Item = &'a String>) -> ModelError {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    ModelError::Settings {
        reason,
        hint: format!("there is {}", names.join(", ")),
    }
}

impl ModelConfig {
    /// The models that the provider says it has, sorted.
    pub async fn known_models(&self, environment: &Environment) -> Result<Vec<String>, ModelError> {
        #[derive(Deserialize)]
        struct List {
            data: Vec<Listed>,
        }
        #[derive(Deserialize)]
        struct Listed {
            id: String,
        }
        if self.provider == Provider::Offline {
            return Ok(Vec::new());
        }
        let link = self.link_settings().build(Arc::clone(environment))?;
        let fetching = async {
            let response = link.get("models").await?;
            http::body(response, LIST_BYTES).await
        };
        let body = tokio::time::timeout(self.first_token_timeout, fetching)
            .await
            .map_err(|_| ModelError::Unavailable {
                reason: format!("`{}` does not answer", link.host()),
                retry_after: None,
            })?
            .map_err(http::Failure::into_error)?;
        let list: List = serde_json::from_slice(&body).map_err(|error| ModelError::Rejected {
            status: 200,
            reason: format!("`{}` sends no list of models: {error}", link.host()),
        })?;
        let mut names: Vec<String> = list.data.into_iter().map(|listed| listed.id).collect();
        names.sort();
        Ok(names)
    }
}
