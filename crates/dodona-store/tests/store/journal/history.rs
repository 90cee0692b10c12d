//! Events, read again.

use dodona_proto::{Event, Severity};
use dodona_store::journal::{EventFilter, Journal, ReadPosition, RecordedEvent};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::open;
use crate::support::Scratch;

fn event(kind: &str, user: &str, n: u64) -> Event {
    Event {
        id: Uuid::now_v7(),
        kind: kind.to_owned(),
        source: "probe".to_owned(),
        severity: Severity::Info,
        payload: json!({ "n": n }),
        timestamp: Timestamp::now(),
        user: Some(user.parse().unwrap()),
        project: n.is_multiple_of(2).then(|| "even".parse().unwrap()),
        call: None,
        causes: Vec::new(),
    }
}

async fn publish(journal: &Journal, events: impl IntoIterator<Item = Event>) {
    for event in events {
        journal.publish(event).await.unwrap();
    }
    journal.flush().await.unwrap();
}

fn alice() -> EventFilter {
    EventFilter::of("alice".parse().unwrap())
}

fn number(event: &RecordedEvent) -> u64 {
    event.to_event().unwrap().payload["n"].as_u64().unwrap()
}

/// All pages, forwards or backwards, as the numbers they carry.
async fn all(journal: &Journal, filter: &EventFilter, mut place: ReadPosition) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let page = journal.events_from(filter.clone(), place).await.unwrap();
        let Some(last) = page.last() else {
            return numbers;
        };
        place = match place {
            ReadPosition::Beginning | ReadPosition::After(_) => ReadPosition::After(last.position),
            ReadPosition::End | ReadPosition::Before(_) => ReadPosition::Before(last.position),
        };
        numbers.extend(page.iter().map(number));
    }
}

#[tokio::test]
async fn pages_have_every_event_of_a_user_once_and_in_order() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    publish(
        &journal,
        (0..5_000).map(|n| event("custom.tick", "alice", n)),
    )
    .await;
    publish(&journal, [event("custom.tick", "bob", 9)]).await;
    let forwards = all(&journal, &alice(), ReadPosition::Beginning).await;
    assert_eq!(forwards, (0..5_000).collect::<Vec<_>>());
    let mut backwards = all(&journal, &alice(), ReadPosition::End).await;
    backwards.reverse();
    assert_eq!(backwards, forwards);
}

#[tokio::test]
async fn a_filter_chooses_by_type_project_and_time() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let day = |n: u64| {
        let kind = ["tool.call.success", "tool.call.failure", "tool.call"][n as usize % 3];
        let mut event = event(kind, "alice", n);
        event.timestamp -= SignedDuration::from_hours(24 * (10 - n as i64));
        event
    };
    publish(&journal, (0..10).map(day)).await;
    let mut filter = alice();
    filter.kinds = vec!["tool.call.failure".to_owned(), "tool.call".to_owned()];
    assert_eq!(
        all(&journal, &filter, ReadPosition::Beginning).await,
        [1, 2, 4, 5, 7, 8]
    );
    filter.project = Some("even".parse().unwrap());
    assert_eq!(
        all(&journal, &filter, ReadPosition::Beginning).await,
        [2, 4, 8]
    );
    filter.since = Some(Timestamp::now() - SignedDuration::from_hours(24 * 6 + 12));
    assert_eq!(
        all(&journal, &filter, ReadPosition::Beginning).await,
        [4, 8]
    );
    filter.until = Some(Timestamp::now() - SignedDuration::from_hours(24 * 4));
    assert_eq!(all(&journal, &filter, ReadPosition::Beginning).await, [4]);
    assert_eq!(all(&journal, &filter, ReadPosition::End).await, [4]);
    filter.since = Some(Timestamp::now());
    filter.until = None;
    assert_eq!(
        all(&journal, &filter, ReadPosition::Beginning).await,
        [0_u64; 0]
    );
}

#[tokio::test]
async fn a_page_is_bounded_in_bytes_and_nothing_is_left_out_for_it() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let large = |n: u64| {
        let mut event = event("custom.large", "alice", n);
        event.payload["text"] = json!("x".repeat(1 << 20));
        event
    };
    publish(&journal, (0..9).map(large)).await;
    let first = journal
        .events_from(alice(), ReadPosition::Beginning)
        .await
        .unwrap();
    assert!((1..=5).contains(&first.len()), "{}", first.len());
    let everything = all(&journal, &alice(), ReadPosition::Beginning).await;
    assert_eq!(everything, (0..9).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_newest_of_a_type_are_found_among_many_others() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let mut many: Vec<Event> = (0..40)
        .map(|n| event("tool.call.success", "alice", n))
        .collect();
    for (kind, user, n) in [
        ("custom.ping", "alice", 50),
        ("customs", "alice", 51),
        ("custom.ping.late", "alice", 52),
        ("custom.ping", "bob", 53),
        ("custom", "alice", 54),
        ("custom.pings", "alice", 55),
    ] {
        many.push(event(kind, user, n));
    }
    publish(&journal, many).await;
    let numbers = async |below: &str, limit: u32| {
        let recent = journal.recent_of(alice(), below, limit).await.unwrap();
        let numbers: Vec<u64> = recent.events.iter().map(number).collect();
        (numbers, recent.more)
    };
    assert_eq!(numbers("custom", 10).await, (vec![55, 54, 52, 50], false));
    assert_eq!(numbers("custom.ping", 10).await, (vec![52, 50], false));
    assert_eq!(numbers("custom", 3).await, (vec![55, 54, 52], true));
    assert_eq!(numbers("", 3).await, (vec![55, 54, 52], true));
    let filter = EventFilter {
        project: Some("even".parse().unwrap()),
        ..alice()
    };
    let even = journal.recent_of(filter, "custom", 10).await.unwrap();
    let even: Vec<u64> = even.events.iter().map(number).collect();
    assert_eq!(even, [54, 52, 50]);
}

#[tokio::test]
async fn what_led_to_an_event_is_kept_with_it() {
    let scratch = Scratch::new();
    let journal = open(&scratch).await;
    let causes = vec!["custom.ping".to_owned(), "custom.pong".to_owned()];
    let caused = Event {
        causes: causes.clone(),
        ..event("custom.ping", "alice", 2)
    };
    publish(&journal, [event("custom.ping", "alice", 1), caused]).await;
    let recent = journal.recent_of(alice(), "custom", 10).await.unwrap();
    let kept: Vec<_> = recent
        .events
        .into_iter()
        .map(|event| event.causes)
        .collect();
    assert_eq!(kept, [causes, Vec::new()]);
}
