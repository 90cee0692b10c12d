//! The way to a provider, from what the configuration says of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use reqwest::Response;

use super::key_source::{Environment, KeySource};
use super::provider::{Dialect, Provider};
use crate::error::ModelError;
use crate::http::{Address, ApiKey, Endpoint, Failure, KeyHeader, PlainHttp, Sending};

/// The version of Anthropic's protocol that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A provider that can be asked.
pub(crate) struct Link {
    endpoint: Endpoint,
    key: KeySource,
    key_header: KeyHeader,
    environment: Environment,
}

/// The settings of a link, which models and embedders share.
pub(crate) struct LinkSettings<'a> {
    pub(crate) provider: Provider,
    pub(crate) base_url: Option<&'a str>,
    pub(crate) key_env: Option<&'a str>,
    pub(crate) key_file: Option<&'a Path>,
    pub(crate) plain_http: PlainHttp,
    pub(crate) connect_timeout: Duration,
}

impl LinkSettings<'_> {
    /// Where the key comes from. The key that a provider has by custom goes to that provider
    /// only: for another address it must be named.
    pub(crate) fn key_source(&self) -> Result<KeySource, ModelError> {
        match (self.key_env, self.key_file) {
            (Some(_), Some(_)) => Err(ModelError::Settings {
                reason: "both `key_env` and `key_file` are set".to_owned(),
                hint: "keep one of them".to_owned(),
            }),
            (Some(name), None) => Ok(KeySource::Env(name.to_owned())),
            (None, Some(path)) if path.is_relative() => Err(ModelError::Settings {
                reason: "`key_file` is not an absolute path".to_owned(),
                hint: "begin it with `/`".to_owned(),
            }),
            (None, Some(path)) => Ok(KeySource::File(PathBuf::from(path))),
            (None, None) if self.base_url.is_some() => Ok(KeySource::None),
            (None, None) => Ok(self
                .provider
                .key_env()
                .map_or(KeySource::None, |name| KeySource::Env(name.to_owned()))),
        }
    }

    pub(crate) fn address(&self) -> Result<Address, ModelError> {
        let base_url = self.base_url.or(self.provider.base_url());
        Address::new(base_url.unwrap_or_default(), self.plain_http)
    }

    pub(crate) fn build(&self, environment: Environment) -> Result<Link, ModelError> {
        let mut headers = HeaderMap::new();
        let key_header = match self.provider.dialect() {
            Some(Dialect::Messages) => {
                let version = HeaderValue::from_static(ANTHROPIC_VERSION);
                headers.insert("anthropic-version", version);
                KeyHeader::XApiKey
            }
            Some(Dialect::ChatCompletions | Dialect::Responses) | None => KeyHeader::Bearer,
        };
        Ok(Link {
            endpoint: Endpoint::new(self.address()?, headers, self.connect_timeout),
            key: self.key_source()?,
            key_header,
            environment,
        })
    }
}

impl Link {
    /// Sends a body, and gives back an answer that has begun.
    pub(crate) async fn post(&self, path: &str, body: Bytes) -> Result<Response, Failure> {
        self.send(Method::POST, path, Some(body)).await
    }

    /// Asks for what is at a path.
    pub(crate) async fn get(&self, path: &str) -> Result<Response, Failure> {
        self.send(Method::GET, path, None).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<Response, Failure> {
        let key = self.load_key().map_err(Failure::Final)?;
        let sending = Sending {
            method,
            path,
            body,
            key: key.as_ref(),
            key_header: self.key_header,
        };
        let sent = self.endpoint.send(sending).await;
        sent.map_err(|failure| self.with_hint(failure))
    }

    /// The key, for what may have to be hidden.
    pub(crate) fn load_key(&self) -> Result<Option<ApiKey>, ModelError> {
        self.key.load(&self.environment)
    }

    /// Only here it is known which key was sent. A key that could not even be read has its hint.
    pub(crate) fn with_hint(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Final(ModelError::Key { reason, hint }) if hint.is_empty() => {
                Failure::Final(ModelError::Key {
                    reason,
                    hint: self.key.hint(),
                })
            }
            other => other,
        }
    }

    pub(crate) fn host(&self) -> &str {
        self.endpoint.address.host()
    }
}
