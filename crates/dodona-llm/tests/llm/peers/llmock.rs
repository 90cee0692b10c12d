//! PyPI's `llmock` breaks its answers on demand, watches what the client does, and judges it.

use std::sync::Arc;
use std::time::Duration;

use dodona_llm::{Model, ModelConfig, ModelError, ModelEvent, ModelRequest, Provider};
use dodona_testkit::{Peer, Python};
use serde_json::{Value, json};

use crate::rig::{self, BOTH, Said, ask, build, error, question, result, retries, text, tool};

struct Llmock {
    peer: Peer,
    http: reqwest::Client,
}

impl Llmock {
    fn start() -> Self {
        let python = Python::with(&["llmock==0.2.2", "fastapi==0.121.2", "uvicorn==0.38.0"]);
        let mut command = python.unwrap().command();
        let program = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/llm/peers/serve_llmock.py"
        );
        // With a pause between chunks it notices a client that has stopped reading.
        command.env("LLMOCK_STREAM_CHUNK_DELAY_MS", "30");
        let peer = Peer::start(command.arg(program)).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { peer, http }
    }

    /// A model that waits no longer than the faults of these tests last.
    fn model(&self, provider: Provider) -> Arc<dyn Model> {
        let path = match provider {
            Provider::Anthropic => "/anthropic/v1",
            _ => "/v1",
        };
        build(ModelConfig {
            base_url: Some(format!("{}{path}", self.peer.url())),
            key_env: Some("TEST_KEY".to_owned()),
            idle_timeout: Duration::from_secs(3),
            retry_delay: Duration::from_millis(200),
            ..ModelConfig::new(provider, "gpt-4o")
        })
    }

    async fn plan(&self, behaviours: Value) {
        let body = json!({ "behaviors": behaviours }).to_string();
        let url = format!("{}/_llmock/scenario", self.peer.url());
        let answer = self.http.post(url).body(body).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    }

    /// Waits until it has noticed that the client has gone: it takes a request that comes earlier
    /// for another one, not for a second try.
    async fn settle(&self) {
        let url = format!("{}/_llmock/requests", self.peer.url());
        self.http.get(url).send().await.unwrap();
    }

    /// What it thinks of the client: nothing is wrong, not even a little.
    async fn assert_satisfied(&self) {
        let url = format!("{}/_llmock/verdict", self.peer.url());
        let answer = self.http.get(url).send().await.unwrap();
        let verdict: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let counts = (&verdict["errors"], &verdict["warnings"]);
        assert_eq!(counts, (&json!(0), &json!(0)), "{verdict:#}");
        assert!(verdict["faults_injected"].as_u64() > Some(0), "{verdict:#}");
    }
}

fn is_whole(said: &Said) -> bool {
    matches!(said.last(), Some(Ok(ModelEvent::Finished(_))))
}

#[tokio::test]
async fn it_finds_retries_and_waits_right() {
    for provider in BOTH {
        let llmock = Llmock::start();
        let model = llmock.model(provider);
        llmock
            .plan(json!([{ "type": "fail", "status": 429, "retry_after": 0.5, "times": 2 }]))
            .await;
        let said = ask(&*model, question("limited")).await;
        assert!(is_whole(&said), "{said:?}");
        assert_eq!(retries(&said).len(), 2);
        llmock
            .plan(json!([{ "type": "fail", "status": 503, "times": 3 }]))
            .await;
        let said = ask(&*model, question("busy")).await;
        assert!(is_whole(&said), "{said:?}");
        llmock.assert_satisfied().await;
    }
}

#[tokio::test]
async fn it_finds_nothing_tried_again_in_vain() {
    for provider in BOTH {
        let llmock = Llmock::start();
        let model = llmock.model(provider);
        for status in [400, 401, 403, 404, 422] {
            llmock
                .plan(json!([{ "type": "fail", "status": status }]))
                .await;
            let said = ask(&*model, question(&format!("status {status}"))).await;
            assert!(!error(&said).is_passing(), "{said:?}");
        }
        let overflow = json!({ "type": "fail", "status": 400, "code": "context_length_exceeded", "message": "maximum context length" });
        llmock.plan(json!([overflow])).await;
        let said = ask(&*model, question("too long")).await;
        assert!(
            matches!(error(&said), ModelError::TooLong { .. }),
            "{said:?}"
        );
        llmock.assert_satisfied().await;
    }
}

/// It cannot see that half an answer was told to be half: it looks whether somebody asks again.
#[tokio::test]
async fn no_broken_stream_is_taken_for_an_answer() {
    for provider in BOTH {
        let llmock = Llmock::start();
        let model = llmock.model(provider);
        for kind in ["truncate", "disconnect", "malformed", "stall"] {
            llmock
                .plan(json!([
                    { "type": "stream_fault", "kind": kind, "after_chunks": 4, "stall_seconds": 20 },
                    { "type": "reply", "text": "one two three four five six seven eight", "times": 2 },
                ]))
                .await;
            let asked = question(&format!("a stream that will {kind}"));
            let said = ask(&*model, asked.clone()).await;
            let broken = matches!(error(&said), ModelError::BrokenOff { .. });
            assert!(broken, "{provider:?} {kind}: {said:?}");
            llmock.settle().await;
            let said = ask(&*model, asked).await;
            assert!(is_whole(&said), "{provider:?} {kind}: {said:?}");
            assert_eq!(
                text(&said).trim(),
                "one two three four five six seven eight"
            );
        }
        llmock.assert_satisfied().await;
    }
}

#[tokio::test]
async fn its_tools_are_called_and_answered() {
    for provider in BOTH {
        let llmock = Llmock::start();
        let model = llmock.model(provider);
        let mut request = ModelRequest {
            tools: vec![tool("code_search")],
            ..question("Search the code.")
        };
        let said = ask(&*model, request.clone()).await;
        let Some(Ok(ModelEvent::ToolCall(call))) = said
            .iter()
            .find(|event| matches!(event, Ok(ModelEvent::ToolCall(_))))
        else {
            panic!("no tool was called: {said:?}");
        };
        assert_eq!(call.name, "code_search");
        assert!(call.arguments.is_object());
        request
            .messages
            .push(rig::assistant(&text(&said), vec![call.clone()]));
        request.messages.push(result(&call.id, "{}"));
        let said = ask(&*model, request).await;
        assert!(is_whole(&said) && !text(&said).is_empty(), "{said:?}");

        llmock
            .plan(json!([{ "type": "tool_fault", "kind": "malformed_arguments" }]))
            .await;
        let request = ModelRequest {
            tools: vec![tool("code_search")],
            ..question("Search once more.")
        };
        let said = ask(&*model, request).await;
        let broken = said.iter().any(
            |event| matches!(event, Ok(ModelEvent::ToolCall(call)) if call.arguments.is_string()),
        );
        assert!(broken, "{provider:?}: {said:?}");
    }
}
