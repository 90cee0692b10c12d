//! `events.recent` and `events.watch`: the events of the caller.

use std::sync::Arc;

use dodona_hub::events::EventsPlugin;
use dodona_hub::{CallStream, HubConfig, Request};
use dodona_plugin::activation::EventDraft;
use dodona_plugin::{Behalf, CallError, Contribution, EventBus, Plugin};
use dodona_proto::{DoneStatus, ErrorCode, ItemBody, Principal, Severity};
use serde_json::{Value, json};

use crate::support::{Object, Rig, plugin, soon, spec, unary, user};

/// A plugin whose method emits an event for whoever calls it.
fn emitter() -> Arc<dyn Plugin> {
    plugin("probe", |ctx| {
        let bus: Arc<dyn EventBus> = Arc::clone(&ctx.system.event_bus);
        let emit = unary(spec("probe.emit"), move |ctx, p: Object| {
            let bus = Arc::clone(&bus);
            async move {
                bus.publish(EventDraft {
                    kind: p["type"].as_str().unwrap_or_default(),
                    source: "probe",
                    severity: Severity::Info,
                    payload: p["payload"].clone(),
                    behalf: Some(Behalf::of(&ctx)),
                    id: None,
                })
                .await?;
                Ok(Object::new())
            }
        });
        Ok(Contribution::new().methods([emit]))
    })
}

async fn rig() -> Rig {
    let plugins = vec![emitter(), Arc::new(EventsPlugin) as Arc<dyn Plugin>];
    Rig::with(HubConfig::default(), plugins).await
}

async fn call(
    rig: &Rig,
    who: &Arc<Principal>,
    method: &str,
    params: Value,
) -> Result<Value, CallError> {
    soon(rig.hub.call(Request::new(Arc::clone(who), method, params))).await
}

fn kinds(recent: &Value) -> Vec<&str> {
    let events = recent["events"].as_array().unwrap().iter();
    events
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_events_are_listed_to_whom_they_belong() {
    let rig = rig().await;
    let carol = user("carol", &["probe:*", "events:read"]);
    let dave = user("dave", &["probe:*", "events:read"]);
    for n in 0..3 {
        let params = json!({ "type": format!("custom.n{n}"), "payload": { "n": n } });
        call(&rig, &carol, "probe.emit", params).await.unwrap();
    }
    let other = json!({ "type": "other.kind", "payload": null });
    call(&rig, &carol, "probe.emit", other).await.unwrap();
    let recent = call(&rig, &carol, "events.recent", json!({}))
        .await
        .unwrap();
    assert_eq!(kinds(&recent), ["custom.n2", "custom.n1", "custom.n0"]);
    assert_eq!(recent["events"][0]["payload"], json!({ "n": 2 }));
    assert_eq!(recent["more"], false);
    let one = json!({ "type": "custom.n1." });
    let recent = call(&rig, &carol, "events.recent", one).await.unwrap();
    assert_eq!(kinds(&recent), ["custom.n1"]);
    let every = json!({ "type": "", "limit": 2 });
    let recent = call(&rig, &carol, "events.recent", every).await.unwrap();
    assert_eq!(kinds(&recent), ["other.kind", "custom.n2"]);
    assert_eq!(recent["more"], true);
    let recent = call(&rig, &dave, "events.recent", json!({})).await.unwrap();
    assert!(kinds(&recent).is_empty(), "another's are nobody's business");
}

#[tokio::test(flavor = "multi_thread")]
async fn listing_events_needs_the_scope() {
    let rig = rig().await;
    let stranger = user("mallory", &["probe:*"]);
    let refused = call(&rig, &stranger, "events.recent", json!({})).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::Forbidden);
}

async fn emit(rig: &Rig, who: &Arc<Principal>, kind: &str) {
    let params = json!({ "type": kind, "payload": null });
    call(rig, who, "probe.emit", params).await.unwrap();
}

async fn watch(rig: &Rig, who: &Arc<Principal>, params: Value) -> CallStream {
    let request = Request::new(Arc::clone(who), "events.watch", params);
    soon(rig.hub.open(request)).await.unwrap()
}

/// The next events of a watch, with their positions.
async fn take(stream: &mut CallStream, count: usize) -> Vec<(String, u64)> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let items = soon(stream.next())
            .await
            .unwrap()
            .expect("the watch goes on");
        for item in items {
            if let ItemBody::Data { data, content_type } = item.to_item().unwrap().body {
                assert_eq!(content_type, "EventRecord");
                let kind = data["type"].as_str().unwrap().to_owned();
                taken.push((kind, data["position"].as_u64().unwrap()));
            }
        }
    }
    taken
}

fn names(taken: &[(String, u64)]) -> Vec<&str> {
    taken.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_continues_from_any_position_without_a_gap() {
    let rig = rig().await;
    let carol = user("carol", &["probe:*", "events:read"]);
    for kind in ["custom.a", "custom.b", "other.x", "custom.c"] {
        emit(&rig, &carol, kind).await;
    }
    let mut stream = watch(&rig, &carol, json!({ "after": 0 })).await;
    let first = take(&mut stream, 3).await;
    assert_eq!(names(&first), ["custom.a", "custom.b", "custom.c"]);
    assert!(first.is_sorted_by_key(|(_, position)| *position));
    // What happens meanwhile comes on the same stream.
    emit(&rig, &carol, "custom.d").await;
    emit(&rig, &carol, "custom.e").await;
    assert_eq!(names(&take(&mut stream, 2).await), ["custom.d", "custom.e"]);
    drop(stream);
    // From the middle, with other types, and in another life of the server.
    let params = json!({ "after": first[1].1, "types": ["other", "custom.c", "custom.d."] });
    let mut stream = watch(&rig, &carol, params.clone()).await;
    assert_eq!(
        names(&take(&mut stream, 3).await),
        ["other.x", "custom.c", "custom.d"]
    );
    drop(stream);
    let folder = rig.stop().await;
    let plugins = vec![emitter(), Arc::new(EventsPlugin) as Arc<dyn Plugin>];
    let rig = Rig::in_folder(folder, HubConfig::default(), plugins).await;
    let mut stream = watch(&rig, &carol, params).await;
    assert_eq!(
        names(&take(&mut stream, 3).await),
        ["other.x", "custom.c", "custom.d"]
    );
    let recent = call(&rig, &carol, "events.recent", json!({ "limit": 1 }))
        .await
        .unwrap();
    let newest = recent["events"][0]["position"].as_u64().unwrap();
    let mut stream = watch(&rig, &carol, json!({ "after": newest })).await;
    emit(&rig, &carol, "custom.f").await;
    assert_eq!(names(&take(&mut stream, 1).await), ["custom.f"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_without_a_position_begins_now_and_sends_only_the_callers_events() {
    let rig = rig().await;
    let carol = user("carol", &["probe:*", "events:read"]);
    let dave = user("dave", &["probe:*", "events:read"]);
    emit(&rig, &carol, "custom.before").await;
    let mut hers = watch(&rig, &carol, json!({})).await;
    let mut his = watch(&rig, &dave, json!({ "after": 0, "types": [""] })).await;
    // A watch that was opened has begun once its first event came; until then it is asked again.
    let began = loop {
        emit(&rig, &carol, "custom.hers").await;
        let next = tokio::time::timeout(std::time::Duration::from_millis(200), take(&mut hers, 1));
        if let Ok(taken) = next.await {
            break taken;
        }
    };
    assert_eq!(names(&began), ["custom.hers"]);
    emit(&rig, &dave, "custom.his").await;
    assert_eq!(names(&take(&mut his, 1).await), ["custom.his"]);
    emit(&rig, &carol, "custom.end").await;
    let rest = take(&mut hers, 1).await;
    assert!(
        names(&rest).iter().all(|kind| *kind != "custom.his"),
        "{rest:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_as_complete_before_its_deadline() {
    let rig = rig().await;
    let carol = user("carol", &["events:read"]);
    let request = Request {
        timeout: Some(std::time::Duration::from_millis(2_300)),
        ..Request::new(carol, "events.watch", json!({}))
    };
    let items = soon(rig.hub.open(request)).await.unwrap();
    let items = soon(items.collect()).await.unwrap();
    let Some(ItemBody::Done { status, .. }) = items.last().map(|item| &item.body) else {
        panic!("{items:?}");
    };
    assert_eq!(*status, DoneStatus::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_events_needs_the_scope() {
    let rig = rig().await;
    let stranger = user("mallory", &["probe:*"]);
    let refused = rig
        .hub
        .open(Request::new(stranger, "events.watch", json!({})))
        .await;
    assert_eq!(refused.err().unwrap().code, ErrorCode::Forbidden);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_does_not_wait_for_a_watch() {
    let rig = rig().await;
    let carol = user("carol", &["events:read"]);
    let stream = watch(&rig, &carol, json!({})).await;
    // Far longer than `soon` waits.
    let deadline = std::time::Duration::from_secs(3_600);
    soon(rig.hub.stop(deadline)).await;
    let items = soon(stream.collect()).await.unwrap();
    let Some(ItemBody::Done { status, .. }) = items.last().map(|item| &item.body) else {
        panic!("{items:?}");
    };
    assert_eq!(*status, DoneStatus::Cancelled);
}
