//! What a process that ended left open is closed by the next one.

use dodona_proto::{DoneStatus, ErrorCode, ItemBody};
use dodona_store::journal::{Journal, JournalOptions, Recovered};
use proptest::prelude::*;
use serde_json::json;

use super::{Tape, assert_whole, call_head, data, open, stored};
use crate::support::Scratch;

/// A stream that is left as it is: which calls spoke, and which of those ended.
#[derive(Debug, Clone)]
struct Left {
    spoke: Vec<Vec<u32>>,
    ended: Vec<prop::sample::Index>,
}

fn left() -> impl Strategy<Value = Left> {
    let call = prop::collection::vec(1..4_u32, 0..5);
    let ended = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    (prop::collection::vec(call, 0..12), ended).prop_map(|(spoke, ended)| Left { spoke, ended })
}

async fn write(journal: &Journal, left: &Left) -> Tape {
    let tape = Tape::begin(journal).await;
    for (n, ordinals) in left.spoke.iter().enumerate() {
        tape.send(ordinals, data(json!({ "n": n }))).await;
    }
    // As the hub does: a call ends once, and after those below it.
    let mut ended: Vec<Vec<u32>> = Vec::new();
    for index in left.ended.iter().filter(|_| !left.spoke.is_empty()) {
        let call = index.get(&left.spoke);
        let below = left.spoke.iter().filter(|other| other.starts_with(call));
        let mut closing: Vec<&Vec<u32>> = below.collect();
        closing.sort_by_key(|ordinals| std::cmp::Reverse(ordinals.len()));
        closing.dedup();
        for ordinals in closing {
            if !ended.contains(ordinals) && !ordinals.is_empty() {
                tape.end(ordinals, DoneStatus::Complete);
                ended.push(ordinals.clone());
            }
        }
    }
    tape
}

async fn closes(all: Vec<Left>) {
    let mut scratch = Scratch::new();
    let journal = open(&scratch).await;
    let mut streams = Vec::new();
    for left in &all {
        let tape = write(&journal, left).await;
        journal.flush().await.unwrap();
        let before = journal.page(tape.id(), 0, 1000).await.unwrap();
        streams.push((tape.id(), before));
    }
    let count = streams.len() as u64;
    for expected in [count, 0, 0] {
        scratch = scratch.restart().await;
        let journal = open(&scratch).await;
        let (streams_closed, calls) = (journal.recovered().streams, journal.recovered().calls);
        assert_eq!((streams_closed, calls), (expected, 0));
        for (stream, before) in &streams {
            let items = stored(&journal, *stream).await;
            assert_whole(&items);
            let kept = journal
                .page(*stream, 0, u32::try_from(before.len()).unwrap())
                .await
                .unwrap();
            assert_eq!(kept, *before, "what was delivered stays");
            for item in &items[before.len()..] {
                let reason = Some("interrupted".to_owned());
                assert_eq!(
                    item.body,
                    ItemBody::Done {
                        status: DoneStatus::Failed,
                        reason
                    }
                );
            }
            let (_, end) = journal.head(*stream).await.unwrap().unwrap();
            assert_eq!(end.unwrap().reason.as_deref(), Some("interrupted"));
        }
    }
    scratch.store.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_open_call_is_closed_once_the_innermost_first(
        all in prop::collection::vec(left(), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(closes(all));
    }
}

#[tokio::test]
async fn a_stream_longer_than_a_page_is_closed_whole() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let tape = Tape::begin(&journal).await;
    tape.send(&[7], data(json!({"first": true}))).await;
    for n in 0..5_000 {
        tape.send(&[], data(json!({ "n": n }))).await;
    }
    journal.flush().await.unwrap();
    let scratch = scratch.restart().await;
    let journal = open(&scratch).await;
    let items = stored(&journal, tape.id()).await;
    assert_whole(&items);
    assert_eq!(items.len(), 5_003);
}

#[tokio::test]
async fn a_mutating_call_found_open_has_failed_and_one_that_ended_stays_as_it_was() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let (done, open_call) = (call_head(json!({"n": 1})), call_head(json!({"n": 2})));
    journal.begin_call(done.clone()).await.unwrap();
    journal.begin_call(open_call.clone()).await.unwrap();
    journal
        .end_call(done.call, DoneStatus::Complete, None)
        .await
        .unwrap();
    let before = journal.recent_calls(10).await.unwrap();
    assert_eq!(before[0].head.call, done.call);
    assert_eq!(before[0].head.params, json!({"n": 1}));
    assert_eq!(before[0].end.as_ref().unwrap().status, DoneStatus::Complete);
    assert_eq!(before[1].end, None);
    let scratch = scratch.restart().await;
    let journal = Journal::open(&scratch.store, JournalOptions::default())
        .await
        .unwrap();
    assert_eq!(
        journal.recovered(),
        Recovered {
            streams: 0,
            calls: 1
        }
    );
    let after = journal.recent_calls(10).await.unwrap();
    assert_eq!(after[0], before[0]);
    let end = after[1].end.as_ref().unwrap();
    assert_eq!(
        (end.status, end.code.as_ref()),
        (DoneStatus::Failed, Some(&ErrorCode::Interrupted))
    );
    // Only the newest, in order.
    assert_eq!(journal.recent_calls(1).await.unwrap(), after[1..]);
}
