//! Conversations in a temporary folder, and what must hold for them at any time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dodona_agent::conversation::{
    Appended, ContextStatus, Conversations, Counter, Ending, MIGRATIONS, NewMessage, NewQuery,
    OracleContext, Owner, Query, ToolOutcome,
};
use dodona_proto::{Message, ProjectId, ToolCall, UserId};
use dodona_store::{Db, Durability, Store, StoreOptions};
use serde_json::json;
use tempfile::TempDir;

/// A database that outlives those who use it.
pub(crate) struct Disk {
    _folder: TempDir,
    _store: Store,
    pub(crate) db: Db,
}

impl Disk {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        let db = store.database("agent.db", Durability::Rebuildable);
        db.migrate(MIGRATIONS).await.unwrap();
        Self {
            _folder: folder,
            _store: store,
            db,
        }
    }

    /// As a process that just started sees it.
    pub(crate) fn open(&self) -> Conversations {
        Conversations::open(self.db.clone())
    }

    /// While no query runs, the rows of the conversations have what is derived from the exchanges.
    pub(crate) async fn assert_copies(&self) {
        let read = self.db.read(|tx| {
            let sql = "select id, recent_exchanges_json, coalesce(mentioned_files, ''),
                    (select json_group_array(json(e.json) order by e.position) from exchanges e
                     where e.context_id = c.id and e.position >= c.window_from
                         and e.rewound_at is null),
                    (select coalesce(group_concat(m.text, char(10) order by m.last_position desc, m.text), '')
                     from mentions m where m.context_id = c.id and m.kind = 'file')
                from oracle_contexts c";
            tx.query(sql, (), |row| {
                let text = |index| row.get::<String>(index);
                Ok((text(0)?, (text(1)?, text(2)?), (text(3)?, text(4)?)))
            })
        });
        for (id, copies, originals) in read.await.unwrap() {
            let parsed = |(exchanges, files): (String, String)| {
                let exchanges: serde_json::Value = serde_json::from_str(&exchanges).unwrap();
                (exchanges, files)
            };
            assert_eq!(parsed(copies), parsed(originals), "the row of {id}");
        }
    }

    /// Reads a number, such as a count.
    pub(crate) async fn number(&self, sql: &'static str) -> u64 {
        let read = self
            .db
            .read(move |tx| tx.query_one(sql, (), |row| row.get(0)));
        read.await.unwrap()
    }

    /// Changes something behind everybody's back.
    pub(crate) async fn execute(&self, sql: &'static str) {
        let write = self.db.write(move |tx| tx.execute(sql, ()));
        write.await.unwrap();
    }
}

pub(crate) fn owner(user: &str) -> Owner {
    Owner {
        user: UserId::new(user).unwrap(),
        project: ProjectId::new("shop").unwrap(),
    }
}

pub(crate) fn alice() -> Owner {
    owner("alice")
}

/// A model for which every byte is a token, and every message has four more.
pub(crate) fn bytes() -> Counter {
    times(1)
}

/// A model that needs more tokens for a byte.
pub(crate) fn times(factor: u64) -> Counter {
    Arc::new(move |message| {
        let bytes = match message {
            Message::User { content } | Message::Tool { content, .. } => content.len(),
            Message::Assistant {
                content,
                tool_calls,
                opaque,
            } => {
                let calls = tool_calls.iter();
                let calls: usize = calls.map(|call| call.arguments.to_string().len()).sum();
                content.len() + calls + opaque.as_ref().map_or(0, |value| value.to_string().len())
            }
        };
        4 + factor * bytes as u64
    })
}

pub(crate) fn question(text: &str) -> NewQuery {
    NewQuery {
        context: None,
        agent: None,
        question: text.to_owned(),
        model: "tiny".to_owned(),
        counter: bytes(),
        tools: BTreeSet::from(["code_search".to_owned(), "vault_read".to_owned()]),
        token_budget: None,
        call: None,
    }
}

pub(crate) fn in_context(context: &str, text: &str) -> NewQuery {
    NewQuery {
        context: Some(context.to_owned()),
        ..question(text)
    }
}

pub(crate) fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "code_search".to_owned(),
        arguments: json!({ "query": "login" }),
    }
}

pub(crate) fn asks(ids: &[&str]) -> NewMessage {
    NewMessage::Assistant {
        content: String::new(),
        calls: ids.iter().map(|id| call(id)).collect(),
        opaque: None,
    }
}

pub(crate) fn says(text: &str) -> NewMessage {
    NewMessage::Assistant {
        content: text.to_owned(),
        calls: Vec::new(),
        opaque: None,
    }
}

pub(crate) fn outcome(ending: Ending, result: &str) -> ToolOutcome {
    ToolOutcome {
        ending,
        result: result.to_owned(),
        duration: Duration::from_millis(7),
    }
}

/// Runs one call from its start to its end.
pub(crate) async fn run(query: &Query, id: &str, result: &str) -> Appended {
    query.tool_started(id, None).await.unwrap();
    let ended = query.tool_ended(id, outcome(Ending::Success, result));
    ended.await.unwrap()
}

/// A whole query in the default conversation: a search and an answer.
pub(crate) async fn ask(conversations: &Conversations, text: &str, answer: &str) -> Appended {
    let query = conversations
        .begin_query(&alice(), question(text))
        .await
        .unwrap();
    query.append(1, asks(&["call_1"])).await.unwrap();
    run(&query, "call_1", "found it").await;
    query.answer(2, answer.to_owned(), None).await.unwrap()
}

/// A crash: nothing of the query's handle gets to run.
pub(crate) fn crash(query: Query) {
    std::mem::forget(query);
}

/// What a strict provider insists on.
pub(crate) fn assert_strict(messages: &[Message]) {
    if let Some(first) = messages.first() {
        assert!(matches!(first, Message::User { .. }), "{messages:#?}");
    }
    let mut at = messages.iter().peekable();
    while let Some(message) = at.next() {
        match message {
            Message::User { content } => assert!(!content.is_empty()),
            Message::Tool { .. } => panic!("an answer that nobody asked for: {messages:#?}"),
            Message::Assistant {
                content,
                tool_calls,
                ..
            } => {
                assert!(!content.is_empty() || !tool_calls.is_empty());
                for call in tool_calls {
                    assert!(call.arguments.is_object());
                    let Some(Message::Tool { tool_call_id, .. }) = at.next() else {
                        panic!("`{}` is not answered: {messages:#?}", call.id);
                    };
                    assert_eq!(
                        *tool_call_id, call.id,
                        "answers are in the order of the calls"
                    );
                }
                let next = at.peek();
                let twice = matches!(next, Some(Message::Assistant { .. }));
                assert!(
                    !twice || !tool_calls.is_empty(),
                    "it spoke twice: {messages:#?}"
                );
            }
        }
    }
}

/// What holds for the state of a conversation at any time.
pub(crate) fn assert_in_step(context: &OracleContext) {
    let sum: u64 = context.recent_exchanges.iter().map(|e| e.token_count).sum();
    assert_eq!(
        context.tokens_used,
        context.summary_tokens + sum,
        "tokens_used is the sum of the window and its summary"
    );
    assert!(context.tokens_used * 10 <= context.token_budget * 11);
    for exchange in &context.recent_exchanges {
        exchange.check().unwrap();
    }
    assert!(context.status != ContextStatus::Suspended);
}
