//! Texts as vectors.

use dodona_llm::{Embedder, EmbedderConfig, ModelError, Provider};
use dodona_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::rig::{KEY, environment};

fn embedder(server: &ModelServer) -> Embedder {
    let config: EmbedderConfig = serde_json::from_value(json!({
        "provider": "openai",
        "model": "small",
        "base_url": server.url(),
        "key_env": "TEST_KEY",
        "dimensions": 8,
    }))
    .unwrap();
    Embedder::from_config(&config, environment()).unwrap()
}

#[tokio::test]
async fn every_text_gets_its_vector_whatever_their_number() {
    let server = ModelServer::start().await;
    let texts: Vec<String> = (0..150).map(|number| "a".repeat(number)).collect();
    let vectors = embedder(&server).embed(&texts).await.unwrap();
    let sums: Vec<usize> = vectors
        .iter()
        .map(|vector| {
            assert_eq!(vector.len(), 8);
            vector.iter().map(|count| *count as usize).sum()
        })
        .collect();
    assert_eq!(sums, (0..150).collect::<Vec<_>>());
    let requests = server.requests();
    let sizes = requests
        .iter()
        .map(|seen| seen.body["input"].as_array().unwrap().len());
    assert_eq!(sizes.collect::<Vec<_>>(), [64, 64, 22]);
    assert_eq!(requests[0].path, "/v1/embeddings");
    assert_eq!(requests[0].body["model"], "small");
    assert_eq!(requests[0].body["dimensions"], 8);
    assert_eq!(requests[0].header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(embedder(&server).embed(&[]).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_busy_provider_is_asked_again_and_a_wrong_key_is_told() {
    let server = ModelServer::start().await;
    server.reply(Reply::status(503).header("retry-after", "0"));
    let vectors = embedder(&server).embed(&["a".to_owned()]).await.unwrap();
    assert_eq!(vectors.len(), 1);
    server.require_key("another");
    let refused = embedder(&server).embed(&["a".to_owned()]).await;
    assert!(matches!(refused, Err(ModelError::Key { .. })));
}

#[tokio::test]
async fn vectors_that_do_not_fit_the_texts_are_refused() {
    let vector = |index: usize, embedding: Value| json!({ "index": index, "embedding": embedding });
    let wrong = [
        json!({ "data": [vector(0, json!([1.0]))] }),
        json!({ "data": [vector(0, json!([1.0])), vector(0, json!([1.0]))] }),
        json!({ "data": [vector(0, json!([1.0])), vector(1, json!([1.0, 2.0]))] }),
        json!({ "data": [vector(0, json!([])), vector(1, json!([]))] }),
        json!({ "vectors": [] }),
    ];
    for body in wrong {
        let server = ModelServer::start().await;
        server.reply(Reply::status(200).json(&body));
        let texts = ["a".to_owned(), "b".to_owned()];
        let refused = embedder(&server).embed(&texts).await;
        assert!(
            matches!(refused, Err(ModelError::Rejected { .. })),
            "{body}: {refused:?}"
        );
    }
}

#[test]
fn a_provider_without_embeddings_is_refused() {
    for provider in [Provider::Anthropic, Provider::Offline] {
        let config = EmbedderConfig {
            provider,
            model: "x".to_owned(),
            base_url: None,
            key_env: None,
            key_file: None,
            allow_plain_http: false,
            dimensions: None,
        };
        let refused = Embedder::from_config(&config, environment());
        assert!(matches!(refused, Err(ModelError::Settings { .. })));
    }
}
