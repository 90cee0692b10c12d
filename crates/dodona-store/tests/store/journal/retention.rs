//! What the journal forgets, and what it never does.

use std::time::Duration;

use dodona_proto::DoneStatus;
use dodona_store::journal::{Journal, Retention};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::{Tape, assert_whole, behind, call_head, data, open, stored};
use crate::support::Scratch;

/// Something in the journal: how many items of 100 bytes it has, how many days old it is, and
/// whether it is still open.
#[derive(Debug, Clone)]
struct Old {
    items: usize,
    days: i64,
    open: bool,
}

fn old() -> impl Strategy<Value = Old> {
    (0..30_usize, 0..60_i64, any::<bool>()).prop_map(|(items, days, open)| Old {
        items,
        days,
        open,
    })
}

const DAY: i64 = 24 * 3600 * 1000;

/// What is kept, by age alone.
fn days(days: u64) -> Retention {
    Retention {
        max_age: Duration::from_secs(days * 24 * 3600),
        max_bytes: u64::MAX,
    }
}

async fn write(scratch: &Scratch, journal: &Journal, old: &Old) -> Tape {
    let tape = Tape::begin(journal).await;
    for _ in 0..old.items {
        tape.send(&[], data(json!("x".repeat(100)))).await;
    }
    if !old.open {
        tape.end(&[], DoneStatus::Complete);
    }
    let call = call_head(json!({"age": old.days}));
    journal.begin_call(call.clone()).await.unwrap();
    if !old.open {
        journal
            .end_call(call.call, DoneStatus::Complete, None)
            .await
            .unwrap();
    }
    journal.flush().await.unwrap();
    let then = Timestamp::now().as_millisecond() - old.days * DAY;
    let file = behind(scratch);
    let id = tape.id().to_string();
    file.execute("update streams set began_at = ?1, ended_at = iif(ended_at is null, null, ?1) where stream_id = ?2", (then, &id)).unwrap();
    file.execute(
        "update calls set began_at = ?1 where call_id = ?2",
        (then, call.call.to_string()),
    )
    .unwrap();
    tape
}

fn bytes(scratch: &Scratch) -> i64 {
    let sql = "select (select coalesce(sum(length(body)), 0) from items) + (select coalesce(sum(length(params)), 0) from calls)";
    behind(scratch)
        .query_row(sql, (), |row| row.get(0))
        .unwrap()
}

async fn forgets(all: Vec<Old>, retention: Retention) {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let mut tapes = Vec::new();
    for old in &all {
        tapes.push((write(&scratch, &journal, old).await, old));
    }
    let pruned = journal.prune(retention).await.unwrap();
    let again = journal.prune(retention).await.unwrap();
    assert_eq!(
        again.streams + again.calls + again.records,
        0,
        "the first time was enough"
    );
    let (mut kept, mut gone) = (Vec::new(), Vec::new());
    for (tape, old) in &tapes {
        match journal.head(tape.id()).await.unwrap() {
            Some(_) => kept.push((tape, *old)),
            None => gone.push(*old),
        }
    }
    assert_eq!(pruned.streams as usize, gone.len());
    assert!(
        gone.iter().all(|old| !old.open),
        "an open stream was removed"
    );
    for (tape, old) in &kept {
        let page = journal.page(tape.id(), 0, 1000).await.unwrap();
        assert_eq!(page.len(), old.items + usize::from(!old.open), "kept whole");
        assert!(old.open || (old.days as u64) * 24 * 3600 <= retention.max_age.as_secs());
        // The oldest go first.
        assert!(old.open || gone.iter().all(|gone| gone.days >= old.days));
    }
    // The newest stream stays even where it is larger than the bound.
    let ended = kept.iter().filter(|(_, old)| !old.open).count();
    if ended > 1 && retention.max_bytes != u64::MAX {
        assert!(bytes(&scratch) as u64 <= retention.max_bytes);
    }
    for call in journal.recent_calls(1000).await.unwrap() {
        let age = call.head.params["age"].as_u64().unwrap();
        assert!(call.end.is_none() || age * 24 * 3600 <= retention.max_age.as_secs());
    }
    // What was open can go on and end.
    for (tape, old) in kept {
        if old.open {
            tape.send(&[], data(json!("later"))).await;
            tape.end(&[], DoneStatus::Complete);
            assert_whole(&stored(&journal, tape.id()).await);
        }
    }
    scratch.store.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn pruning_ends_and_keeps_what_is_open_young_and_small_enough(
        all in prop::collection::vec(old(), 0..8),
        keep_days in 0..60_u64,
        max_bytes in prop_oneof![Just(u64::MAX), 0..20_000_u64],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(forgets(all, Retention { max_bytes, ..days(keep_days) }));
    }
}

#[tokio::test]
async fn a_stream_longer_than_one_step_goes_whole() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    for items in [1_999, 2_000, 2_001, 5_000] {
        let tape = write(
            &scratch,
            &journal,
            &Old {
                items,
                days: 40,
                open: false,
            },
        )
        .await;
        let pruned = journal.prune(days(30)).await.unwrap();
        assert_eq!((pruned.streams, pruned.calls), (1, 1), "{items}");
        assert!(journal.head(tape.id()).await.unwrap().is_none());
        assert_eq!(bytes(&scratch), 0);
    }
}

#[tokio::test]
async fn times_in_the_future_do_not_keep_pruning_from_ending() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    for days in [-400, -1, 0] {
        write(
            &scratch,
            &journal,
            &Old {
                items: 20,
                days,
                open: false,
            },
        )
        .await;
    }
    let nothing = Retention {
        max_bytes: 0,
        ..days(30)
    };
    let pruned = tokio::time::timeout(Duration::from_secs(60), journal.prune(nothing))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(pruned.streams, 2, "the newest stream is kept");
}

/// What the bound counts, as the journal itself counts it.
async fn held(journal: &Journal) -> u64 {
    journal.held().await.unwrap().bytes
}

#[tokio::test]
async fn the_oldest_are_removed_only_down_to_the_bound() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let mut tapes = Vec::new();
    for days in (0..10).rev() {
        let old = Old {
            items: 100,
            days,
            open: false,
        };
        tapes.push(write(&scratch, &journal, &old).await);
    }
    let all = held(&journal).await;
    let bound = Retention {
        max_bytes: all - all / 20,
        ..days(365)
    };
    let pruned = journal.prune(bound).await.unwrap();
    assert_eq!(
        (pruned.streams, pruned.calls),
        (1, 0),
        "five percent too much cost more"
    );
    assert!(journal.head(tapes[0].id()).await.unwrap().is_none());
    for tape in &tapes[1..] {
        assert!(journal.head(tape.id()).await.unwrap().is_some());
    }
    assert!(held(&journal).await <= bound.max_bytes);
    // A burst: the newest stays although it is larger than the bound by itself.
    let burst = write(
        &scratch,
        &journal,
        &Old {
            items: 5_000,
            days: 0,
            open: false,
        },
    )
    .await;
    let pruned = journal.prune(bound).await.unwrap();
    assert_eq!(pruned.streams, 9);
    let page = journal.page(burst.id(), 0, 10_000).await.unwrap();
    assert_eq!(page.len(), 5_001, "the burst is whole");
}

/// As a start with a clock that is 400 days ahead would find it.
#[tokio::test]
async fn a_clock_that_is_far_ahead_removes_nothing_by_age() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let old = Old {
        items: 3,
        days: 400,
        open: false,
    };
    let tape = write(&scratch, &journal, &old).await;
    let file = behind(&scratch);
    let ago = Timestamp::now().as_millisecond() - 400 * DAY;
    file.execute("update clock set trusted_ms = ?1", (ago,))
        .unwrap();
    for _ in 0..3 {
        let pruned = journal.prune(days(90)).await.unwrap();
        assert_eq!(pruned.streams, 0);
    }
    assert!(journal.head(tape.id()).await.unwrap().is_some());
    assert!(journal.trusted_now() < Timestamp::now() - Duration::from_secs(399 * 86_400));
    // Ten days of uptime are ten steps of a day, with as many days that passed.
    file.execute("update clock set credit_ms = ?1", (10 * DAY,))
        .unwrap();
    for _ in 0..20 {
        journal.prune(days(90)).await.unwrap();
    }
    let trusted: i64 = file
        .query_row("select trusted_ms from clock", (), |row| row.get(0))
        .unwrap();
    assert!((trusted - (ago + 10 * DAY)).abs() < DAY, "{trusted}");
    // A clock that is a little ahead, as after a holiday, is believed.
    let ago = Timestamp::now().as_millisecond() - 6 * DAY;
    file.execute("update clock set trusted_ms = ?1", (ago,))
        .unwrap();
    assert_eq!(journal.prune(days(90)).await.unwrap().streams, 1);
}
