//! One model, as the configuration describes it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::key_source::{Environment, KeySource};
use super::link::LinkSettings;
use super::provider::{Dialect, Provider};
use super::time;
use crate::anthropic::Messages;
use crate::error::ModelError;
use crate::http::PlainHttp;
use crate::model::{Model, ModelOptions, ReasoningEffort};
use crate::openai::{CacheField, ChatCompletions, LimitField};
use crate::price::Price;
use crate::remote::{Patience, Remote, Way};
use crate::responses::Responses;
use crate::retry::Retry;
use crate::tokens::TokenCounter;
use crate::windows::known_window;
use crate::wire::Wire;

/// A model: the table `[models.NAME]` of the user's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Who answers.
    pub provider: Provider,
    /// The provider's name for the model, such as `claude-sonnet-4-5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where the provider is, if it is not where it usually is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The file that holds the key, readable by its owner only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Whether conversations may cross a network unencrypted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_plain_http: bool,
    /// The longest answer, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u32>,
    /// How much chance decides, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f32>,
    /// How long it thinks first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningEffort>,
    /// How many tokens it may think for; for Anthropic's models that take no `reasoning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024))]
    pub reasoning_budget: Option<u32>,
    /// How many tokens the model takes, request and answer together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context_window: Option<u32>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The model that is asked when this one is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// How long a connection may take.
    #[serde(default = "connect_timeout", with = "time")]
    #[schemars(with = "String")]
    pub connect_timeout: Duration,
    /// How long it may take from the request to the first word.
    #[serde(default = "first_token_timeout", with = "time")]
    #[schemars(with = "String")]
    pub first_token_timeout: Duration,
    /// How long an answer that has begun may stand still.
    #[serde(default = "idle_timeout", with = "time")]
    #[schemars(with = "String")]
    pub idle_timeout: Duration,
    /// How often a request that failed for a passing reason is sent again.
    #[serde(default = "retries")]
    #[schemars(range(max = 10))]
    pub retries: u32,
    /// The wait before the first of these; it doubles each time.
    #[serde(default = "retry_delay", with = "time")]
    #[schemars(with = "String")]
    pub retry_delay: Duration,
    /// The largest answer that is read, in bytes as they come over the wire.
    #[serde(default = "max_answer_bytes")]
    #[schemars(range(min = 1024))]
    pub max_answer_bytes: u64,
}

fn connect_timeout() -> Duration {
    Duration::from_secs(10)
}

/// Models that think say nothing for minutes.
fn first_token_timeout() -> Duration {
    Duration::from_secs(180)
}

fn idle_timeout() -> Duration {
    Duration::from_secs(90)
}

fn retries() -> u32 {
    Retry::default().retries
}

fn retry_delay() -> Duration {
    Retry::default().delay
}

fn max_answer_bytes() -> u64 {
    10 << 20
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !*value
}

fn wrong(reason: impl Into<String>, hint: &str) -> ModelError {
    ModelError::Settings {
        reason: reason.into(),
        hint: hint.to_owned(),
    }
}

impl ModelConfig {
    /// A model of a provider, with everything else as usual.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            provider,
            model: Some(model.into()),
            base_url: None,
            key_env: None,
            key_file: None,
            allow_plain_http: false,
            max_output_tokens: None,
            temperature: None,
            reasoning: None,
            reasoning_budget: None,
            context_window: None,
            price: None,
            fallback: None,
            connect_timeout: connect_timeout(),
            first_token_timeout: first_token_timeout(),
            idle_timeout: idle_timeout(),
            retries: retries(),
            retry_delay: retry_delay(),
            max_answer_bytes: max_answer_bytes(),
        }
    }

    /// The model, without its fallback. Nothing is sent, and no key is read: a key that is
    /// missing shows when the model is asked.
    pub(super) fn build(
        &self,
        name: &str,
        environment: Environment,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let Some(dialect) = self.provider.dialect() else {
            return Ok(Arc::new(crate::offline::Offline));
        };
        let Some(model) = self.model.as_deref().filter(|model| !model.is_empty()) else {
            return Err(wrong(
                "`model` is missing",
                "say which of the provider's models it is",
            ));
        };
        self.check(dialect)?;
        let link = self.link_settings().build(environment)?;
        let wire = self.wire(dialect, model, link.host());
        let way = Way {
            link,
            wire,
            retry: Retry {
                retries: self.retries,
                delay: self.retry_delay,
            },
            patience: Patience {
                first: self.first_token_timeout,
                idle: self.idle_timeout,
            },
            answer_bytes: self.max_answer_bytes,
        };
        Ok(Arc::new(Remote {
            name: name.to_owned(),
            way: Arc::new(way),
            context_window: self.context_window.or_else(|| known_window(model)),
            price: self.price,
            counter: TokenCounter::for_model(model),
        }))
    }

    /// What the types do not rule out.
    fn check(&self, dialect: Dialect) -> Result<(), ModelError> {
        let Some(budget) = self.reasoning_budget else {
            return Ok(());
        };
        if dialect != Dialect::Messages {
            return Err(wrong(
                "`reasoning_budget` is for `anthropic` only",
                "use `reasoning = \"low\"`, `\"medium\"` or `\"high\"`",
            ));
        }
        if self.reasoning.is_some() {
            return Err(wrong(
                "both `reasoning` and `reasoning_budget` are set",
                "keep the one that the model takes",
            ));
        }
        match self.max_output_tokens {
            Some(most) if most > budget => Ok(()),
            _ => Err(wrong(
                "`max_output_tokens` must be above `reasoning_budget`, which is part of it",
                "raise `max_output_tokens`",
            )),
        }
    }

    fn wire(&self, dialect: Dialect, model: &str, host: &str) -> Box<dyn Wire> {
        let (model, host) = (model.to_owned(), host.to_owned());
        let options = ModelOptions {
            max_output_tokens: self.max_output_tokens,
            temperature: self.temperature,
            reasoning: self.reasoning,
            without_tools: false,
        };
        match dialect {
            Dialect::Messages => Box::new(Messages {
                model,
                options,
                reasoning_budget: self.reasoning_budget,
                host,
            }),
            Dialect::Responses => Box::new(Responses {
                model,
                options,
                host,
            }),
            Dialect::ChatCompletions => Box::new(ChatCompletions {
                limit_field: match (self.provider, &self.base_url) {
                    (Provider::OpenAi, None) => LimitField::MaxCompletionTokens,
                    _ => LimitField::MaxTokens,
                },
                cache_field: match self.provider {
                    Provider::OpenRouter if model.starts_with("anthropic/") => {
                        CacheField::Ephemeral
                    }
                    _ => CacheField::Absent,
                },
                model,
                options,
                host,
            }),
        }
    }

    pub(super) fn link_settings(&self) -> LinkSettings<'_> {
        LinkSettings {
            provider: self.provider,
            base_url: self.base_url.as_deref(),
            key_env: self.key_env.as_deref(),
            key_file: self.key_file.as_deref(),
            plain_http: match self.allow_plain_http {
                true => PlainHttp::Anywhere,
                false => PlainHttp::Loopback,
            },
            connect_timeout: self.connect_timeout,
        }
    }

    /// Where the key comes from.
    pub fn key_source(&self) -> Result<KeySource, ModelError> {
        self.link_settings().key_source()
    }

    /// Where requests go; none for `offline`.
    pub fn address(&self) -> Option<&str> {
        let preset = self.provider.base_url()?;
        Some(self.base_url.as_deref().unwrap_or(preset))
    }
}
