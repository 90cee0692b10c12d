//! The data model: its JSON, and each of its rules.

use dodona_agent::conversation::{
    ConversationError, DecisionKind, Ending, Invalid, KeyDecision, NewContext, NewMessage,
    OracleExchange, ToolCallRecord, ToolCallStatus,
};
use dodona_proto::ToolCall;
use serde_json::{Value, json};

use crate::storage::{Disk, alice, asks, call, outcome, question, run, says};

/// The examples of the data model's description, as they stand there.
const RECENT_EXCHANGES: &str = r#"[
  {
    "id": "uuid-1",
    "role": "user",
    "content": "How does authentication work?",
    "tool_calls": null,
    "timestamp": "2025-01-15T10:30:00Z",
    "token_count": 45,
    "key_insight": null,
    "mentioned_symbols": [],
    "mentioned_files": []
  },
  {
    "id": "uuid-2",
    "role": "assistant",
    "content": "Based on my search...",
    "tool_calls": [
      {
        "id": "call_abc123",
        "name": "search_code",
        "arguments": {"query": "authentication"},
        "result": "Found 3 files...",
        "status": "success",
        "duration_ms": 234
      }
    ],
    "timestamp": "2025-01-15T10:30:05Z",
    "token_count": 1250,
    "key_insight": "Auth uses JWT with refresh tokens",
    "mentioned_symbols": ["AuthService", "JWTHandler"],
    "mentioned_files": ["auth.py", "jwt.py"]
  }
]"#;

fn example() -> Vec<OracleExchange> {
    serde_json::from_str(RECENT_EXCHANGES).unwrap()
}

#[test]
fn the_examples_of_the_data_model_are_read_and_written_to_the_byte() {
    let read = example();
    for exchange in &read {
        exchange.check().unwrap();
    }
    let compact: Value = serde_json::from_str(RECENT_EXCHANGES).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), compact.to_string());
}

#[test]
fn an_unknown_role_or_status_is_no_exchange() {
    for (pointer, word) in [("/1/role", "system"), ("/1/tool_calls/0/status", "running")] {
        let mut document: Value = serde_json::from_str(RECENT_EXCHANGES).unwrap();
        *document.pointer_mut(pointer).unwrap() = json!(word);
        let error = serde_json::from_value::<Vec<OracleExchange>>(document).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

/// Changes the second example and tells which rule it breaks.
fn broken(change: impl FnOnce(&mut OracleExchange)) -> String {
    let mut exchange = example().remove(1);
    change(&mut exchange);
    exchange.check().unwrap_err().to_string()
}

#[test]
fn every_rule_of_an_exchange_names_its_field() {
    type Change = fn(&mut OracleExchange);
    let cases: [(&str, Change); 10] = [
        ("`token_count`: must be a positive integer", |e| {
            e.token_count = 0
        }),
        ("`tool_call_id`: is required where role is `tool`", |e| {
            (e.role, e.tool_calls) = (serde_json::from_str("\"tool\"").unwrap(), None);
        }),
        ("`tool_call_id`: is for the role `tool` only", |e| {
            e.tool_call_id = Some("call_1".to_owned());
        }),
        ("`content`: cannot be empty for the role `assistant`", |e| {
            (e.content, e.tool_calls) = ("  ".to_owned(), None);
        }),
        ("`content`: cannot be empty for the role `user`", |e| {
            e.role = serde_json::from_str("\"user\"").unwrap();
            (e.content, e.tool_calls) = (String::new(), None);
        }),
        ("`tool_calls`: are for the role `assistant` only", |e| {
            e.role = serde_json::from_str("\"user\"").unwrap();
        }),
        (
            "`tool_calls[0].name`: has 1 to 128 printable characters",
            |e| {
                e.tool_calls.as_mut().unwrap()[0].name.clear();
            },
        ),
        (
            "`tool_calls[1].id`: must differ from those before it",
            |e| {
                let calls = e.tool_calls.as_mut().unwrap();
                calls.push(calls[0].clone());
            },
        ),
        ("`tool_calls[0].ending`: does not go with the status", |e| {
            e.tool_calls.as_mut().unwrap()[0].ending = Some(Ending::Timeout);
        }),
        (
            "`tool_calls[0].status`: must be updated after execution: \
             there is a result, and it is `pending`",
            |e| e.tool_calls.as_mut().unwrap()[0].status = ToolCallStatus::Pending,
        ),
    ];
    for (rule, change) in cases {
        assert_eq!(broken(change), rule);
    }
}

#[test]
fn an_assistant_that_only_wants_tools_may_say_nothing() {
    let mut exchange = example().remove(1);
    exchange.content.clear();
    exchange.check().unwrap();
}

#[test]
fn a_call_starts_as_pending_and_its_arguments_are_an_object() {
    for (sent, kept) in [
        (json!({"query": "x"}), json!({"query": "x"})),
        (Value::Null, json!({})),
        (
            json!("{\"query\": "),
            json!({"invalid_arguments": "{\"query\": "}),
        ),
    ] {
        let record = ToolCallRecord::pending(&ToolCall {
            id: "call_1".to_owned(),
            name: "code_search".to_owned(),
            arguments: sent,
        });
        assert_eq!(record.status, ToolCallStatus::Pending);
        assert_eq!(Value::Object(record.arguments), kept);
        assert_eq!(
            (record.result, record.duration_ms, record.ending),
            (None, None, None)
        );
    }
}

fn rule<T: std::fmt::Debug>(outcome: Result<T, ConversationError>) -> Invalid {
    match outcome.unwrap_err() {
        ConversationError::Invalid(invalid) => invalid,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn rules_are_enforced_on_write_and_nothing_of_what_breaks_one_is_stored() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let begun = conversations.begin_query(&alice(), question(" ")).await;
    assert_eq!(rule(begun.map(|_| ())).field, "content");
    assert_eq!(disk.number("select count(*) from oracle_contexts").await, 0);

    let query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    assert_eq!(rule(query.append(1, says("")).await).field, "content");
    assert_eq!(
        rule(query.append(1, asks(&["a", "a"])).await).field,
        "tool_calls[1].id"
    );
    let empty = NewMessage::User {
        content: "\n".to_owned(),
    };
    assert_eq!(rule(query.append(1, empty).await).field, "content");
    assert_eq!(disk.number("select count(*) from exchanges").await, 1);
    assert_eq!(disk.number("select count(*) from tool_calls").await, 0);
}

#[tokio::test]
async fn only_a_defined_tool_can_be_started_and_only_what_was_started_can_succeed() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    let unknown = ToolCall {
        name: "rm_rf".to_owned(),
        ..call("b")
    };
    let said = NewMessage::Assistant {
        content: String::new(),
        calls: vec![call("a"), unknown],
        opaque: None,
    };
    query.append(1, said).await.unwrap();
    let invalid = rule(query.tool_started("b", None).await);
    assert_eq!(
        invalid.to_string(),
        "`tool_calls.name`: must match a defined tool, and `rm_rf` does not"
    );
    let invalid = rule(
        query
            .tool_ended("b", outcome(Ending::Success, "gone"))
            .await,
    );
    assert_eq!(invalid.field, "tool_calls.ending");
    // What it was told instead is recorded.
    query
        .tool_ended("b", outcome(Ending::Error, "there is no tool `rm_rf`"))
        .await
        .unwrap();
    let invalid = rule(query.append(2, says("Done.")).await);
    assert_eq!(
        invalid.to_string(),
        "`tool_calls.status`: `a` is pending and must be updated after execution"
    );
    run(&query, "a", "found").await;
    query.answer(2, "Done.".to_owned(), None).await.unwrap();
}

#[tokio::test]
async fn a_budget_outside_its_bounds_is_refused() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    for token_budget in [3_999, 128_001] {
        let new = NewContext {
            token_budget,
            ..NewContext::named(None)
        };
        let invalid = rule(conversations.create(&alice(), new).await);
        assert_eq!(invalid.field, "token_budget");
    }
    let new = NewContext {
        token_budget: 4_000,
        ..NewContext::named(Some("small"))
    };
    assert_eq!(
        conversations
            .create(&alice(), new)
            .await
            .unwrap()
            .token_budget,
        4_000
    );
}

#[tokio::test]
async fn what_is_remembered_is_remembered_once_and_within_bounds() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let remember = |text: String| {
        let decision = KeyDecision::new(DecisionKind::Decision, &text);
        let conversations = conversations.clone();
        async move { conversations.remember(&alice(), None, decision).await }
    };
    assert!(
        remember("Use JWT with 24-hour expiry".to_owned())
            .await
            .unwrap()
            .1
    );
    assert!(
        !remember(" Use JWT with 24-hour expiry ".to_owned())
            .await
            .unwrap()
            .1
    );
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(context.key_decisions, ["Use JWT with 24-hour expiry"]);
    for text in [" ".to_owned(), "x".repeat(1_001)] {
        assert_eq!(rule(remember(text).await).field, "text");
    }
    for n in 1..200 {
        remember(format!("decision {n}")).await.unwrap();
    }
    let full = remember("one more".to_owned()).await.unwrap_err();
    assert_eq!(
        full.to_string(),
        "the conversation holds 200 key decisions already, and no more"
    );
    assert_eq!(
        conversations.decisions(&alice(), None).await.unwrap().len(),
        200
    );
}

#[tokio::test]
async fn mentions_are_kept_with_the_exchange_and_with_the_conversation() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let asked = "What does `issue_token` in src/auth/jwt.rs:41 do?";
    let query = conversations
        .begin_query(&alice(), question(asked))
        .await
        .unwrap();
    query.append(1, asks(&["a"])).await.unwrap();
    run(
        &query,
        "a",
        r#"{"path":"notes/auth.md","text":"AuthService issues it"}"#,
    )
    .await;
    query
        .answer(2, "It signs; see src/auth/jwt.rs.".to_owned(), None)
        .await
        .unwrap();
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(
        context.recent_exchanges[0].mentioned_files,
        ["src/auth/jwt.rs"]
    );
    assert_eq!(
        context.recent_exchanges[0].mentioned_symbols,
        ["issue_token"]
    );
    assert_eq!(
        context.recent_exchanges[2].mentioned_files,
        ["notes/auth.md"]
    );
    assert_eq!(
        context.mentioned_files.as_deref(),
        Some("src/auth/jwt.rs\nnotes/auth.md")
    );
    assert_eq!(
        context.mentioned_symbols.as_deref(),
        Some("AuthService\nissue_token")
    );
}

#[tokio::test]
async fn a_conversation_keeps_a_bounded_number_of_mentions() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    for round in 0..10 {
        let files: String = (0..30).map(|n| format!("src/f{round}_{n}.rs ")).collect();
        let query = conversations
            .begin_query(&alice(), question(&files))
            .await
            .unwrap();
        query.answer(1, "Yes.".to_owned(), None).await.unwrap();
    }
    let context = conversations.show(&alice(), None).await.unwrap();
    let files = context.mentioned_files.unwrap();
    assert_eq!(files.lines().count(), 200);
    assert!(files.contains("src/f9_0.rs") && !files.contains("src/f0_0.rs"));
}
