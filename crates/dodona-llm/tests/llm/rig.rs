//! A model at a scripted provider.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dodona_llm::{
    Environment, Model, ModelConfig, ModelError, ModelEvent, ModelRequest, Models, Provider,
    ToolOffer,
};
use dodona_proto::{Message, ToolCall};
use dodona_testkit::model_server::ModelServer;
use futures_util::StreamExt;
use serde_json::{Value, json};

/// One for each protocol.
pub(crate) const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

pub(crate) const KEY: &str = "sk-very-secret";

/// Long enough for any machine: what is waited for comes, or the test hangs and shows where.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) type Said = Vec<Result<ModelEvent, ModelError>>;

/// An environment that holds the key of the tests.
pub(crate) fn environment() -> Environment {
    Arc::new(|name| (name == "TEST_KEY").then(|| KEY.to_owned()))
}

/// A model at this server that waits long and tries three times without waiting.
pub(crate) fn config(server: &ModelServer, provider: Provider) -> ModelConfig {
    ModelConfig {
        base_url: Some(server.url()),
        key_env: Some("TEST_KEY".to_owned()),
        connect_timeout: LONG,
        first_token_timeout: LONG,
        idle_timeout: LONG,
        retries: 2,
        retry_delay: Duration::from_millis(1),
        ..ModelConfig::new(provider, "test-model")
    }
}

pub(crate) fn build(config: ModelConfig) -> Arc<dyn Model> {
    let configs = BTreeMap::from([("tested".to_owned(), config)]);
    let (models, problems) = Models::from_config(&configs, None, &environment());
    assert_eq!(problems, []);
    models.default_model()
}

pub(crate) fn model(server: &ModelServer, provider: Provider) -> Arc<dyn Model> {
    build(config(server, provider))
}

pub(crate) fn question(text: &str) -> ModelRequest {
    ModelRequest {
        messages: vec![user(text)],
        ..ModelRequest::default()
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::User {
        content: text.to_owned(),
    }
}

pub(crate) fn assistant(text: &str, tool_calls: Vec<ToolCall>) -> Message {
    Message::Assistant {
        content: text.to_owned(),
        tool_calls,
        opaque: None,
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

pub(crate) fn result(id: &str, content: &str) -> Message {
    Message::Tool {
        tool_call_id: id.to_owned(),
        content: content.to_owned(),
    }
}

pub(crate) fn tool(name: &str) -> ToolOffer {
    ToolOffer {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: json!({ "type": "object", "properties": { "z": { "type": "string" }, "a": { "type": "integer" } } }),
    }
}

/// Asks, and collects everything that is said.
pub(crate) async fn ask(model: &dyn Model, request: ModelRequest) -> Said {
    model.stream(request).collect().await
}

/// The whole text of an answer.
pub(crate) fn text(said: &Said) -> String {
    let pieces = said.iter().filter_map(|event| match event {
        Ok(ModelEvent::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    pieces.collect()
}

/// How an answer failed.
pub(crate) fn error(said: &Said) -> &ModelError {
    match said.last() {
        Some(Err(error)) => error,
        other => panic!("no error, but {other:?}"),
    }
}

/// The tries that were announced.
pub(crate) fn retries(said: &Said) -> Vec<(u32, Duration, String)> {
    let retries = said.iter().filter_map(|event| match event {
        Ok(ModelEvent::Retrying {
            attempt,
            after,
            reason,
            ..
        }) => Some((*attempt, *after, reason.clone())),
        _ => None,
    });
    retries.collect()
}
