//! A journal that takes nothing for a while: what is lost says so, the rest goes on.

use std::sync::mpsc;
use std::time::Duration;

use dodona_hub::{CancelTarget, HubConfig, Request};
use dodona_plugin::MethodSpec;
use dodona_proto::{DoneStatus, ErrorCode, HubStreamItem, StreamId};
use dodona_store::{Durability, Store, StoreOptions};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{Object, Rig, alice, check, data, endings, soon, spec, unary, until};

/// A hub that does not wait for a database which another process has locked.
fn impatient() -> HubConfig {
    let store = StoreOptions {
        busy_timeout: Duration::ZERO,
        ..StoreOptions::default()
    };
    HubConfig {
        store,
        ..HubConfig::default()
    }
}

/// Another process, as far as the database can tell, that holds the journal's lock.
struct Lock {
    release: mpsc::Sender<()>,
    held: JoinHandle<()>,
}

impl Lock {
    async fn take(rig: &Rig) -> Self {
        let other = Store::open(rig.path(), StoreOptions::default()).unwrap();
        let (release, released) = mpsc::channel();
        let (has_taken, taken) = oneshot::channel();
        let held = tokio::spawn(async move {
            let db = other.database("journal.db", Durability::Full);
            let hold = move |_: &dodona_store::Tx<'_>| {
                has_taken.send(()).unwrap();
                released.recv().unwrap();
                Ok(())
            };
            db.write(hold).await.unwrap();
            other.close().await;
        });
        soon(taken).await.unwrap();
        Self { release, held }
    }

    async fn release(self) {
        self.release.send(()).unwrap();
        soon(self.held).await.unwrap();
    }
}

/// A stream as the database has it, once it has ended.
async fn ended(rig: &Rig, stream: StreamId) -> Vec<HubStreamItem> {
    let journal = rig.hub.journal();
    soon(async {
        while journal.head(stream).await.unwrap().unwrap().1.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let page = journal.page(stream, 0, 10_000).await.unwrap();
    page.iter().map(|item| item.to_item().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_loses_an_item_is_stopped_and_ends_once_the_journal_works_again() {
    let mutating = MethodSpec {
        mutates: true,
        ..spec("probe.write")
    };
    let write = unary(mutating, |_, p: Object| async { Ok(p) });
    let rig = Rig::probe_with(impatient(), vec![write]).await;
    let quiet = rig.open("echo.slow", json!({"ms": 600_000})).await;
    let mut busy = rig
        .open("echo.count", json!({"to": 1_000_000, "delay_ms": 1}))
        .await;
    let mut seen: Vec<HubStreamItem> = Vec::new();
    while seen.len() < 10 {
        let items = soon(busy.next()).await.unwrap().unwrap();
        seen.extend(items.iter().map(|item| item.to_item().unwrap()));
    }
    let lock = Lock::take(&rig).await;
    // The reader is told, after what was stored.
    let error = soon(async {
        loop {
            match busy.next().await {
                Ok(Some(items)) => seen.extend(items.iter().map(|item| item.to_item().unwrap())),
                Ok(None) => panic!("it cannot have ended"),
                Err(error) => break error,
            }
        }
    })
    .await;
    assert_eq!(error.code, ErrorCode::Storage);
    assert!(error.retryable && error.hint_text().is_some());
    // The call is stopped, others run, reads work, and what must be on record is refused.
    until(|| rig.hub.calls(&alice()).len() == 1).await;
    rig.call("echo.say", json!({"text": "still here"}))
        .await
        .unwrap();
    let page = json!({"stream_id": busy.stream(), "limit": 1});
    assert_eq!(
        rig.call("hub.stream", page).await.unwrap()["ended"],
        json!(null)
    );
    let refused = rig.call("probe.write", json!({})).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Storage);
    let refused = rig
        .hub
        .open(Request::new(alice(), "echo.count", json!({"to": 1})))
        .await;
    assert_eq!(refused.map(drop).unwrap_err().code, ErrorCode::Storage);
    // Nothing of those is left.
    until(|| rig.hub.calls(&alice()).len() == 1).await;

    lock.release().await;
    let items = ended(&rig, busy.stream()).await;
    let reason = "failed to store an item of the stream".to_owned();
    assert_eq!(check(&items), (DoneStatus::Failed, Some(reason)));
    assert_eq!(items[..seen.len()], seen, "what was delivered stays");
    let counted: Vec<u64> = data(&items)
        .iter()
        .map(|tick| tick["n"].as_u64().unwrap())
        .collect();
    assert!(
        counted.iter().zip(1..).all(|(tick, n)| *tick == n),
        "and has no hole"
    );
    // The other never noticed.
    rig.call("probe.write", json!({})).await.unwrap();
    let target = CancelTarget::Stream(quiet.stream());
    rig.hub.cancel(&alice(), &target).await.unwrap();
    let items = soon(quiet.collect()).await.unwrap();
    assert_eq!(check(&items).0, DoneStatus::Cancelled);
    let folder = rig.stop().await;
    let rig = Rig::in_folder(folder, HubConfig::default(), Vec::new()).await;
    assert_eq!(rig.hub.health().recovered.streams, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_loses_an_item_ends_whole() {
    let rig = Rig::with(impatient(), Vec::new()).await;
    let mut stream = rig
        .open(
            "echo.nest",
            json!({"depth": 2, "width": 5, "delay_ms": 60_000}),
        )
        .await;
    let id = stream.stream();
    until(|| rig.hub.calls(&alice()).len() == 31).await;
    rig.hub.journal().flush().await.unwrap();
    let lock = Lock::take(&rig).await;
    // Their ends cannot be stored.
    let target = CancelTarget::Stream(id);
    rig.hub.cancel(&alice(), &target).await.unwrap();
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    // Not before the journal has given up on them.
    let lost = loop {
        match soon(stream.next()).await {
            Ok(items) => assert!(items.is_some(), "their ends were stored after all"),
            Err(error) => break error,
        }
    };
    assert_eq!(lost.code, ErrorCode::Storage);
    lock.release().await;
    let items = ended(&rig, id).await;
    assert_eq!(check(&items).0, DoneStatus::Failed);
    assert_eq!(endings(&items).len(), 31);
    drop(stream);
}
