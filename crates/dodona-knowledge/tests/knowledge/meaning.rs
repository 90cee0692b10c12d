use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use dodona_llm::{Embedder, EmbedderConfig, Provider};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{Setup, TestProject};

/// Words that mean the same.
const MEANINGS: &[&[&str]] = &[
    &["car", "automobile", "vehicle"],
    &["bread", "loaf", "bakery"],
    &["rain", "drizzle", "weather"],
];

/// A server that speaks OpenAI's protocol and knows some synonyms.
#[derive(Default)]
struct Synonyms {
    texts: AtomicUsize,
    down: AtomicBool,
}

fn vector(text: &str) -> Vec<f32> {
    let text = text.to_lowercase();
    let has = |words: &&[&str]| words.iter().any(|word| text.contains(word));
    let mut vector: Vec<f32> = MEANINGS
        .iter()
        .map(|words| if has(words) { 1.0 } else { 0.0 })
        .collect();
    vector.push(0.1);
    vector
}

async fn embed(State(server): State<Arc<Synonyms>>, request: Bytes) -> Result<String, StatusCode> {
    if server.down.load(Ordering::SeqCst) {
        return Err(StatusCode::BAD_REQUEST);
    }
    let request: Value = serde_json::from_slice(&request).unwrap();
    let texts = request["input"].as_array().unwrap();
    server.texts.fetch_add(texts.len(), Ordering::SeqCst);
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "index": index, "embedding": vector(text.as_str().unwrap()) }))
        .collect();
    Ok(json!({ "data": data }).to_string())
}

async fn serve() -> (Arc<Synonyms>, Arc<Embedder>) {
    let server = Arc::new(Synonyms::default());
    let app = axum::Router::new()
        .route("/v1/embeddings", post(embed))
        .with_state(Arc::clone(&server));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let config = EmbedderConfig {
        provider: Provider::Ollama,
        model: "synonyms".to_owned(),
        base_url: Some(format!("http://{address}/v1")),
        key_env: None,
        key_file: None,
        allow_plain_http: false,
        dimensions: None,
    };
    let embedder = Embedder::from_config(&config, Arc::new(|_| None)).unwrap();
    (server, Arc::new(embedder))
}

const FILES: &[(&str, &str)] = &[
    ("a.md", "# Garage\n\nThe automobile is parked.\n"),
    ("b.md", "# Kitchen\n\nA loaf lies there.\n"),
    ("c.md", "# Garden\n\nNothing but drizzle.\n"),
];

#[tokio::test]
async fn what_is_near_in_meaning_is_found_without_a_word_in_common() {
    let (server, embedder) = serve().await;
    let project = TestProject::with_setup(
        FILES,
        Setup {
            embedder: Some(embedder),
            ..Setup::default()
        },
    )
    .await;
    assert_eq!(
        project.find("where is my car?").await.first().unwrap(),
        "a.md:1-3"
    );
    assert_eq!(project.find("bakery").await.first().unwrap(), "b.md:1-3");
    // A word that is there and a meaning that is near count both.
    assert_eq!(
        project.find("kitchen bread").await.first().unwrap(),
        "b.md:1-3"
    );
    // Only what changed is embedded again.
    let before = server.texts.load(Ordering::SeqCst);
    project.write("c.md", "# Garden\n\nA vehicle, forgotten.\n");
    project.index().await;
    assert_eq!(server.texts.load(Ordering::SeqCst) - before, 1);
    let found = project.find("car").await;
    assert!(found[..2].contains(&"c.md:1-3".to_owned()), "{found:?}");
    let project = project.restart().await;
    let before = server.texts.load(Ordering::SeqCst);
    assert!(!project.find("car").await.is_empty());
    assert_eq!(
        server.texts.load(Ordering::SeqCst) - before,
        1,
        "the question alone"
    );
}

#[tokio::test]
async fn without_an_answer_from_the_endpoint_words_decide() {
    let (server, embedder) = serve().await;
    server.down.store(true, Ordering::SeqCst);
    let project = TestProject::with_setup(
        FILES,
        Setup {
            embedder: Some(embedder),
            ..Setup::default()
        },
    )
    .await;
    assert_eq!(project.find("automobile").await, ["a.md:1-3"]);
    assert!(project.find("car").await.is_empty());
    server.down.store(false, Ordering::SeqCst);
    project.index().await;
    assert_eq!(project.find("car").await.first().unwrap(), "a.md:1-3");
}

#[tokio::test]
async fn kinds_and_paths_hold_for_what_is_near_as_well() {
    let (_, embedder) = serve().await;
    let files = [FILES, &[("src/car.rs", "fn vehicle() {}\n")]].concat();
    let project = TestProject::with_setup(
        &files,
        Setup {
            embedder: Some(embedder),
            ..Setup::default()
        },
    )
    .await;
    let found = project
        .call(
            "code.search",
            json!({ "query": "automobile", "path": "src" }),
        )
        .await
        .unwrap();
    let paths: Vec<&str> = found["passages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|passage| passage["source"]["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["src/car.rs"]);
}
