//! Secrets do not reach the file.

use dodona_proto::{DoneStatus, ErrorCode, Event, ItemBody, Severity};
use dodona_store::journal::{
    DecisionRecord, DecisionRecordKind, Journal, JournalOptions, Redactor, StreamHead,
};
use jiff::Timestamp;
use serde_json::json;

use super::{Tape, call_head, data, head, stored};
use crate::support::Scratch;

const KNOWN: &str = "correct-horse-battery";
const KEY: &str = "sk-abcdefghijklmnop1234";

#[tokio::test]
async fn what_is_written_has_no_secret_in_it_wherever_it_stood() {
    let scratch = Scratch::new();
    let redactor = Redactor::new([KNOWN.to_owned()]);
    let options = JournalOptions {
        redactor,
        ..JournalOptions::default()
    };
    let journal = Journal::open(&scratch.store, options).await.unwrap();
    let secret = json!({"a": [KNOWN, {"b": format!("use {KEY}!")}], "password": "hunter2"});
    let text = format!("{KNOWN} and {KEY}");

    let params = StreamHead {
        params: secret.clone(),
        ..head()
    };
    let (writer, _) = journal.begin_stream(params.clone()).await.unwrap();
    let tape = Tape { writer };
    tape.send(&[], data(secret.clone())).await;
    let delta = ItemBody::Data {
        content_type: "TextDelta".into(),
        data: json!({ "text": text }),
    };
    tape.send(&[], delta).await;
    tape.send(
        &[],
        ItemBody::Progress {
            message: text.clone(),
            percentage: None,
        },
    )
    .await;
    let error = ItemBody::Error {
        error: text.clone(),
        code: ErrorCode::Internal,
        recoverable: false,
        hint: Some(text.clone()),
    };
    tape.send(&[], error).await;
    tape.writer.end(
        tape.call(&[]),
        &super::path(&[]),
        DoneStatus::Failed,
        Some(text.clone()),
    );
    journal.begin_call(call_head(secret.clone())).await.unwrap();
    let event = Event {
        id: "00000000-0000-7000-8000-000000000000".parse().unwrap(),
        kind: "tool.call.pending".to_owned(),
        source: "hub".to_owned(),
        severity: Severity::Info,
        payload: secret.clone(),
        timestamp: Timestamp::now(),
        user: None,
        project: None,
        call: None,
        causes: Vec::new(),
    };
    let mut told = journal.events();
    journal.publish(event).await.unwrap();
    let decided = DecisionRecord {
        kind: DecisionRecordKind::Trigger,
        name: "on_tool_call".to_owned(),
        source: "rules".to_owned(),
        call: None,
        user: None,
        project: None,
        at: Timestamp::now(),
        body: secret,
    };
    journal.note(decided).await.unwrap();
    journal.flush().await.unwrap();

    let items = stored(&journal, tape.id()).await;
    let shown = serde_json::to_string(&items).unwrap();
    assert_eq!(
        shown.matches("[redacted]").count(),
        3 + 2 + 2 + 4 + 2,
        "{shown}"
    );
    let event = told.recv().await.unwrap();
    assert_eq!(event.payload["password"], "[redacted]");
    scratch.store.close().await;
    let file = std::fs::read(scratch.path("journal.db")).unwrap();
    let file = String::from_utf8_lossy(&file);
    for secret in [KNOWN, KEY, "hunter2"] {
        assert!(!file.contains(secret), "{secret} is in the file");
    }
}
