//! npm's `@copilotkit/aimock` speaks many providers' protocols, and is checked against the real
//! ones by its makers every day.

use std::sync::Arc;
use std::time::Duration;

use dodona_llm::{Finish, Model, ModelConfig, ModelError, ModelEvent, ModelRequest, Provider};
use dodona_testkit::{Node, Peer};
use serde_json::json;

use crate::rig::{self, BOTH, ask, build, call, error, question, result, retries, text, tool};

fn start() -> Peer {
    let node = Node::with(&["@copilotkit/aimock@1.43.0"]).unwrap();
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/llm/peers/serve_aimock.mjs"
    );
    Peer::start(node.command().arg(program)).unwrap()
}

fn model(peer: &Peer, provider: Provider) -> Arc<dyn Model> {
    let path = match provider {
        Provider::OpenRouter => "/api/v1",
        _ => "/v1",
    };
    build(ModelConfig {
        base_url: Some(format!("{}{path}", peer.url())),
        key_env: Some("TEST_KEY".to_owned()),
        retries: 1,
        retry_delay: Duration::from_millis(1),
        ..ModelConfig::new(provider, "some-model")
    })
}

#[tokio::test]
async fn its_answers_are_understood_in_both_protocols() {
    let peer = start();
    for provider in BOTH {
        let model = model(&peer, provider);
        let said = ask(&*model, question("plain")).await;
        assert_eq!(text(&said), "Zeiträume, 漢字 and 🦀.", "{said:?}");
        let finished = Ok(ModelEvent::Finished(Finish::Stop));
        assert_eq!(said.last(), Some(&finished));
        let usage = said.iter().find_map(|event| match event {
            Ok(ModelEvent::Usage(usage)) => Some((usage.input_tokens, usage.output_tokens)),
            _ => None,
        });
        assert_eq!(usage, Some((21, 9)), "{provider:?}: {said:?}");

        let said = ask(&*model, question("reason")).await;
        let thought: String = said
            .iter()
            .filter_map(|event| match event {
                Ok(ModelEvent::Reasoning(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(thought, "Let me think.", "{provider:?}: {said:?}");
        assert_eq!(text(&said), "Because.");
    }
}

#[tokio::test]
async fn its_tools_are_called_and_answered() {
    let peer = start();
    for provider in BOTH {
        let model = model(&peer, provider);
        let mut request = ModelRequest {
            tools: vec![tool("code_search"), tool("vault_list")],
            ..question("tools")
        };
        let said = ask(&*model, request.clone()).await;
        let calls = [
            call("call_a", "code_search", json!({ "z": "login", "a": 1 })),
            call("call_b", "vault_list", json!({})),
        ];
        let called = said.iter().flatten().filter_map(|event| match event {
            ModelEvent::ToolCall(call) => Some(call.clone()),
            _ => None,
        });
        assert_eq!(called.collect::<Vec<_>>(), calls, "{provider:?}: {said:?}");
        request.messages.push(rig::assistant("", calls.to_vec()));
        request.messages.push(result("call_a", "{}"));
        request.messages.push(result("call_b", "{}"));
        let said = ask(&*model, request).await;
        assert_eq!(text(&said), "Found.", "{provider:?}: {said:?}");
    }
}

#[tokio::test]
async fn its_faults_are_seen() {
    let peer = start();
    for provider in BOTH {
        let model = model(&peer, provider);
        let said = ask(&*model, question("cut")).await;
        assert!(
            matches!(error(&said), ModelError::BrokenOff { .. }),
            "{said:?}"
        );
        let said = ask(&*model, question("slow")).await;
        assert!(error(&said).is_passing(), "{said:?}");
        assert_eq!(retries(&said).len(), 1);
    }
}

#[tokio::test]
async fn signs_of_life_are_no_answer() {
    let peer = start();
    let said = ask(&*model(&peer, Provider::OpenRouter), question("alive")).await;
    assert_eq!(text(&said), "Still here.", "{said:?}");
}
