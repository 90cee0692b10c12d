//! Whose usage and cost it is, whatever happens to a request.

use std::time::Duration;

use dodona_llm::Provider;
use dodona_proto::{DoneStatus, ItemBody};
use dodona_testkit::model_server::{Gate, Reply, Step};
use serde_json::{Value, json};

use crate::talk::{Answer, Setup, Talk};

async fn usage_by(talk: &Talk, by: &str) -> Vec<Value> {
    let report = talk.call("agent.usage", json!({ "by": by })).await.unwrap();
    report["rows"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_fallback_is_billed_and_named_as_the_model_that_answered() {
    let setup = Setup {
        model: |name, config| {
            if name == "main" {
                // Nothing listens there.
                config.base_url = Some("http://127.0.0.1:9/v1".to_owned());
                config.fallback = Some("other".to_owned());
                config.price = Some(dodona_llm::Price {
                    input: 100.0,
                    output: 100.0,
                    cached_input: None,
                    cache_write: None,
                });
            }
        },
        ..Setup::default()
    };
    let talk = Talk::set_up(setup, |_| {}).await;
    talk.server
        .reply(Reply::text("Instead.").usage(1_000, 100, 0));
    let answer = talk.ask("Who are you?").await;
    let response = answer.response();
    assert_eq!(response["model"], "other");
    assert_eq!(
        response["cost_micros"], 2_000,
        "1,000 at 1 and 100 at 10 dollars a million"
    );
    let rows = usage_by(&talk, "model").await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["key"], "other", "{rows:?}");
    let progress = answer.items.iter().find_map(|item| match &item.body {
        ItemBody::Progress { message, .. } => Some(message.as_str()),
        _ => None,
    });
    let progress = progress.unwrap();
    assert!(
        progress.starts_with("using the fallback model `other`: "),
        "{progress}"
    );
}

#[tokio::test]
async fn a_cancelled_stream_is_accounted_with_what_was_sent_and_received() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let talk = Talk::of(provider, |_| {}).await;
        let text = "A beginning of some length.";
        talk.server
            .reply(Reply::stream().add_text(text).wait(&Gate::new()));
        let mut stream = talk
            .open("agent.chat", json!({ "message": "Tell me" }))
            .await;
        let mut items = Vec::new();
        let began = |item: &dodona_proto::HubStreamItem| matches!(&item.body, ItemBody::Data { content_type, .. } if content_type == "TextDelta");
        while !items.iter().any(began) {
            let next = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
            let next = next.expect("text within a minute").unwrap().unwrap();
            items.extend(next.iter().map(|item| item.to_item().unwrap()));
        }
        let target = json!({ "stream_id": stream.stream() });
        talk.call("hub.cancel", target).await.unwrap();
        while let Some(next) = stream.next().await.unwrap() {
            items.extend(next.iter().map(|item| item.to_item().unwrap()));
        }
        assert_eq!(Answer { items }.status(), DoneStatus::Cancelled);
        let rows = usage_by(&talk, "model").await;
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(
            (&rows[0]["key"], &rows[0]["requests"]),
            (&json!("main"), &json!(1))
        );
        let usage = &rows[0];
        assert!(usage["input_tokens"].as_u64().unwrap() > 100, "{usage}");
        assert!(usage["output_tokens"].as_u64().unwrap() >= 4, "{usage}");
        assert!(rows[0]["cost_micros"].as_u64().unwrap() > 0, "{rows:?}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_accounted_and_a_refused_request_is_not() {
    let talk = Talk::new().await;
    talk.server
        .reply(Reply::stream().add_text("It breaks").step(Step::Cut));
    assert_eq!(talk.ask("One?").await.status(), DoneStatus::Failed);
    let rows = usage_by(&talk, "model").await;
    assert_eq!(rows[0]["requests"], 1, "{rows:?}");
    assert!(rows[0]["output_tokens"].as_u64().unwrap() > 0);
    talk.server.reply(Reply::status(400).message("no"));
    assert_eq!(talk.ask("Two?").await.status(), DoneStatus::Failed);
    assert_eq!(usage_by(&talk, "model").await[0]["requests"], 1);
}

#[tokio::test]
async fn at_the_turn_limit_the_model_answers_without_tools_and_the_query_is_limited() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let talk = Talk::of(provider, |options| options.max_turns = 2).await;
        for turn in 0..2 {
            let arguments = format!(r#"{{"text":"{turn}"}}"#);
            talk.server
                .reply(Reply::stream().tool_call("c", "kit_echo", &[&arguments]));
        }
        talk.server
            .reply(Reply::text("As far as I got: two echoes."));
        let answer = talk.ask("Echo for ever").await;
        assert_eq!(answer.status(), DoneStatus::Limited);
        assert_eq!(answer.text(), "As far as I got: two echoes.");
        assert_eq!(answer.response()["limit"]["code"], "limit.turns");
        let code = answer.items.iter().find_map(|item| match &item.body {
            ItemBody::Error { code, .. } if item.call_id.depth() == 0 => Some(code.to_string()),
            _ => None,
        });
        assert_eq!(code.as_deref(), Some("limit.turns"));
        let last = talk.server.last_request().body;
        match provider {
            Provider::Anthropic => assert_eq!(last["tool_choice"]["type"], "none"),
            _ => assert!(last.get("tools").is_none()),
        }
        let (state, reason) = talk.last_query().await;
        assert_eq!(state, "limited");
        assert!(reason.unwrap().contains("limit of 2 turns"));
        // The next model sees the answer as one.
        talk.server.reply(Reply::text("Yes."));
        talk.ask("Enough?").await;
        let body = talk.server.last_request().body.to_string();
        assert!(body.contains("As far as I got"), "{body}");
        assert!(!body.contains("not answered"), "{body}");
    }
}
