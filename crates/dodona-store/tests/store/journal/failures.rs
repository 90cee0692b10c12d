//! A database that does not take what the journal has for it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{CallError, DoneStatus, ErrorCode, ItemBody};
use dodona_store::DbError;
use dodona_store::journal::JournalError;
use serde_json::json;

use super::{Tape, assert_whole, behind, data, head, open, path, rest, stored};
use crate::support::Scratch;

#[tokio::test]
async fn a_stream_that_loses_an_item_fails_and_ends_when_the_database_works_again() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let (lost, other) = (Tape::begin(&journal).await, Tape::begin(&journal).await);
    lost.send(&[], data(json!({"n": 1}))).await;
    lost.send(&[1], data(json!({"n": 2}))).await;
    other.send(&[], data(json!({"n": 1}))).await;
    journal.flush().await.unwrap();
    let mut reader = lost.writer.reader(0);
    assert_eq!(reader.next().await.unwrap().unwrap().len(), 2);

    let lock = behind(&scratch);
    lock.execute_batch("begin immediate").unwrap();
    lost.send(&[1], data(json!({"n": 3}))).await;
    lost.writer.failed().await;
    // Writer and reader are told, in words a client may see.
    let refused = lost
        .writer
        .reserve(lost.call(&[1]), &path(&[1]), data(json!({})))
        .await;
    let refused = CallError::from(refused.map(drop).unwrap_err());
    assert_eq!(refused.code, ErrorCode::Storage);
    assert!(matches!(
        reader.next().await.unwrap_err(),
        JournalError::StreamFailed
    ));
    // Nothing begins meanwhile; whoever tries learns why.
    let (_, begun) = journal.begin_stream(head()).await.unwrap();
    let busy = begun.committed().await.unwrap_err();
    assert!(
        matches!(&busy, JournalError::Database(DbError::Busy { .. })),
        "{busy:?}"
    );
    assert!(busy.source().is_some());
    // Its calls end, as the hub sees to; that cannot be stored either.
    lost.end(&[1], DoneStatus::Cancelled);
    lost.end(&[], DoneStatus::Failed);
    journal.flush().await.unwrap_err();

    lock.execute_batch("rollback").unwrap();
    // Nobody writes anything: the terminals come by themselves.
    let ended = async {
        loop {
            let (_, end) = journal.head(lost.id()).await.unwrap().unwrap();
            match end {
                Some(end) => break end,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let end = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert_eq!(end.unwrap().status, DoneStatus::Failed);
    let items = stored(&journal, lost.id()).await;
    assert_whole(&items);
    // The item that was lost is not there, and no number is missing.
    assert_eq!(items.len(), 4);
    for item in &items[2..] {
        let reason = Some("failed to store an item of the stream".to_owned());
        assert_eq!(
            item.body,
            ItemBody::Done {
                status: DoneStatus::Failed,
                reason
            }
        );
    }
    // The other had nothing to store in that time and goes on.
    other.send(&[], data(json!({"n": 2}))).await;
    other.end(&[], DoneStatus::Complete);
    let items = rest(other.writer.reader(0)).await;
    assert_eq!(items.len(), 3);
}

#[tokio::test]
async fn a_stream_that_lost_everything_still_ends_and_not_as_if_complete() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let tape = Tape::begin(&journal).await;
    let lock = behind(&scratch);
    lock.execute_batch("begin immediate").unwrap();
    tape.send(&[1, 1], data(json!({}))).await;
    tape.end(&[1, 1], DoneStatus::Complete);
    tape.end(&[1], DoneStatus::Complete);
    tape.end(&[], DoneStatus::Complete);
    for _ in 0..3 {
        journal.flush().await.unwrap_err();
    }
    lock.execute_batch("rollback").unwrap();
    journal.flush().await.unwrap();
    // Calls of which nothing is stored need no end.
    let items = stored(&journal, tape.id()).await;
    assert_whole(&items);
    assert_eq!(items.len(), 1);
    let (_, end) = journal.head(tape.id()).await.unwrap().unwrap();
    // Not complete: what it said is lost.
    assert_eq!(end.unwrap().status, DoneStatus::Failed);
}

#[tokio::test]
async fn a_stream_that_never_saw_its_database_again_is_closed_by_the_next_start() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let tape = Tape::begin(&journal).await;
    tape.send(&[], data(json!({"n": 1}))).await;
    journal.flush().await.unwrap();
    let lock = behind(&scratch);
    lock.execute_batch("begin immediate").unwrap();
    tape.send(&[], data(json!({"n": 2}))).await;
    tape.end(&[], DoneStatus::Complete);
    journal.flush().await.unwrap_err();
    let scratch = scratch.restart().await;
    drop(lock);
    let journal = open(&scratch).await;
    assert_eq!(journal.recovered().streams, 1);
    let items = stored(&journal, tape.id()).await;
    assert_whole(&items);
    assert_eq!(items.len(), 2);
}

/// Polls a future once and drops it.
async fn glimpse<T>(work: impl Future<Output = T>) {
    let mut work = Box::pin(work);
    let once = std::future::poll_fn(|cx| std::task::Poll::Ready(work.as_mut().poll(cx).is_ready()));
    assert!(!once.await, "it should have had to wait");
}

#[tokio::test]
async fn a_stream_may_end_before_its_beginning_is_stored() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let tape = Tape::begun_unseen(&journal).await;
    tape.send(&[], data(json!({"n": 1}))).await;
    tape.end(&[], DoneStatus::Cancelled);
    journal.flush().await.unwrap();
    let items = stored(&journal, tape.id()).await;
    assert_whole(&items);
    assert_eq!(items.len(), 2);
    let (_, end) = journal.head(tape.id()).await.unwrap().unwrap();
    assert_eq!(end.unwrap().status, DoneStatus::Cancelled);
    // One that could not even begin leaves nothing behind.
    let lock = behind(&scratch);
    lock.execute_batch("begin immediate").unwrap();
    let never = Tape::begun_unseen(&journal).await;
    never.end(&[], DoneStatus::Cancelled);
    journal.flush().await.unwrap_err();
    lock.execute_batch("rollback").unwrap();
    journal.flush().await.unwrap();
    assert!(journal.head(never.id()).await.unwrap().is_none());
    let orphans: i64 = behind(&scratch)
        .query_row(
            "select count(*) from items where stream_no not in (select no from streams)",
            (),
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(orphans, 0);
}

#[tokio::test]
async fn the_end_of_a_call_is_written_though_nobody_waits_for_it() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let (first, second) = (super::call_head(json!({})), super::call_head(json!({})));
    for head in [&first, &second] {
        journal.begin_call(head.clone()).await.unwrap();
    }
    glimpse(journal.end_call(first.call, DoneStatus::Complete, None)).await;
    journal.end_dropped_call(second.call);
    journal.flush().await.unwrap();
    let calls = journal.recent_calls(10).await.unwrap();
    let statuses: Vec<_> = calls
        .iter()
        .map(|call| call.end.as_ref().unwrap().status)
        .collect();
    assert_eq!(statuses, [DoneStatus::Complete, DoneStatus::Cancelled]);
}

#[tokio::test]
async fn an_entry_that_is_too_large_is_refused_and_the_stream_goes_on() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let tape = Tape::begin(&journal).await;
    let big = data(json!("x".repeat(5 << 20)));
    let refused = tape
        .writer
        .reserve(tape.call(&[]), &path(&[]), big)
        .await
        .map(drop);
    assert!(matches!(refused, Err(JournalError::TooLarge { limit, .. }) if limit == 4 << 20));
    tape.send(&[], data(json!("small"))).await;
    tape.end(&[], DoneStatus::Complete);
    assert_eq!(rest(tape.writer.reader(0)).await.len(), 2);
}

#[tokio::test]
async fn a_place_beyond_every_number_is_only_the_end() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let tape = Tape::begin(&journal).await;
    tape.end(&[], DoneStatus::Complete);
    journal.flush().await.unwrap();
    for after in [1, 2, u64::MAX - 1, u64::MAX] {
        assert!(
            rest(journal.reader(tape.id(), after).await.unwrap().unwrap())
                .await
                .is_empty()
        );
        assert!(journal.page(tape.id(), after, 10).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn writers_wait_for_the_database_instead_of_filling_memory() {
    let scratch = Scratch::new();
    let journal = Arc::new(open(&scratch).await);
    let tape = Arc::new(Tape::begin(&journal).await);
    let (mut plug, hold) = crate::support::plug();
    let db = scratch.db("journal.db");
    let held = crate::support::queue(&db, move |_| {
        hold();
        Ok(())
    })
    .await;
    plug.started().await;
    let flood = tokio::spawn({
        let tape = Arc::clone(&tape);
        async move {
            for _ in 0..100 {
                tape.send(&[], data(json!("x".repeat(1 << 19)))).await;
            }
        }
    });
    // Every turn the writer takes ends at the bound; no turn gets further.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
        assert!(journal.backlog() <= 16 << 20);
    }
    assert!(!flood.is_finished());
    plug.release();
    held.await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_secs(60), flood)
        .await
        .unwrap()
        .unwrap();
    journal.flush().await.unwrap();
    assert_eq!(journal.backlog(), 0);
}
