//! The bus: journaled first, told in order, bounded, and honest about what was missed.

use std::sync::Arc;

use dodona_hub::HubConfig;
use dodona_plugin::activation::EventDraft;
use dodona_plugin::{
    Behalf, CallError, Contribution, ErrorCode, EventBus, Lagged, Plugin, Subscription,
};
use dodona_proto::{Event, Severity};
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::{Object, Rig, plugin, soon, spec, unary};

fn draft(kind: &str, n: u64) -> EventDraft<'_> {
    EventDraft {
        kind,
        source: "probe",
        severity: Severity::Info,
        payload: json!({ "n": n }),
        behalf: None,
        id: None,
    }
}

async fn next(place: &mut Box<dyn Subscription>) -> Result<Arc<Event>, Lagged> {
    soon(place.next()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_the_order_in_which_they_are_stored() {
    let rig = Rig::new().await;
    let mut everything = rig.hub.bus().subscribe("");
    let publish = |from: u64| {
        let bus = Arc::clone(rig.hub.bus());
        async move {
            for n in from..from + 100 {
                bus.publish(draft("custom.tick", n)).await.unwrap();
            }
        }
    };
    tokio::join!(publish(0), publish(1000), publish(2000));
    let mut told = Vec::new();
    for _ in 0..300 {
        told.push(next(&mut everything).await.unwrap().as_ref().clone());
    }
    let stored = rig
        .hub
        .journal()
        .recent_events("custom", 1000)
        .await
        .unwrap();
    let ids = |events: &[Event]| events.iter().map(|event| event.id).collect::<Vec<_>>();
    assert_eq!(ids(&told), ids(&stored));
    for publisher in [0, 1000, 2000] {
        let own = told
            .iter()
            .map(|event| event.payload["n"].as_u64().unwrap());
        let own: Vec<u64> = own
            .filter(|n| (publisher..publisher + 100).contains(n))
            .collect();
        assert!(own.is_sorted() && own.len() == 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_is_whole_words() {
    let rig = Rig::new().await;
    let bus = rig.hub.bus();
    let mut tool = bus.subscribe("tool.call");
    for kind in [
        "tool.callback",
        "tool",
        "tool.call",
        "other",
        "tool.call.success",
        "tool.cal",
    ] {
        bus.publish(draft(kind, 0)).await.unwrap();
    }
    assert_eq!(next(&mut tool).await.unwrap().kind, "tool.call");
    assert_eq!(next(&mut tool).await.unwrap().kind, "tool.call.success");
    let stored = rig
        .hub
        .journal()
        .recent_events("tool.call", 10)
        .await
        .unwrap();
    let kinds: Vec<_> = stored.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["tool.call", "tool.call.success"]);
    let newest = rig.hub.journal().recent_events("", 2).await.unwrap();
    let kinds: Vec<_> = newest.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["tool.call.success", "tool.cal"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_in_the_journal_before_it_is_told() {
    let rig = Rig::new().await;
    let mut place = rig.hub.bus().subscribe("custom");
    for n in 0..50 {
        rig.hub
            .bus()
            .publish(draft("custom.tick", n))
            .await
            .unwrap();
        let told = next(&mut place).await.unwrap();
        let stored = rig.hub.journal().recent_events("custom", 1).await.unwrap();
        assert_eq!(stored[0], rounded(&told));
    }
}

/// As the journal keeps it: to the millisecond.
fn rounded(event: &Event) -> Event {
    let millis = event.timestamp.as_millisecond();
    let timestamp = jiff::Timestamp::from_millisecond(millis).unwrap();
    Event {
        timestamp,
        ..event.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_keep_up_is_told_how_much_was_missed() {
    let rig = Rig::new().await;
    let mut idle = rig.hub.bus().subscribe("");
    for n in 0..3_000 {
        rig.hub
            .bus()
            .publish(draft("custom.tick", n))
            .await
            .unwrap();
    }
    rig.hub.journal().flush().await.unwrap();
    let Err(Lagged(missed)) = next(&mut idle).await else {
        panic!("the lag should be seen")
    };
    assert!(missed > 0);
    let mut seen = 0;
    let first = next(&mut idle).await.unwrap().payload["n"]
        .as_u64()
        .unwrap();
    assert_eq!(first, missed, "the oldest are gone, and only they");
    seen += 1;
    while first + seen < 3_000 {
        assert_eq!(
            next(&mut idle).await.unwrap().payload["n"]
                .as_u64()
                .unwrap(),
            first + seen
        );
        seen += 1;
    }
    assert_eq!(missed + seen, 3_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_call_carries_who_and_where() {
    let publisher = plugin("probe", |ctx| {
        let bus: Arc<dyn EventBus> = Arc::clone(&ctx.system.event_bus);
        let publish = unary(spec("probe.publish"), move |ctx, _: Object| {
            let bus = Arc::clone(&bus);
            async move {
                bus.publish(EventDraft {
                    behalf: Some(Behalf::of(&ctx)),
                    id: None,
                    ..draft("custom.done", 1)
                })
                .await?;
                Ok(Object::new())
            }
        });
        Ok(Contribution::new().methods([publish]))
    });
    let rig = Rig::with(HubConfig::default(), vec![publisher]).await;
    let mut place = rig.hub.bus().subscribe("custom");
    rig.call("probe.publish", json!({})).await.unwrap();
    let event = next(&mut place).await.unwrap();
    assert_eq!(event.user.as_ref().unwrap().as_str(), "alice");
    assert_eq!(event.source, "probe");
    assert!(event.call.is_some());
}

/// A plugin that answers every event of one type with one of another, and says how that went.
fn answering(
    name: &'static str,
    heard: &'static str,
    said: &'static str,
    ends: mpsc::UnboundedSender<CallError>,
) -> Arc<dyn Plugin> {
    plugin(name, move |ctx| {
        let ends = ends.clone();
        let mut place = ctx.system.event_bus.subscribe(heard);
        tokio::spawn(async move {
            while let Some(Ok(event)) = place.next().await {
                let draft = EventDraft {
                    source: name,
                    ..draft(said, event.payload["n"].as_u64().unwrap_or(0) + 1)
                };
                if let Err(error) = ctx.system.event_bus.publish(draft).await {
                    let _ = ends.send(error);
                }
            }
        });
        Ok(Contribution::new())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_events_through_plugins_stops_at_eight_and_names_itself() {
    let (ends, mut ended) = mpsc::unbounded_channel();
    let plugins = vec![
        answering("ping", "custom.ping", "custom.pong", ends.clone()),
        answering("pong", "custom.pong", "custom.ping", ends),
    ];
    let rig = Rig::with(HubConfig::default(), plugins).await;
    rig.hub
        .bus()
        .publish(draft("custom.ping", 1))
        .await
        .unwrap();
    let error = soon(ended.recv()).await.unwrap();
    assert_eq!(error.code, ErrorCode::TooDeep);
    let chain = ["custom.ping", "custom.pong"].repeat(4).join(" → ");
    assert!(error.message.contains(&chain), "{}", error.message);
    rig.hub.journal().flush().await.unwrap();
    let told = rig
        .hub
        .journal()
        .recent_events("custom", 100)
        .await
        .unwrap();
    let numbers: Vec<_> = told
        .iter()
        .map(|event| event.payload["n"].clone())
        .collect();
    assert_eq!(json!(numbers), json!([1, 2, 3, 4, 5, 6, 7, 8]));
    assert_eq!(told[7].causes.len(), 7);
    assert!(ended.try_recv().is_err(), "it stopped once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_between_two_that_are_taken_is_caused_by_the_first() {
    let rig = Rig::new().await;
    let bus = Arc::clone(rig.hub.bus());
    let answered = tokio::spawn(async move {
        let mut place = bus.subscribe("custom.a");
        let mut others = bus.subscribe("custom.other");
        bus.publish(draft("custom.a", 1)).await.unwrap();
        let taken = next(&mut place).await.unwrap();
        bus.publish(draft("custom.other", 2)).await.unwrap();
        drop(place);
        // It is not busy with anything any more.
        bus.publish(draft("custom.other", 3)).await.unwrap();
        let elsewhere = tokio::spawn(async move {
            bus.publish_after(&taken, draft("custom.other", 4))
                .await
                .unwrap();
        });
        elsewhere.await.unwrap();
        let mut causes = Vec::new();
        for _ in 0..3 {
            causes.push(next(&mut others).await.unwrap().causes.clone());
        }
        causes
    });
    let causes = soon(answered).await.unwrap();
    assert_eq!(json!(causes), json!([["custom.a"], [], ["custom.a"]]));
}
