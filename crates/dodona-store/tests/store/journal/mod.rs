//! The journal, from outside.

mod failures;
mod history;
mod properties;
mod recovery;
mod redaction;
mod retention;
mod sharing;

use std::sync::Arc;

use dodona_proto::{CallId, DoneStatus, HubStreamItem, ItemBody, PluginPath, StreamId, Surface};
use dodona_store::journal::{
    CallHead, Journal, JournalOptions, StoredItem, StreamHead, StreamReader, StreamWriter,
};
use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::Scratch;

pub(crate) async fn open(scratch: &Scratch) -> Journal {
    Journal::open(&scratch.store, JournalOptions::default())
        .await
        .unwrap()
}

/// The journal's file, as another process would open it.
pub(crate) fn behind(scratch: &Scratch) -> Connection {
    Connection::open(scratch.path("journal.db")).unwrap()
}

pub(crate) fn head() -> StreamHead {
    StreamHead {
        stream: StreamId::random(),
        user: "alice".parse().unwrap(),
        project: None,
        surface: Surface::Internal,
        method: "echo.count".parse().unwrap(),
        params: json!({}),
        began: Timestamp::now(),
    }
}

pub(crate) fn call_head(params: Value) -> CallHead {
    CallHead {
        call: StreamId::random().root_call(),
        path: "vault".parse().unwrap(),
        method: "vault.write".parse().unwrap(),
        user: "alice".parse().unwrap(),
        project: Some("home".parse().unwrap()),
        params,
        began: Timestamp::now(),
    }
}

/// A stream and what a test does to it.
pub(crate) struct Tape {
    pub(crate) writer: StreamWriter,
}

impl Tape {
    pub(crate) async fn begin(journal: &Journal) -> Self {
        let (writer, begun) = journal.begin_stream(head()).await.unwrap();
        begun.committed().await.unwrap();
        Self { writer }
    }

    /// One whose beginning nobody waits for.
    pub(crate) async fn begun_unseen(journal: &Journal) -> Self {
        let (writer, _) = journal.begin_stream(head()).await.unwrap();
        Self { writer }
    }

    pub(crate) fn id(&self) -> StreamId {
        self.writer.stream()
    }

    /// The call with these ordinals.
    pub(crate) fn call(&self, ordinals: &[u32]) -> CallId {
        let root = self.id().root_call();
        ordinals
            .iter()
            .fold(root, |call, n| call.child(*n).unwrap())
    }

    pub(crate) async fn send(&self, ordinals: &[u32], body: ItemBody) {
        let (call, path) = (self.call(ordinals), path(ordinals));
        self.writer.reserve(call, &path, body).await.unwrap().send();
    }

    pub(crate) fn end(&self, ordinals: &[u32], status: DoneStatus) {
        self.writer
            .end(self.call(ordinals), &path(ordinals), status, None);
    }
}

pub(crate) fn path(ordinals: &[u32]) -> PluginPath {
    let names = vec!["echo"; ordinals.len() + 1];
    names.join(".").parse().unwrap()
}

pub(crate) fn data(value: Value) -> ItemBody {
    ItemBody::Data {
        content_type: "Tick".into(),
        data: value,
    }
}

/// Everything a reader has still to come.
pub(crate) async fn rest(mut reader: StreamReader) -> Vec<Arc<StoredItem>> {
    let mut all = Vec::new();
    while let Some(items) = reader.next().await.unwrap() {
        assert!(!items.is_empty());
        all.extend(items);
    }
    all
}

/// A stream as the database has it.
pub(crate) async fn stored(journal: &Journal, stream: StreamId) -> Vec<HubStreamItem> {
    let items = rest(journal.reader(stream, 0).await.unwrap().unwrap()).await;
    items.iter().map(|item| item.to_item().unwrap()).collect()
}

/// Numbers without a hole; each call ends once, after everything of it and below it.
#[track_caller]
pub(crate) fn assert_whole(items: &[HubStreamItem]) {
    let mut ended: Vec<CallId> = Vec::new();
    for (item, seq) in items.iter().zip(1..) {
        assert_eq!(item.seq, seq);
        let over = |call: &CallId| item.call_id.is_within(call);
        assert!(!ended.iter().any(over), "{item:?} comes too late");
        if matches!(item.body, ItemBody::Done { .. }) {
            ended.push(item.call_id);
        }
    }
    assert!(items.iter().all(|item| ended.contains(&item.call_id)));
    assert_eq!(
        ended.last().map(CallId::depth),
        Some(0),
        "the root ends last"
    );
}
