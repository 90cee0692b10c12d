//! `events.recent`: the latest events of whoever asks.

use std::sync::Arc;

use dodona_hub::events::EventsPlugin;
use dodona_hub::{HubConfig, Request};
use dodona_plugin::activation::EventDraft;
use dodona_plugin::{Behalf, CallError, Contribution, EventBus, Plugin};
use dodona_proto::{ErrorCode, Principal, Severity};
use serde_json::{Value, json};

use crate::support::{Object, Rig, plugin, soon, spec, unary, user};

/// A plugin whose method emits an event for whoever calls it.
fn emitter() -> Arc<dyn Plugin> {
    plugin("probe", |ctx| {
        let bus: Arc<dyn EventBus> = ctx.bus;
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
