//! Conversations that become too long, in the real loop: when they are shortened, who is asked and
//! told, and what the model sees then.

use std::sync::{Arc, Mutex};

use dodona_agent::AgentOptions;
use dodona_plugin::hooks::{Hook, Reply, point};
use dodona_proto::hook::{CompactEdit, ModelCallEdit};
use dodona_proto::{DoneStatus, Effect, Message, Notification};
use dodona_testkit::model_server::{Reply as ModelReply, SeenRequest};
use serde_json::{Value, json};

use crate::integration::set_up;
use crate::talk::Talk;

/// What plugins were shown of a compaction.
type Seen = Arc<Mutex<Vec<Value>>>;

pub(crate) fn small(options: &mut AgentOptions) {
    options.token_budget = Some(4_000);
    options.preload = 0;
    options.keep_turns = 2;
}

/// About six hundred tokens, one of them a fact.
fn long_answer(n: usize) -> String {
    let rest = "The rest of it is as it was before, and nothing else has changed since. ";
    format!(
        "The limit of part {n} is {n} MB, see src/part{n}.rs. {}",
        rest.repeat(34)
    )
}

/// Asks until the window is nearly full.
pub(crate) async fn fill(talk: &Talk) {
    for n in 1..=6 {
        talk.server.reply(ModelReply::text(&long_answer(n)));
        talk.ask(&format!("What is the limit of part {n}?")).await;
    }
}

fn main_requests(talk: &Talk) -> Vec<SeenRequest> {
    let mut requests = talk.server.requests();
    requests.retain(|request| request.body["model"] == "main-1");
    requests
}

fn contents(request: &SeenRequest) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    let content = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(content).collect()
}

#[tokio::test]
async fn pre_compact_can_pin_and_post_compact_is_told_what_came_of_it() {
    let seen = Seen::default();
    let watched = Arc::clone(&seen);
    let talk = set_up(
        move || {
            let (before, after) = (Arc::clone(&watched), Arc::clone(&watched));
            vec![
                Hook::inline::<point::PreCompact>(move |compacting| {
                    before.lock().unwrap().push(json!(compacting));
                    Ok(Reply::edit(CompactEdit {
                        pin: vec!["Part 9 must stay secret.".to_owned()],
                        summarizer: None,
                    }))
                }),
                Hook::inline::<point::PostCompact>(move |compacted| {
                    after.lock().unwrap().push(json!(compacted));
                    let note = Notification::new("It was shortened.");
                    Ok(Reply::none().effect(Effect::NotifySelf(note)))
                }),
            ]
        },
        small,
    )
    .await;
    fill(&talk).await;
    talk.server.reply(ModelReply::text("Yes."));
    let answer = talk.ask("Is that all?").await;
    assert_eq!(answer.status(), DoneStatus::Complete);

    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2, "{seen:#?}");
    assert_eq!(
        (&seen[0]["summarizer"], &seen[0]["pinned"]),
        (&json!("extractive"), &json!([]))
    );
    let usage = seen[0]["snapshot"]["turn"]["token_usage"].as_f64().unwrap();
    assert!(usage >= 0.9, "{usage}");
    let (before, after) = (
        seen[1]["before"].as_u64().unwrap(),
        seen[1]["after"].as_u64().unwrap(),
    );
    assert!(
        after < before && seen[1]["snapshot"]["tokens_used"] == after,
        "{seen:#?}"
    );

    let events = talk.events("context.compacted").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].payload["after"], after);
    assert_eq!(events[0].payload["summarizer"], "extractive");
    assert!(events[0].call.is_some() && events[0].user.is_some());
    // After the hooks of the turn's start.
    let all = talk.events("").await;
    let at = |kind: &str, from: usize| {
        let found = all[from..].iter().position(|event| event.kind == kind);
        found.unwrap() + from
    };
    let compacted = at("context.compacted", 0);
    assert_eq!(all[compacted - 1].kind, "agent.turn.start");
    assert!(at("agent.turn.end", compacted) > compacted);

    // What the model saw: the same beginning as before, the summary, the last turns, the question.
    let requests = main_requests(&talk);
    let (short, long) = (contents(&requests[6]), contents(&requests[5]));
    assert_eq!(
        short[0], long[0],
        "the system prompt is the same, byte for byte"
    );
    assert_eq!(requests[6].body["tools"], requests[5].body["tools"]);
    assert!(
        short[1].contains("Part 9 must stay secret."),
        "{}",
        short[1]
    );
    for n in 1..=4 {
        assert!(short[1].contains(&format!("is {n} MB")), "{}", short[1]);
        assert!(
            short[1].contains(&format!("src/part{n}.rs #")),
            "{}",
            short[1]
        );
    }
    assert_eq!(short[2], "What is the limit of part 6?", "{short:#?}");
    assert_eq!(short[3], long_answer(6));
    assert_eq!(short[4], "Is that all?");
    // What the last hook had to say waits for the next request: this one was being made.
    assert!(
        short.last().unwrap().ends_with("says: It was shortened."),
        "{short:#?}"
    );
    let shown = talk.call("agent.show", json!({})).await.unwrap();
    assert_eq!(shown["context"]["compression_count"], 1);
}

#[tokio::test]
async fn what_a_plugin_adds_to_the_request_stays_at_its_end() {
    let talk = set_up(
        || {
            vec![Hook::inline::<point::PreLlmCall>(|_| {
                Ok(Reply::edit(ModelCallEdit {
                    append: vec![Message::User {
                        content: "Be brief.".to_owned(),
                    }],
                    ..ModelCallEdit::default()
                }))
            })]
        },
        small,
    )
    .await;
    fill(&talk).await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Is that all?").await;
    assert_eq!(talk.events("context.compacted").await.len(), 1);
    let sent = contents(&talk.server.last_request());
    assert_eq!(sent[sent.len() - 2..], ["Is that all?", "Be brief."]);
    assert!(sent[1].contains("shortened"), "{}", sent[1]);
}

#[tokio::test]
async fn a_model_can_tell_the_story_and_its_lines_name_their_messages() {
    let talk = Talk::with(|options| {
        small(options);
        options.summarizer = Some("other".to_owned());
    })
    .await;
    fill(&talk).await;
    let told = "Here it is:\n- Limits of four parts were looked up. (#1, #3)\n- All is well.";
    talk.server.reply(ModelReply::text(told).usage(500, 20, 0));
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Is that all?").await;
    let requests = talk.server.requests();
    let asked = &requests[requests.len() - 2];
    assert_eq!(asked.body["model"], "other-1");
    let shown = contents(asked);
    assert!(
        shown[0].contains("You shorten a conversation"),
        "{}",
        shown[0]
    );
    assert!(
        shown[1].contains("#2 assistant: The limit of part 1 is 1 MB"),
        "{}",
        shown[1]
    );
    let sent = contents(&talk.server.last_request());
    assert!(
        sent[1].contains("- Limits of four parts were looked up. #3"),
        "{}",
        sent[1]
    );
    assert!(
        sent[1].contains("is 4 MB"),
        "facts are found all the same: {}",
        sent[1]
    );
    let shown = talk.call("agent.show", json!({})).await.unwrap();
    let lines = shown["summary"].as_array().unwrap();
    let told: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "told").collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(
        told.iter()
            .all(|line| line["exchanges"].as_array().unwrap().len() == 2)
    );
    let usage = talk
        .call("agent.usage", json!({ "by": "path" }))
        .await
        .unwrap();
    assert!(usage.to_string().contains("agent.summarizer"), "{usage}");
    let events = talk.events("context.compacted").await;
    assert_eq!(events[0].payload["summarizer"], "other");
}

#[tokio::test]
async fn a_summarizer_that_fails_is_done_without() {
    let talk = Talk::with(|options| {
        small(options);
        options.summarizer = Some("other".to_owned());
    })
    .await;
    fill(&talk).await;
    talk.server.reply(ModelReply::status(500));
    talk.server.reply(ModelReply::text("Yes."));
    let answer = talk.ask("Is that all?").await;
    assert_eq!(answer.text(), "Yes.");
    let events = talk.events("context.compacted").await;
    assert_eq!(events[0].payload["summarizer"], "extractive");
    assert!(contents(&talk.server.last_request())[1].contains("is 4 MB"));
}

#[tokio::test]
async fn a_request_that_is_too_long_for_the_model_is_sent_again_shorter() {
    let talk = Talk::with(|options| {
        options.preload = 0;
        options.keep_turns = 1;
    })
    .await;
    fill(&talk).await;
    talk.server.reply(ModelReply::status(413));
    talk.server.reply(ModelReply::text("Yes."));
    let answer = talk.ask("Is that all?").await;
    assert_eq!(answer.text(), "Yes.");
    let requests = talk.server.requests();
    // Without the tools, which are the same in both.
    let size = |request: &SeenRequest| request.body["messages"].to_string().len();
    let (last, refused) = (&requests[requests.len() - 1], &requests[requests.len() - 2]);
    assert!(
        size(last) * 3 < size(refused) * 2,
        "{} of {}",
        size(last),
        size(refused)
    );
    // Where nothing can be folded, that is how it ends.
    let talk = Talk::with(|options| options.preload = 0).await;
    talk.server.reply(ModelReply::status(413));
    let answer = talk.ask("Hi").await;
    assert_eq!(answer.status(), DoneStatus::Limited, "{}", answer.error());
}

#[tokio::test]
async fn compact_pin_and_recall_are_methods() {
    let talk = Talk::with(small).await;
    let error = talk.call("agent.compact", json!({})).await.unwrap_err();
    assert_eq!(error.code.as_str(), "hub.not_found");
    fill(&talk).await;
    let pinned = talk
        .call("agent.pin", json!({ "text": "Alice signs." }))
        .await
        .unwrap();
    assert_eq!(pinned["pinned"], json!(["Alice signs."]));
    let done = talk.call("agent.compact", json!({})).await.unwrap();
    assert_eq!(
        (&done["compacted"], &done["summarizer"]),
        (&json!(true), &json!("extractive"))
    );
    let (before, after) = (
        done["before"].as_u64().unwrap(),
        done["after"].as_u64().unwrap(),
    );
    assert!(after < before, "{done}");
    let again = talk.call("agent.compact", json!({})).await.unwrap();
    assert_eq!(
        (&again["compacted"], &again["after"]),
        (&json!(false), &json!(after))
    );
    let recalled = talk
        .call("agent.recall", json!({ "number": 2, "limit": 9 }))
        .await
        .unwrap();
    assert_eq!(
        (&recalled["text"], &recalled["next"]),
        (&json!("The limit"), &json!(9))
    );
    assert_eq!(recalled["role"], "assistant");
    let released = json!({ "text": "Alice signs.", "release": true });
    let released = talk.call("agent.pin", released).await.unwrap();
    assert_eq!(
        (&released["changed"], &released["pinned"]),
        (&json!(true), &json!([]))
    );
    let shown = talk.call("agent.prompt", json!({})).await.unwrap();
    let first = shown["messages"][0]["content"].as_str().unwrap();
    assert!(
        first.contains("is 2 MB") && !first.contains("Alice signs."),
        "{first}"
    );
}
