//! Notices, steering messages and arguments of tools are not the user's words.

use dodona_testkit::model_server::{Gate, Reply};
use serde_json::{Value, json};

use crate::talk::Talk;

const NOTICE: &str = "The request fills 86% of the window. Nordwind Systems must never be billed.";
const STEERING: &str = "Always prefer kilometres, 4711 km at most.";

/// A conversation with a notice, a steering message and a tool whose argument is a file.
async fn conversation() -> Talk {
    let talk = Talk::with(|options| options.keep_turns = 1).await;
    let note = json!({ "message": NOTICE });
    talk.call("agent.notify_self", note).await.unwrap();
    let gate = Gate::new();
    talk.server
        .reply(Reply::stream().add_text("Looking.").wait(&gate).tool_call(
            "c",
            "kit_echo",
            &[r#"{"text":"notes/hidden-budget.md"}"#],
        ));
    talk.server
        .reply(Reply::text("We decided to use Redis for the sessions."));
    let stream = talk
        .open(
            "agent.chat",
            json!({ "message": "Where do sessions live?" }),
        )
        .await;
    talk.server.until_requests(1).await;
    talk.call("agent.steer", json!({ "message": STEERING }))
        .await
        .unwrap();
    gate.open();
    stream.collect().await.unwrap();
    talk
}

async fn found(talk: &Talk, query: &str) -> Vec<Value> {
    let params = json!({ "query": query, "limit": 20 });
    let found = talk.call("agent.seek", params).await.unwrap();
    found["passages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn notices_steering_and_arguments_are_never_remembered() {
    let talk = conversation().await;
    let close = json!({ "context_id": "default" });
    talk.call("agent.close", close).await.unwrap();
    let known = json!(found(&talk, "Redis sessions").await).to_string();
    assert!(known.contains("We decided to use Redis"), "{known}");
    for words in [
        "Nordwind Systems",
        "kilometres 4711",
        "hidden-budget",
        "fills 86% window",
    ] {
        let found = found(&talk, words).await;
        let text = json!(found).to_string();
        for foreign in ["Nordwind", "4711", "hidden-budget", "86%"] {
            assert!(!text.contains(foreign), "{words}: {text}");
        }
    }
}

#[tokio::test]
async fn notices_and_steering_are_never_summarised_as_questions_or_facts() {
    let talk = conversation().await;
    for number in 0..4 {
        talk.server.reply(Reply::text(&format!("Answer {number}.")));
        talk.ask(&format!("Question {number}?")).await;
    }
    talk.call("agent.compact", json!({})).await.unwrap();
    let shown = talk.call("agent.show", json!({})).await.unwrap();
    let summary = shown["summary"].to_string();
    assert!(summary.contains("Where do sessions live?"), "{summary}");
    for foreign in ["Nordwind", "86%", "4711", "Notices from the system"] {
        assert!(!summary.contains(foreign), "{summary}");
    }
    let decisions = shown["decisions"].to_string();
    assert!(!decisions.contains("Nordwind") && !decisions.contains("4711"));
}

#[tokio::test]
async fn every_message_that_is_not_the_users_question_says_where_it_comes_from() {
    let talk = conversation().await;
    let shown = talk.call("agent.show", json!({})).await.unwrap();
    let exchanges = shown["context"]["recent_exchanges"].as_array().unwrap();
    let origins: Vec<&Value> = exchanges
        .iter()
        .filter(|exchange| exchange["role"] == "user")
        .map(|exchange| &exchange["origin"])
        .collect();
    assert_eq!(
        origins,
        [&Value::Null, &json!("notice"), &json!("steering")]
    );
}
