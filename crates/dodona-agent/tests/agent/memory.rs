//! What was decided, pinned and said in one conversation, found and cited in another.

use dodona_agent::conversation::{Conversations, DecisionKind, KeyDecision, MemoryKind, PinTo};
use dodona_proto::DoneStatus;
use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::storage::{Disk, alice, ask, bytes, owner};
use crate::talk::{Answer, Talk};

fn sources(answer: &Answer) -> Vec<&Value> {
    let sources = answer.response()["sources"].as_array().unwrap();
    sources.iter().collect()
}

async fn close(talk: &Talk) {
    let params = json!({ "context_id": "default" });
    talk.call("agent.close", params).await.unwrap();
}

async fn remember(talk: &Talk, kind: &str, text: &str) {
    let params = json!({ "kind": kind, "text": text });
    talk.call("agent.remember", params).await.unwrap();
}

/// A conversation in which something is decided, pinned and said, and which is over.
async fn over() -> Talk {
    let talk = Talk::new().await;
    talk.server.reply(Reply::text(
        "Sessions go to Redis from now on.\n\nWe decided to keep them for 90 minutes there, as src/session/store.rs does.",
    ));
    talk.ask("Where do we keep the sessions of the shop?").await;
    remember(
        &talk,
        "decision",
        "Refresh tokens are dropped: the edge has no shared store.",
    )
    .await;
    let pin = json!({ "text": "Alice signs every release herself." });
    talk.call("agent.pin", pin).await.unwrap();
    close(&talk).await;
    talk
}

#[tokio::test]
async fn a_new_conversation_knows_what_an_earlier_one_decided_and_cites_it() {
    let talk = over().await;
    talk.server.respond_with(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let question = messages.last().unwrap()["content"].as_str().unwrap();
        // It cites the first of what came with the question.
        match question.contains("[1] ") {
            true => Reply::text("It was settled before [1]."),
            false => Reply::text("I do not know."),
        }
    });
    for (question, told, title) in [
        (
            "What did we decide about refresh tokens?",
            "Refresh tokens are dropped",
            "decision of",
        ),
        (
            "Who signs a release?",
            "Alice signs every release herself.",
            "pinned on",
        ),
        (
            "How long do we keep sessions, did we decide that?",
            "We decided to keep them for 90 minutes there",
            "said on",
        ),
    ] {
        let answer = talk.ask(question).await;
        assert_eq!(answer.text(), "It was settled before [1].", "{question}");
        let sources = sources(&answer);
        assert_eq!(sources.len(), 1, "{sources:?}");
        assert_eq!(sources[0]["kind"], "context");
        assert!(
            sources[0]["title"].as_str().unwrap().contains(title),
            "{sources:?}"
        );
        let resolve = json!({ "source": sources[0] });
        let resolved = talk.call("search.resolve", resolve).await.unwrap();
        assert_eq!(resolved["stale"], false);
        assert!(
            resolved["text"].as_str().unwrap().contains(told),
            "{resolved}"
        );
        close(&talk).await;
    }
}

#[tokio::test]
async fn without_a_model_it_is_quoted_and_cited() {
    let talk = over().await;
    let asked =
        json!({ "message": "What did we decide about refresh tokens?", "model": "offline" });
    let answer = talk.ask_with(asked).await;
    assert_eq!(answer.status(), DoneStatus::Complete, "{}", answer.error());
    assert!(
        answer.text().contains("Refresh tokens are dropped"),
        "{}",
        answer.text()
    );
    assert!(answer.text().contains("[1]"), "{}", answer.text());
    assert_eq!(sources(&answer)[0]["kind"], "context");
    // What it quoted is no memory of its own: the place is cited again, and not the quotation.
    close(&talk).await;
    let asked = json!({ "message": "What was decided about refresh tokens?", "model": "offline" });
    let again = talk.ask_with(asked).await;
    assert_eq!(sources(&again)[0], sources(&answer)[0]);
}

#[tokio::test]
async fn somebody_else_finds_nothing_and_resolves_nothing() {
    let talk = over().await;
    let params = json!({ "query": "refresh tokens" });
    let own = talk.call("agent.seek", params.clone()).await.unwrap();
    let source = own["passages"][0]["source"].clone();
    let bob = talk.call_as("bob", "agent.seek", params).await.unwrap();
    assert_eq!(bob["passages"], json!([]));
    let resolve = json!({ "source": source });
    let error = talk
        .call_as("bob", "agent.resolve", resolve.clone())
        .await
        .unwrap_err();
    assert!(
        error.message.starts_with("there is no conversation"),
        "{}",
        error.message
    );
    let gone = talk
        .call_as("bob", "search.resolve", resolve)
        .await
        .unwrap();
    assert_eq!(gone, json!({ "text": "", "stale": true }));
}

async fn texts(conversations: &Conversations, user: &str, question: &str) -> Vec<String> {
    let found = conversations
        .seek(&owner(user), question, 5, None)
        .await
        .unwrap();
    found.into_iter().map(|memory| memory.text).collect()
}

#[tokio::test]
async fn memories_are_of_one_user_and_one_project() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "Which queue?", "We use NATS for the queue.").await;
    let found = texts(&conversations, "alice", "which queue do we use").await;
    assert!(
        found
            .iter()
            .any(|text| text == "We use NATS for the queue."),
        "{found:?}"
    );
    assert_eq!(
        texts(&conversations, "bob", "which queue do we use").await,
        [""; 0]
    );
    let mut elsewhere = alice();
    elsewhere.project = "elsewhere".parse().unwrap();
    let found = conversations.seek(&elsewhere, "which queue", 5, None).await;
    assert!(found.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_taken_back_or_released_is_no_memory_and_what_is_closed_is_one() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "Which cache?", "We use a cache of 64 MB.").await;
    let second = ask(&conversations, "And how long?", "We keep entries for 30 s.").await;
    let (who, counter) = (alice(), bytes());
    let keep = |to| conversations.pin(&who, None, "The cache is Zed's.", to, &counter);
    keep(PinTo::Keep).await.unwrap();
    let decision = KeyDecision::new(DecisionKind::Fact, "The cache lives in process.");
    conversations
        .remember(&alice(), None, decision)
        .await
        .unwrap();
    let found = conversations
        .seek(&alice(), "cache", 10, None)
        .await
        .unwrap();
    let kinds: Vec<MemoryKind> = found.iter().map(|memory| memory.kind).collect();
    assert!(kinds.contains(&MemoryKind::Fact) && kinds.contains(&MemoryKind::Pinned));
    assert!(kinds.contains(&MemoryKind::Said), "{kinds:?}");
    keep(PinTo::Release).await.unwrap();
    let id = second.exchange.as_str();
    conversations.rewind(&alice(), "default", id).await.unwrap();
    conversations.close(&alice(), "default").await.unwrap();
    let found = texts(&conversations, "alice", "cache entries").await;
    assert!(
        found.iter().any(|text| text == "We use a cache of 64 MB."),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .all(|text| !text.contains("30 s") && !text.contains("Zed")),
        "{found:?}"
    );
    // A memory of what is there again is made again.
    ask(
        &conversations,
        "How long are entries kept?",
        "We keep entries for 45 s.",
    )
    .await;
    let found = texts(&conversations, "alice", "entries kept").await;
    assert!(found.iter().any(|text| text.contains("45 s")), "{found:?}");
}

#[tokio::test]
async fn what_a_model_is_shown_anyway_is_not_brought_back() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(
        &conversations,
        "Which port?",
        "We use port 8080 for 20 users.",
    )
    .await;
    let context = conversations.show(&alice(), None).await.unwrap().id;
    let here = conversations
        .seek(&alice(), "which port", 5, Some(&context))
        .await;
    assert!(here.unwrap().is_empty());
    let there = conversations.seek(&alice(), "which port", 5, None).await;
    assert!(!there.unwrap().is_empty());
}
