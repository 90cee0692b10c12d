//! Texts as vectors, by an OpenAI-compatible endpoint.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Dialect, Environment, Link, LinkSettings, Provider};
use crate::error::ModelError;
use crate::http::{self, Failure, PlainHttp};
use crate::retry::Retry;

/// The most texts of one request.
const BATCH: usize = 64;

/// The most bytes of text of one request, unless a single text is larger.
const BATCH_BYTES: usize = 256 * 1024;

/// The largest answer to one request: 64 vectors of 4096 numbers, written generously.
const ANSWER_BYTES: u64 = 16 << 20;

/// How long one request may take.
const REQUEST_TIME: Duration = Duration::from_secs(60);

/// Which endpoint turns texts into vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbedderConfig {
    /// Who answers: any but `anthropic` and `offline`.
    pub provider: Provider,
    /// The provider's name for the model, such as `text-embedding-3-small`.
    pub model: String,
    /// Where the provider is, if it is not where it usually is.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The variable that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds the key, readable by its owner only.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Whether texts may cross a network unencrypted.
    #[serde(default)]
    pub allow_plain_http: bool,
    /// How long the vectors should be, where the model lets one choose.
    #[serde(default)]
    pub dimensions: Option<u32>,
}

/// Turns texts into vectors.
pub struct Embedder {
    link: Link,
    model: String,
    dimensions: Option<u32>,
    retry: Retry,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f32>,
}

impl Embedder {
    /// An embedder by its configuration.
    pub fn from_config(
        config: &EmbedderConfig,
        environment: Environment,
    ) -> Result<Self, ModelError> {
        if config.provider.dialect() != Some(Dialect::ChatCompletions) {
            return Err(ModelError::Settings {
                reason: format!("`{}` makes no embeddings", config.provider.as_str()),
                hint: "use `openai` with a `base_url`, or `ollama`".to_owned(),
            });
        }
        let settings = LinkSettings {
            provider: config.provider,
            base_url: config.base_url.as_deref(),
            key_env: config.key_env.as_deref(),
            key_file: config.key_file.as_deref(),
            plain_http: match config.allow_plain_http {
                true => PlainHttp::Anywhere,
                false => PlainHttp::Loopback,
            },
            connect_timeout: Duration::from_secs(10),
        };
        Ok(Self {
            link: settings.build(environment)?,
            model: config.model.clone(),
            dimensions: config.dimensions,
            retry: Retry::default(),
        })
    }

    /// The provider's name for the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// A vector for each text, in order. Many texts are sent in several requests, one after
    /// another.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(batch_of(rest));
            vectors.extend(self.embed_batch(batch).await?);
            rest = others;
        }
        Ok(vectors)
    }

    async fn embed_batch(&self, batch: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let body = Body {
            model: &self.model,
            input: batch,
            encoding_format: "float",
            dimensions: self.dimensions,
        };
        let body = Bytes::from(serde_json::to_vec(&body).expect("texts and numbers are JSON"));
        let mut tries = self.retry.tries();
        loop {
            let trying = tokio::time::timeout(REQUEST_TIME, self.request(body.clone()));
            let failure = match trying.await {
                Ok(Ok(answer)) => return self.vectors(answer, batch.len()),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::passing(format!("`{}` does not answer", self.link.host())),
            };
            match tries.after(&failure) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(failure.into_error()),
            }
        }
    }

    async fn request(&self, body: Bytes) -> Result<Vec<u8>, Failure> {
        let response = self.link.post("embeddings", body).await?;
        http::body(response, ANSWER_BYTES).await
    }

    fn vectors(&self, answer: Vec<u8>, expected: usize) -> Result<Vec<Vec<f32>>, ModelError> {
        let wrong = |reason: String| ModelError::Rejected {
            status: 200,
            reason: format!("`{}` sends no embeddings: {reason}", self.link.host()),
        };
        let mut answer: Answer =
            serde_json::from_slice(&answer).map_err(|error| wrong(error.to_string()))?;
        answer.data.sort_by_key(|embedding| embedding.index);
        let in_order = answer.data.iter().map(|embedding| embedding.index);
        if !in_order.eq(0..expected) {
            return Err(wrong(format!("{expected} vectors were expected")));
        }
        let length = answer.data.first().map_or(0, |first| first.embedding.len());
        let vectors: Vec<Vec<f32>> = answer.data.into_iter().map(|one| one.embedding).collect();
        let is_sound =
            |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|x| x.is_finite());
        match length > 0 && vectors.iter().all(is_sound) {
            true => Ok(vectors),
            false => Err(wrong(
                "the vectors are empty or differ in length".to_owned(),
            )),
        }
    }
}

/// How many of the texts fit into one request; at least one.
fn batch_of(texts: &[String]) -> usize {
    let mut bytes = 0;
    let fits = |text: &&String| {
        bytes += text.len();
        bytes <= BATCH_BYTES
    };
    let fitting = texts.iter().take(BATCH).take_while(fits).count();
    fitting.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_bounded_in_number_and_size() {
        let short = vec!["a".to_owned(); 200];
        assert_eq!(batch_of(&short), BATCH);
        let long = vec!["a".repeat(BATCH_BYTES / 2); 3];
        assert_eq!(batch_of(&long), 2);
        let huge = vec!["a".repeat(BATCH_BYTES + 1); 2];
        assert_eq!(batch_of(&huge), 1);
    }
}
