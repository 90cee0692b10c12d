//! Conversations as documents.

use dodona_agent::conversation::{
    Archive, ConversationError, DecisionKind, KeyDecision, QueryState, Which,
};
use dodona_proto::Message;
use serde_json::{Value, json};

use crate::storage::{
    Disk, alice, ask, asks, assert_in_step, assert_strict, in_context, owner, question, run,
};

/// A conversation with everything in it: an answer, a rewind, an interruption, a decision.
async fn eventful(disk: &Disk) -> Archive {
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    ask(&conversations, "Two?", "No.").await;
    let context = conversations.show(&alice(), None).await.unwrap();
    let two = context.recent_exchanges[4].id.as_str();
    conversations
        .rewind(&alice(), "default", two)
        .await
        .unwrap();
    let query = conversations
        .begin_query(&alice(), question("Three?"))
        .await
        .unwrap();
    query.append(1, asks(&["a", "b"])).await.unwrap();
    run(&query, "a", "found").await;
    query
        .finish(QueryState::Failed, Some("the model went away"))
        .await
        .unwrap();
    let decision = KeyDecision::new(DecisionKind::Fact, "Tokens last a day");
    conversations
        .remember(&alice(), None, decision)
        .await
        .unwrap();
    conversations.export(&alice(), None).await.unwrap()
}

/// What a document says but for ids and times of its own.
fn essence(archive: &Archive) -> Value {
    let exchanges: Vec<Value> = archive
        .exchanges
        .iter()
        .map(|entry| {
            let mut value = serde_json::to_value(entry).unwrap();
            value["query_id"] = Value::Null;
            value["exchange"]["id"] = Value::Null;
            value
        })
        .collect();
    let queries: Vec<Value> = archive
        .queries
        .iter()
        .map(|query| {
            let mut value = serde_json::to_value(query).unwrap();
            value["id"] = Value::Null;
            value
        })
        .collect();
    let context = &archive.context;
    json!({
        "exchanges": exchanges, "queries": queries, "decisions": archive.decisions,
        "tokens_used": context.tokens_used, "token_budget": context.token_budget,
        "files": context.mentioned_files, "symbols": context.mentioned_symbols,
        "key_decisions": context.key_decisions, "model": context.last_model,
    })
}

#[tokio::test]
async fn what_is_exported_can_be_imported_elsewhere_and_is_the_same() {
    let here = Disk::new().await;
    let archive = eventful(&here).await;
    let text = serde_json::to_string(&archive).unwrap();
    let there = Disk::new().await;
    let conversations = there.open();
    let bob = owner("bob");
    let read: Archive = serde_json::from_str(&text).unwrap();
    let imported = conversations
        .import(&bob, read, Some("from alice"))
        .await
        .unwrap();
    assert_eq!(imported.exchanges, archive.exchanges.len());
    let again = conversations
        .export(&bob, Some("from alice"))
        .await
        .unwrap();
    assert_eq!(essence(&again), essence(&archive));
    assert_eq!(again.context.user_id, "bob");
    assert!(!again.context.is_default);
    let context = conversations.show(&bob, Some("from alice")).await.unwrap();
    assert_in_step(&context);
    let mut query = conversations
        .begin_query(&bob, in_context("from alice", "Four?"))
        .await
        .unwrap();
    assert_strict(&query.window().await.unwrap());
}

#[tokio::test]
async fn a_document_can_be_imported_twice() {
    let disk = Disk::new().await;
    let archive = eventful(&disk).await;
    let conversations = disk.open();
    let first = conversations
        .import(&alice(), archive.clone(), None)
        .await
        .unwrap();
    let second = conversations.import(&alice(), archive, None).await.unwrap();
    assert_ne!(first.context, second.context);
    assert_eq!(
        conversations
            .list(&alice(), Which::All, 10)
            .await
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn a_document_of_the_data_model_alone_can_be_imported() {
    let document = json!({ "context": {
        "id": "ctx-1", "user_id": "x", "project_id": "y", "session_start": "2025-01-15T10:29:00Z",
        "key_decisions": ["kept as it is"],
        "recent_exchanges": [
            { "id": "uuid-1", "role": "user", "content": "How does authentication work?",
              "timestamp": "2025-01-15T10:30:00Z", "token_count": 45 },
            { "id": "uuid-2", "role": "assistant", "content": "Based on my search...",
              "tool_calls": [{ "id": "call_abc123", "name": "search_code",
                  "arguments": {"query": "authentication"}, "result": "Found 3 files...",
                  "status": "success", "duration_ms": 234 }],
              "timestamp": "2025-01-15T10:30:05Z", "token_count": 1250,
              "key_insight": "Auth uses JWT with refresh tokens",
              "mentioned_symbols": ["AuthService"], "mentioned_files": ["auth.py"] },
        ],
    }});
    let disk = Disk::new().await;
    let conversations = disk.open();
    let archive: Archive = serde_json::from_value(document).unwrap();
    let imported = conversations
        .import(&alice(), archive, Some("old"))
        .await
        .unwrap();
    assert_eq!(imported.tokens_used, 1_295);
    let shown = conversations.window(&alice(), "old").await.unwrap();
    assert_strict(&shown);
    assert_eq!(shown.len(), 4, "question, call, result, answer: {shown:#?}");
    assert!(matches!(&shown[2], Message::Tool { content, .. } if content == "Found 3 files..."));
    assert!(
        matches!(&shown[3], Message::Assistant { content, .. } if content == "Based on my search...")
    );
    let context = conversations.show(&alice(), Some("old")).await.unwrap();
    assert_eq!(context.mentioned_files.as_deref(), Some("auth.py"));
    assert_eq!(context.key_decisions, ["kept as it is"]);
}

#[tokio::test]
async fn a_document_that_breaks_a_rule_is_refused_whole_and_the_field_is_named() {
    let disk = Disk::new().await;
    let good = serde_json::to_value(eventful(&disk).await).unwrap();
    let cases = [
        ("/format", json!("zip"), "format"),
        ("/version", json!(2), "version"),
        ("/context/token_budget", json!(1), "context.token_budget"),
        ("/context/tokens_used", json!(17_601), "context.tokens_used"),
        ("/context/name", json!(" x"), "context.name"),
        (
            "/exchanges/0/exchange/token_count",
            json!(0),
            "exchanges[0].exchange.token_count",
        ),
        (
            "/exchanges/0/exchange/content",
            json!(""),
            "exchanges[0].exchange.content",
        ),
        (
            "/exchanges/2/exchange/tool_call_id",
            json!("other"),
            "exchanges[2].exchange.tool_call_id",
        ),
        (
            "/exchanges/1/exchange/tool_calls/0/name",
            json!(""),
            "exchanges[1].exchange.tool_calls[0].name",
        ),
        (
            "/exchanges/3/query_id",
            json!("nobody"),
            "exchanges[3].query_id",
        ),
        (
            "/exchanges/3/exchange/id",
            good["exchanges"][0]["exchange"]["id"].clone(),
            "exchanges[3].exchange.id",
        ),
        (
            "/exchanges/0/exchange/role",
            json!("assistant"),
            "exchanges[0].query_id",
        ),
        (
            "/exchanges/5/rewound_at",
            Value::Null,
            "exchanges[5].rewound_at",
        ),
        (
            "/queries/1/id",
            good["queries"][0]["id"].clone(),
            "queries[1].id",
        ),
        ("/decisions/0/text", json!(""), "decisions[0].text"),
    ];
    let conversations = disk.open();
    for (pointer, value, field) in cases {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        let archive: Archive = serde_json::from_value(document).unwrap();
        let refused = conversations
            .import(&alice(), archive, None)
            .await
            .unwrap_err();
        match refused {
            ConversationError::Invalid(invalid) => assert_eq!(invalid.field, field, "{pointer}"),
            other => panic!("{pointer}: {other}"),
        }
    }
    assert_eq!(disk.number("select count(*) from oracle_contexts").await, 1);
}

#[tokio::test]
async fn a_document_has_a_largest_size() {
    let disk = Disk::new().await;
    let mut archive = eventful(&disk).await;
    let entry = archive.exchanges[0].clone();
    archive.exchanges.resize(20_001, entry);
    let refused = disk
        .open()
        .import(&alice(), archive, None)
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`exchanges`: there may be at most 20000"
    );
}
