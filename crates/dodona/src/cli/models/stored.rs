//! The settings of models, as a running server changes them: `agent.set_model` and `agent.local_models`.

use std::sync::Arc;
use std::time::Duration;

use dodona_agent::{LocalServer, ModelSettings, SetModelParams, SetModelResult};
use dodona_llm::{ApiKey, Environment, ModelConfig, Models, Provider, process_environment};
use dodona_proto::{CallError, ErrorCode};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serde::Deserialize;
use tokio::sync::Mutex;
use toml_edit::{Table, value};

use super::{key, set, test};
use crate::config::{self, ConfigFile};
use crate::failure::Failure;
use crate::home::Home;

/// How long a server on this machine may take to list its models.
const LOCAL_PATIENCE: Duration = Duration::from_secs(2);

/// The variable that holds a key while it is tested: it is not stored before the model has answered.
const KEY_VARIABLE: &str = "DODONA_KEY_UNDER_TEST";

/// Ollama's own variable for its address.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// The user's settings, and the models that the running agent uses.
pub(crate) struct StoredModels {
    home: Home,
    models: Models,
    /// Two changes at once would each write the file that they have read.
    changing: Mutex<()>,
}

impl StoredModels {
    pub(crate) fn new(home: Home, models: Models) -> Self {
        Self {
            home,
            models,
            changing: Mutex::new(()),
        }
    }

    async fn store(&self, p: SetModelParams) -> Result<SetModelResult, Failure> {
        let _changing = self.changing.lock().await;
        set::check_name(&p.name)?;
        let key = p.api_key.as_deref().map(str::trim);
        let key = key.filter(|key| !key.is_empty());
        if let Some(key) = key {
            ApiKey::new(key).map_err(|error| Failure::usage(format!("invalid key: {error}")))?;
        }
        let mut file = ConfigFile::read(&self.home.config_file())?;
        let table = file.model(&p.name)?;
        change(table, &p);
        let answer = self.test(&p.name, table, key).await?;
        if let Some(key) = key {
            let path = self.home.config.join("keys").join(&p.name);
            set::set_key_file(table, &path)?;
            key::store(&self.home, &p.name, key)?;
        }
        set::check(&p.name, &file)?;
        if p.default {
            file.set_default(&p.name)?;
        }
        file.write()?;
        self.reload()?;
        Ok(SetModelResult {
            name: p.name,
            answer: answer.text.trim().chars().take(200).collect(),
            first_token_ms: u64::try_from(answer.after.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Send one request with the settings as they would be stored.
    async fn test(
        &self,
        name: &str,
        table: &Table,
        key: Option<&str>,
    ) -> Result<test::Answer, Failure> {
        let mut candidate = table.clone();
        if key.is_some() {
            candidate.remove("key_file");
            candidate.insert("key_env", value(KEY_VARIABLE));
        }
        let invalid = |error: toml::de::Error| {
            Failure::usage(format!("`models.{name}`: {}", error.message()))
        };
        let text = candidate.to_string();
        let config: toml::Value = toml::from_str(&text).map_err(invalid)?;
        let config = ModelConfig::deserialize(config).map_err(invalid)?;
        let environment = with_key(key);
        match test::ask(name, &config, &environment).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(test::failed(name, &config, error, &environment).await),
        }
    }

    /// Use the models of the settings as they are now.
    fn reload(&self) -> Result<(), Failure> {
        let settings = config::load(&self.home.config_file())?;
        let asked = settings.agent.model.as_deref();
        let (models, _) = Models::from_config(&settings.models, asked, &process_environment());
        self.models.replace(&models);
        Ok(())
    }
}

impl ModelSettings for StoredModels {
    fn set(&self, model: SetModelParams) -> BoxFuture<'_, Result<SetModelResult, CallError>> {
        async move { self.store(model).await.map_err(call_error) }.boxed()
    }

    fn local(&self) -> BoxFuture<'_, Vec<LocalServer>> {
        async move {
            let found = candidates(&process_environment())
                .into_iter()
                .map(models_of);
            join_all(found).await.into_iter().flatten().collect()
        }
        .boxed()
    }
}

fn change(table: &mut Table, p: &SetModelParams) {
    table.insert("provider", value(p.provider.as_str()));
    table.insert("model", value(&p.model));
    match p.base_url.as_deref().filter(|url| !url.is_empty()) {
        Some(url) => table.insert("base_url", value(url)),
        // The address of a provider that the model had before.
        None => table.remove("base_url"),
    };
}

/// The environment of the process, and the key that is tested.
fn with_key(key: Option<&str>) -> Environment {
    let key = key.map(str::to_owned);
    let process = process_environment();
    Arc::new(move |name| match name {
        KEY_VARIABLE => key.clone(),
        other => process(other),
    })
}

/// Where model servers listen by default: title, provider, address.
fn candidates(environment: &Environment) -> Vec<(&'static str, Provider, String)> {
    let usual = |provider: Provider| provider.base_url().unwrap_or_default().to_owned();
    let ollama = environment(OLLAMA_HOST).and_then(|host| ollama_address(&host));
    let ollama = ollama.unwrap_or_else(|| usual(Provider::Ollama));
    vec![
        ("Ollama", Provider::Ollama, ollama),
        ("llama.cpp", Provider::LlamaCpp, usual(Provider::LlamaCpp)),
        ("vLLM", Provider::Vllm, usual(Provider::Vllm)),
        (
            "LM Studio",
            Provider::Vllm,
            "http://localhost:1234/v1".to_owned(),
        ),
    ]
}

/// The address of Ollama, as its variable gives it: a host, a host and a port, or a URL. `0.0.0.0`
/// is where a server listens, not where a client connects.
fn ollama_address(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches('/');
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let (host, port) = rest.rsplit_once(':').unwrap_or((rest, "11434"));
    let host = if host == "0.0.0.0" { "127.0.0.1" } else { host };
    let fits = !host.is_empty() && !host.contains(['/', '@']) && port.parse::<u16>().is_ok();
    fits.then(|| format!("{scheme}://{host}:{port}/v1"))
}

/// The models of a server; none if it does not answer or has no models.
async fn models_of(candidate: (&'static str, Provider, String)) -> Option<LocalServer> {
    let (title, provider, base_url) = candidate;
    let config = ModelConfig {
        base_url: Some(base_url.clone()),
        first_token_timeout: LOCAL_PATIENCE,
        connect_timeout: LOCAL_PATIENCE,
        ..ModelConfig::new(provider, "")
    };
    let models = config.known_models(&process_environment()).await.ok()?;
    (!models.is_empty()).then(|| LocalServer {
        title: title.to_owned(),
        provider,
        base_url,
        models,
    })
}

fn call_error(failure: Failure) -> CallError {
    match failure {
        Failure::Said { message, hint, .. } => {
            let error = CallError::new(ErrorCode::InvalidParams, message);
            match hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }
        Failure::Drawn { text, .. } => CallError::new(ErrorCode::InvalidParams, text),
        Failure::Told(_) | Failure::Unread => CallError::new(
            ErrorCode::Internal,
            "the settings of the model could not be changed",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_address_of_ollama_in_all_its_forms() {
        let address = |text| ollama_address(text);
        assert_eq!(
            address("10.0.0.2:80").as_deref(),
            Some("http://10.0.0.2:80/v1")
        );
        assert_eq!(
            address("0.0.0.0").as_deref(),
            Some("http://127.0.0.1:11434/v1")
        );
        assert_eq!(
            address("https://box:443/").as_deref(),
            Some("https://box:443/v1")
        );
        assert_eq!(address(""), None);
        assert_eq!(address("user@host:1"), None);
        assert_eq!(address("host:port"), None);
    }
}
