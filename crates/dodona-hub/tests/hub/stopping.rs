//! Stopping drains, with a deadline, and the next start finds everything in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dodona_hub::{HubConfig, Request};
use dodona_plugin::activation::Activating;
use dodona_plugin::{BoxFuture, Contribution, Plugin, PluginContext};
use dodona_proto::{DoneStatus, ErrorCode};
use serde_json::json;

use crate::support::{Rig, alice, check, soon, until};

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_run_may_finish_and_new_ones_are_refused() {
    let rig = Rig::new().await;
    let stream = rig
        .open("echo.count", json!({"to": 10, "delay_ms": 10}))
        .await;
    let hub = rig.hub.clone();
    let stopping = tokio::spawn(async move { hub.stop(Duration::from_secs(30)).await });
    until(|| rig.hub.health().stopping).await;
    let error = rig.call("echo.say", json!({"text": ""})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PluginNotActive);
    assert_eq!(error.message, "the server is stopping");
    let opened = rig
        .hub
        .open(Request::new(alice(), "echo.count", json!({"to": 1})))
        .await;
    assert_eq!(opened.map(drop).unwrap_err(), error);
    let items = soon(stream.collect()).await.unwrap();
    assert_eq!(check(&items).0, DoneStatus::Complete);
    soon(stopping).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_done_by_the_deadline_ends_with_a_terminal_that_is_stored() {
    let rig = Rig::new().await;
    let stream = rig
        .open(
            "echo.nest",
            json!({"depth": 2, "width": 3, "delay_ms": 60_000}),
        )
        .await;
    let id = stream.stream();
    until(|| rig.hub.calls(&alice()).len() == 13).await;
    let reader = stream.into_reader();
    soon(rig.hub.stop(Duration::from_millis(20))).await;
    drop(reader);
    assert_eq!(rig.hub.health().calls, 0);
    let folder = rig.stop().await;
    let rig = Rig::in_folder(folder, HubConfig::default(), Vec::new()).await;
    assert_eq!(
        rig.hub.health().recovered.streams,
        0,
        "it was over before the hub stopped"
    );
    let page = rig.hub.journal().page(id, 0, 1000).await.unwrap();
    let items: Vec<_> = page.iter().map(|item| item.to_item().unwrap()).collect();
    assert_eq!(
        check(&items),
        (
            DoneStatus::Cancelled,
            Some("the server is stopping".to_owned())
        )
    );
    // And all works again.
    rig.call("echo.say", json!({"text": "back"})).await.unwrap();
    for report in rig.hub.check().await {
        assert!(report.problems.is_empty(), "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_keeps_survives_a_restart() {
    let rig = Rig::new().await;
    for n in 1..=3 {
        rig.call("echo.say", json!({"text": ""})).await.unwrap();
        let counted = rig.call("echo.tally", json!({})).await.unwrap();
        assert_eq!(counted, json!({"count": n}));
    }
    let folder = rig.stop().await;
    let rig = Rig::in_folder(folder, HubConfig::default(), Vec::new()).await;
    rig.call("echo.say", json!({"text": ""})).await.unwrap();
    let stats = rig.call("echo.stats", json!({})).await.unwrap();
    assert_eq!(stats["calls"]["say"], 4);
    assert_eq!(stats["calls"]["tally"], 3);
}

/// A plugin that does not let go properly.
struct Clingy {
    name: &'static str,
    panics: bool,
    asked: Arc<AtomicBool>,
    refuses: bool,
}

impl Plugin for Clingy {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> &'static str {
        "0.0.1"
    }

    fn activate(&self, _: PluginContext) -> Activating<'_> {
        let refused = || dodona_plugin::ActivationError::Refused("no".to_owned());
        let outcome = if self.refuses {
            Err(refused())
        } else {
            Ok(Contribution::new())
        };
        Box::pin(std::future::ready(outcome))
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        self.asked.store(true, Ordering::Relaxed);
        if self.panics {
            panic!("in deactivate")
        } else {
            Box::pin(std::future::pending())
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_panics_or_hangs_does_not_keep_the_hub_from_stopping() {
    let plugin = |name, panics, refuses| {
        let asked = Arc::new(AtomicBool::new(false));
        let clingy = Clingy {
            name,
            panics,
            refuses,
            asked: Arc::clone(&asked),
        };
        (Arc::new(clingy) as Arc<dyn Plugin>, asked)
    };
    let (hangs, hung) = plugin("hangs", false, false);
    let (panics, panicked) = plugin("panics", true, false);
    let (failed, asked) = plugin("failed", true, true);
    let rig = Rig::with(HubConfig::default(), vec![hangs, panics, failed]).await;
    rig.call("echo.say", json!({"text": ""})).await.unwrap();
    let folder = rig.stop().await;
    assert!(hung.load(Ordering::Relaxed) && panicked.load(Ordering::Relaxed));
    assert!(
        !asked.load(Ordering::Relaxed),
        "what was never active is not deactivated"
    );
    // The others were let go of in order.
    let rig = Rig::in_folder(folder, HubConfig::default(), Vec::new()).await;
    let stats = rig.call("echo.stats", json!({})).await.unwrap();
    assert_eq!(stats["calls"]["say"], 1);
}
