//! Models as the configuration names them.

use std::collections::BTreeMap;
use std::time::Duration;

use dodona_llm::{KeySource, ModelConfig, ModelError, Models, Provider};
use dodona_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use crate::rig::{ask, config, environment, error, question};

fn parse(value: Value) -> Result<ModelConfig, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn models(configs: &[(&str, ModelConfig)], default: Option<&str>) -> (Models, Vec<String>) {
    let configs: BTreeMap<String, ModelConfig> = configs
        .iter()
        .map(|(name, config)| ((*name).to_owned(), config.clone()))
        .collect();
    let (models, problems) = Models::from_config(&configs, default, &environment());
    let told = problems.iter().map(|problem| {
        let hint = problem.error.hint().unwrap_or_default();
        format!("{}: {} ({hint})", problem.model, problem.error)
    });
    (models, told.collect())
}

#[test]
fn settings_are_read_strictly() {
    let full = parse(json!({
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "max_output_tokens": 16000,
        "reasoning_budget": 8000,
        "context_window": 200_000,
        "price": { "input": 3, "output": 15, "cached_input": 0.3 },
        "idle_timeout": "1m 30s",
        "retry_delay": "250ms",
    }))
    .unwrap();
    assert_eq!(full.idle_timeout, Duration::from_secs(90));
    assert_eq!(full.retry_delay, Duration::from_millis(250));
    let again = parse(serde_json::to_value(&full).unwrap()).unwrap();
    assert_eq!(again, full);

    let wrong = [
        json!({ "provider": "openai", "modle": "x" }),
        json!({ "provider": "opanai", "model": "x" }),
        json!({ "provider": "openai", "model": "x", "idle_timeout": "soon" }),
        json!({ "provider": "openai", "model": "x", "idle_timeout": "-5s" }),
        json!({ "provider": "openai", "model": "x", "idle_timeout": "0s" }),
        json!({ "provider": "openai", "model": "x", "price": { "inptu": 1 } }),
        json!({ "model": "x" }),
    ];
    for value in wrong {
        let said = parse(value.clone()).map(|_| ()).unwrap_err();
        assert!(!said.is_empty(), "{value}");
    }
}

#[test]
fn providers_need_no_address_and_have_their_own_key() {
    let key = |config: &ModelConfig| config.key_source().unwrap();
    for provider in Provider::ALL {
        let config = ModelConfig::new(provider, "x");
        let (_, problems) = models(&[("m", config.clone())], None);
        assert_eq!(problems, Vec::<String>::new());
        let expected = match provider.key_env() {
            Some(name) => KeySource::Env(name.to_owned()),
            None => KeySource::None,
        };
        assert_eq!(key(&config), expected);
    }
}

#[tokio::test]
async fn one_wrong_model_leaves_the_others_alone_and_says_what_is_wrong() {
    let base = ModelConfig::new(Provider::OpenAi, "x");
    let wrong = [
        (
            "no-model",
            ModelConfig {
                model: None,
                ..base.clone()
            },
            "`model` is missing",
        ),
        (
            "plain",
            ModelConfig {
                base_url: Some("http://model.lan/v1".into()),
                ..base.clone()
            },
            "unencrypted",
        ),
        (
            "two-keys",
            ModelConfig {
                key_env: Some("A".into()),
                key_file: Some("/b".into()),
                ..base.clone()
            },
            "both",
        ),
        (
            "relative",
            ModelConfig {
                key_file: Some("b".into()),
                ..base.clone()
            },
            "absolute",
        ),
        (
            "budget",
            ModelConfig {
                reasoning_budget: Some(2000),
                ..base.clone()
            },
            "`anthropic` only",
        ),
        ("offline", base.clone(), "stands for"),
    ];
    let mut configs: Vec<(&str, ModelConfig)> = wrong
        .iter()
        .map(|(name, config, _)| (*name, config.clone()))
        .collect();
    configs.push(("right", base));
    let (models, problems) = models(&configs, Some("right"));
    assert_eq!(models.default_model().name(), "right");
    assert_eq!(problems.len(), wrong.len());
    for (name, _, expected) in wrong {
        let said = ask(&*models.get(name).unwrap(), question("?")).await;
        let message = error(&said).to_string();
        assert!(message.contains(expected), "{message}");
        let told = problems
            .iter()
            .any(|told| told.starts_with(name) && told.contains(expected));
        assert!(told, "{problems:?}");
    }
}

#[test]
fn the_default_is_the_named_one_or_the_only_one_or_none_at_all() {
    let config = ModelConfig::new(Provider::Ollama, "x");
    let default = |configs: &[&str], default| {
        let configs: Vec<_> = configs.iter().map(|name| (*name, config.clone())).collect();
        let (models, problems) = models(&configs, default);
        (models.default_model().name().to_owned(), problems.len())
    };
    assert_eq!(default(&[], None), ("offline".into(), 0));
    assert_eq!(default(&["a"], None), ("a".into(), 0));
    assert_eq!(default(&["a", "b"], None), ("offline".into(), 0));
    assert_eq!(default(&["a", "b"], Some("b")), ("b".into(), 0));
    assert_eq!(default(&["a"], Some("c")), ("c".into(), 1));
}

#[tokio::test]
async fn a_provider_lists_its_models() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let server = ModelServer::start().await;
        server.models(&["zeta", "alpha"]);
        let config = config(&server, provider);
        let known = config.known_models(&environment()).await;
        assert_eq!(known, Ok(vec!["alpha".to_owned(), "zeta".to_owned()]));
        server.require_key("another");
        let refused = config.known_models(&environment()).await;
        assert!(matches!(refused, Err(ModelError::Key { .. })));
    }
}
