//! Reading a stream: late, slowly, twice, again, never.

use std::time::Duration;

use dodona_hub::{HubConfig, PluginHub, Reader, Request, UnreadPolicy};
use dodona_proto::{DoneStatus, HubStreamItem, StreamId};
use dodona_store::journal::JournalOptions;
use serde_json::json;

use crate::support::{Rig, alice, check, data, object, soon, spec, streaming, until};

/// Everything a reader has still to come, with a pause after each step.
async fn rest(mut reader: Reader, pause: Duration) -> Vec<HubStreamItem> {
    let mut items = Vec::new();
    while let Some(some) = soon(reader.next()).await.unwrap() {
        items.extend(some.iter().map(|item| item.to_item().unwrap()));
        tokio::time::sleep(pause).await;
    }
    items
}

async fn attach(hub: &PluginHub, stream: StreamId, after: u64) -> Reader {
    soon(hub.attach(&alice(), stream, after)).await.unwrap()
}

/// A ring that holds next to nothing, so that readers need the database.
fn small_ring() -> HubConfig {
    HubConfig {
        journal: JournalOptions {
            ring_items: 4,
            ..JournalOptions::default()
        },
        ..HubConfig::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_different_speed_see_the_same_items() {
    let rig = Rig::with(small_ring(), Vec::new()).await;
    let stream = rig.open("echo.count", json!({"to": 2_000})).await;
    let id = stream.stream();
    let slow = tokio::spawn(rest(
        attach(&rig.hub, id, 0).await,
        Duration::from_millis(10),
    ));
    let fast = tokio::spawn(rest(attach(&rig.hub, id, 0).await, Duration::ZERO));
    let own = soon(stream.collect()).await.unwrap();
    assert_eq!(check(&own).0, DoneStatus::Complete);
    assert_eq!(own.len(), 2_002);
    assert_eq!(soon(slow).await.unwrap(), own);
    assert_eq!(soon(fast).await.unwrap(), own);
    // Late ones too, from anywhere.
    assert_eq!(
        rest(attach(&rig.hub, id, 0).await, Duration::ZERO).await,
        own
    );
    for after in [1, 3, 1_000, 2_001, 2_002, 9_999] {
        let late = rest(attach(&rig.hub, id, after).await, Duration::ZERO).await;
        let from = usize::try_from(after).unwrap().min(own.len());
        assert_eq!(late, own[from..], "after {after}");
    }
}

/// What this process holds in memory, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn readers_that_never_read_cost_bounded_memory() {
    if !dodona_testkit::is_alone("readers::readers_that_never_read_cost_bounded_memory") {
        return;
    }
    let flood = streaming(spec("probe.flood"), |_, _, out| async move {
        for _ in 0..1_000 {
            out.send(object(json!({"much": "x".repeat(64 << 10)})))
                .await?;
        }
        Ok(())
    });
    let journal = JournalOptions {
        queue_bytes: 1 << 20,
        ..JournalOptions::default()
    };
    let config = HubConfig {
        journal,
        ..HubConfig::default()
    };
    let rig = Rig::probe_with(config, vec![flood]).await;
    let before = resident();
    let stream = rig.open("probe.flood", json!({})).await;
    let id = stream.stream();
    let mut unread = vec![stream.into_reader()];
    for _ in 0..50 {
        unread.push(attach(&rig.hub, id, 0).await);
    }
    // The call does not wait for them.
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    rig.hub.journal().flush().await.unwrap();
    assert_eq!(rig.hub.health().journal_backlog, 0);
    let grown = resident().saturating_sub(before);
    // 62 MB went through, and fifty readers might have kept them each. The queue holds 1 MB and
    // the ring less; the margin is for allocator and database.
    assert!(grown < 40 << 20, "{} MB", grown >> 20);
    // Nothing was lost for them.
    let mut last = unread.pop().unwrap();
    let mut count = 0;
    while let Some(items) = soon(last.next()).await.unwrap() {
        count += items.len();
    }
    assert_eq!(count, 1_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_resumed_across_a_restart_without_hole_or_repetition() {
    let rig = Rig::with(small_ring(), Vec::new()).await;
    let finished = rig.open("echo.count", json!({"to": 50})).await;
    let done = finished.stream();
    let all = soon(finished.collect()).await.unwrap();
    let mut running = rig
        .open("echo.count", json!({"to": 1_000_000, "delay_ms": 1}))
        .await;
    let id = running.stream();
    let mut seen = Vec::new();
    while seen.len() < 30 {
        let some = soon(running.next()).await.unwrap().unwrap();
        seen.extend(some.iter().map(|item| item.to_item().unwrap()));
    }
    let reader = running.into_reader();
    soon(rig.hub.stop(Duration::ZERO)).await;
    drop(reader);
    let folder = rig.stop().await;
    let rig = Rig::in_folder(folder, small_ring(), Vec::new()).await;
    // It was stopped in order, so there was nothing to recover.
    assert_eq!(rig.hub.health().recovered.streams, 0);
    let after = seen.last().unwrap().seq;
    seen.extend(rest(attach(&rig.hub, id, after).await, Duration::ZERO).await);
    let (status, reason) = check(&seen);
    assert_eq!(
        (status, reason.as_deref()),
        (DoneStatus::Cancelled, Some("the server is stopping"))
    );
    assert_eq!(
        rest(attach(&rig.hub, id, 0).await, Duration::ZERO).await,
        seen
    );
    let ticks: Vec<u64> = data(&seen)
        .iter()
        .map(|tick| tick["n"].as_u64().unwrap())
        .collect();
    assert!(ticks.iter().zip(1..).all(|(tick, n)| *tick == n));
    assert_eq!(
        rest(attach(&rig.hub, done, 0).await, Duration::ZERO).await,
        all
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_stream_goes_on_while_somebody_reads_it_or_it_is_detached() {
    let config = HubConfig {
        stream_grace: Duration::from_millis(50),
        ..HubConfig::default()
    };
    let rig = Rig::with(config, Vec::new()).await;
    // Long against the grace time.
    let params = json!({"to": 40, "delay_ms": 10});
    let left = rig.open("echo.count", params.clone()).await.into_reader();
    let read = rig.open("echo.count", params.clone()).await.into_reader();
    let detached = rig.open("echo.count", params.clone()).await.detach();
    let mut request = Request::new(alice(), "echo.count", params);
    request.when_unread = UnreadPolicy::RunToEnd;
    let kept = soon(rig.hub.open(request)).await.unwrap().into_reader();
    let ids = [
        left.stream(),
        read.stream(),
        detached.stream(),
        kept.stream(),
    ];
    // One reader goes when another has come, again and again.
    let mut reader = read;
    drop((left, detached, kept));
    for _ in 0..5 {
        let next = attach(&rig.hub, ids[1], 0).await;
        drop(reader);
        reader = next;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let items = rest(reader, Duration::ZERO).await;
    assert_eq!(check(&items).0, DoneStatus::Complete);
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    rig.hub.journal().flush().await.unwrap();
    let mut ended = Vec::new();
    for id in ids {
        let items = rest(attach(&rig.hub, id, 0).await, Duration::ZERO).await;
        ended.push(check(&items).0);
    }
    assert_eq!(ended[0], DoneStatus::Cancelled);
    assert_eq!(ended[1..], [DoneStatus::Complete; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_dropped_loses_and_repeats_nothing() {
    let rig = Rig::new().await;
    let stream = rig
        .open("echo.count", json!({"to": 100, "delay_ms": 1}))
        .await;
    let mut reader = stream.into_reader();
    let mut items: Vec<HubStreamItem> = Vec::new();
    soon(async {
        loop {
            let step = tokio::time::timeout(Duration::from_micros(300), reader.next()).await;
            match step {
                Ok(Ok(Some(some))) => items.extend(some.iter().map(|item| item.to_item().unwrap())),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => panic!("{error}"),
                Err(_) => {}
            }
        }
    })
    .await;
    assert_eq!(check(&items).0, DoneStatus::Complete);
    assert_eq!(data(&items).len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_stream_gives_pages_until_the_end() {
    let rig = Rig::new().await;
    let stream = rig.open("echo.count", json!({"to": 25})).await;
    let id = stream.stream();
    let items = soon(stream.collect()).await.unwrap();
    let (mut after, mut paged) = (0, Vec::new());
    loop {
        let params = json!({"stream_id": id, "after": after, "limit": 10});
        let page = rig.call("hub.stream", params).await.unwrap();
        let some = page["items"].as_array().unwrap().clone();
        assert!(some.len() <= 10);
        assert_eq!(page["ended"], "complete");
        if some.is_empty() {
            break;
        }
        paged.extend(some);
        after = page["next_after"].as_u64().unwrap();
    }
    assert_eq!(serde_json::to_value(&items).unwrap(), json!(paged));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_nobody_waited_to_open_leaves_nothing_open() {
    let rig = Rig::new().await;
    for _ in 0..20 {
        let open = rig
            .hub
            .open(Request::new(alice(), "echo.slow", json!({"ms": 60_000})));
        let mut open = Box::pin(open);
        let _ = futures_util::poll!(open.as_mut());
    }
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    let folder = rig.stop().await;
    let rig = Rig::in_folder(folder, HubConfig::default(), Vec::new()).await;
    assert_eq!(rig.hub.health().recovered.streams, 0);
}
