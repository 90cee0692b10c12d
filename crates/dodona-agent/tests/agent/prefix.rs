//! What was sent once is sent the same way again, so that a provider's cache recognises it.

use dodona_llm::Provider;
use dodona_proto::DoneStatus;
use dodona_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::talk::Talk;

const PROTOCOLS: [Provider; 3] = [
    Provider::OpenAi,
    Provider::Anthropic,
    Provider::OpenAiResponses,
];

/// A project with a note for each question, so that passages are looked up.
async fn talk(provider: Provider, questions: usize) -> Talk {
    let talk = Talk::of(provider, |options| options.token_budget = Some(128_000)).await;
    for number in 0..questions {
        let text = format!(
            "# Orchard {number}\n\nTree number {number} bears apples of the kind Sort{number}. \
             They are picked in week {number} and stored in cellar {number}.\n"
        );
        std::fs::write(talk.root().join(format!("tree{number}.md")), text).unwrap();
    }
    talk
}

/// The smallest share of a request, in percent, that the next one begins with.
fn smallest_common_share(server: &ModelServer) -> (usize, String) {
    let requests = server.requests();
    let mut smallest = (100, String::new());
    for (number, pair) in requests.windows(2).enumerate() {
        let (before, after) = (&pair[0].bytes, &pair[1].bytes);
        let same = before.iter().zip(after.iter()).take_while(|(a, b)| a == b);
        let common = same.count();
        let share = common * 100 / before.len();
        if share < smallest.0 {
            let near = common.saturating_sub(80)..(common + 120).min(before.len());
            let text = String::from_utf8_lossy(&before[near]).into_owned();
            let place = format!(
                "request {number}: {common} of {} bytes: {text}",
                before.len()
            );
            smallest = (share, place);
        }
    }
    smallest
}

#[tokio::test]
async fn consecutive_requests_of_twenty_questions_have_95_percent_in_common() {
    for provider in PROTOCOLS {
        let talk = talk(provider, 20).await;
        for number in 0..20 {
            let echo = format!(r#"{{"text":"look at tree {number}"}}"#);
            talk.server.reply(
                Reply::stream()
                    .add_text("Let me look.")
                    .tool_call(&format!("a{number}"), "kit_echo", &[&echo])
                    .tool_call(&format!("b{number}"), "kit_fail", &["{}"]),
            );
            talk.server.reply(Reply::text(&format!(
                "Sort{number} is picked in week {number} [1]."
            )));
            let question = format!("When is Sort{number} of tree number {number} picked?");
            let answer = talk.ask(&question).await;
            assert_eq!(
                answer.status(),
                DoneStatus::Complete,
                "{provider:?} {number}"
            );
            if number % 5 == 1 {
                let fact = format!("Cellar {number} is full.");
                let params = json!({ "kind": "fact", "text": fact });
                talk.call("agent.remember", params).await.unwrap();
            }
        }
        let requests = talk.server.requests();
        assert_eq!(requests.len(), 40);
        let last = String::from_utf8_lossy(&requests[39].bytes).into_owned();
        assert!(
            last.contains("Passages of the project"),
            "nothing was preloaded"
        );
        assert!(last.contains("Cellar 16 is full."), "a fact is missing");
        let (share, place) = smallest_common_share(&talk.server);
        assert!(share >= 95, "{provider:?}: {share} %, {place}");
    }
}

#[tokio::test]
async fn consecutive_requests_of_fifty_turns_have_95_percent_in_common() {
    for provider in PROTOCOLS {
        let talk = talk(provider, 3).await;
        // One question of 25 turns, then one of 24 and its answer.
        for (question, turns) in [("Where is Sort1?", 25), ("And Sort2?", 25)] {
            for turn in 1..turns {
                let echo = format!(r#"{{"text":"{question} step {turn}"}}"#);
                let id = format!("c{turn}{}", question.len());
                talk.server
                    .reply(Reply::stream().tool_call(&id, "kit_echo", &[&echo]));
            }
            talk.server.reply(Reply::text("In the cellar."));
            let answer = talk.ask(question).await;
            assert_eq!(answer.status(), DoneStatus::Complete, "{provider:?}");
        }
        assert_eq!(talk.server.requests().len(), 50);
        let (share, place) = smallest_common_share(&talk.server);
        assert!(share >= 95, "{provider:?}: {share} %, {place}");
    }
}

#[tokio::test]
async fn what_is_remembered_is_shown_again_after_a_compaction() {
    let talk = Talk::with(|options| options.keep_turns = 1).await;
    let fact = json!({ "kind": "decision", "text": "Tabs, never spaces." });
    talk.server.reply(Reply::text("Yes."));
    talk.ask("Do we have a style?").await;
    talk.call("agent.remember", fact).await.unwrap();
    for number in 0..4 {
        talk.server.reply(Reply::text(&format!("Answer {number}.")));
        talk.ask(&format!("Question {number}?")).await;
        let sent = json!(talk.sent()).to_string();
        let times = sent.matches("- Tabs, never spaces.").count();
        assert_eq!(times, 1, "once, in {sent}");
        assert!(
            !talk.sent()[0].to_string().contains("Tabs"),
            "not in the system prompt"
        );
    }
    talk.call("agent.compact", json!({})).await.unwrap();
    talk.server.reply(Reply::text("Tabs."));
    talk.ask("Tabs or spaces?").await;
    let sent = json!(talk.sent()).to_string();
    assert!(sent.contains("- Tabs, never spaces."), "{sent}");
}
