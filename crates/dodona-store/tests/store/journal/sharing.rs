//! Entries that wait for others to share their commit.

use dodona_proto::{DoneStatus, ItemBody};
use serde_json::json;

use super::{Tape, data, open, path};
use crate::support::Scratch;

/// Sends an item that may wait for the next one.
async fn send_waiting(tape: &Tape, body: ItemBody) {
    let ready = tape.writer.reserve(tape.call(&[]), &path(&[]), body).await;
    ready.unwrap().with_next().send();
}

/// Lets the pump take what it was sent.
async fn let_it_take() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

// No time passes but while everybody waits.
#[tokio::test(start_paused = true)]
async fn items_that_can_wait_are_shown_with_what_follows() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let tape = Tape::begin(&journal).await;
    let mut reader = tape.writer.reader(0);
    for n in 0..3 {
        send_waiting(&tape, data(json!({ "n": n }))).await;
        let_it_take().await;
    }
    tape.end(&[1], DoneStatus::Complete);
    let_it_take().await;
    tape.end(&[], DoneStatus::Complete);
    assert_eq!(reader.next().await.unwrap().unwrap().len(), 5);
}

#[tokio::test]
async fn an_item_that_nothing_follows_is_shown_by_itself() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let tape = Tape::begin(&journal).await;
    let mut reader = tape.writer.reader(0);
    send_waiting(&tape, data(json!({ "n": 1 }))).await;
    assert_eq!(reader.next().await.unwrap().unwrap().len(), 1);
}
