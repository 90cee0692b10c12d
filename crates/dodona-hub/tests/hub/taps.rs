//! Nested calls whose items another call reads as they come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dodona_hub::CancelTarget;
use dodona_plugin::{Method, MethodSpec, Params};
use dodona_proto::{DoneStatus, HubStreamItem, ItemBody};
use futures_util::StreamExt;
use serde_json::json;

use crate::support::{
    Object, Rig, alice, check, data, endings, object, soon, spec, streaming, unary, until,
};

/// The items of a nested call as a root's would be: numbered, and with the call at the root.
fn rooted(items: &[HubStreamItem]) -> Vec<HubStreamItem> {
    let own = items.iter().map(|item| item.call_id).min().unwrap();
    let stream = dodona_proto::StreamId::random();
    let rebase = |item: &HubStreamItem| {
        let text = item.call_id.to_string();
        let call_id = text
            .replace(&own.to_string(), &stream.to_string())
            .parse()
            .unwrap();
        HubStreamItem {
            call_id,
            ..item.clone()
        }
    };
    items.iter().map(rebase).collect()
}

/// A method that opens what it is told to and gives back all it saw.
fn watch() -> Method {
    unary(spec("probe.watch"), |ctx, p: Object| async move {
        let pause = p.get("pause_ms").and_then(serde_json::Value::as_u64);
        let params = Params::code(p["params"].clone());
        let mut items = ctx.open(p["method"].as_str().unwrap(), params).await?;
        let mut seen = Vec::new();
        while let Some(item) = items.next().await {
            seen.push(item);
            if let Some(pause) = pause {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
        Ok(object(json!({ "items": seen })))
    })
}

fn seen(result: &serde_json::Value) -> Vec<HubStreamItem> {
    serde_json::from_value(result["items"].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opened_call_shows_its_own_items_and_those_below_it_to_its_end() {
    let rig = Rig::probe(vec![watch()]).await;
    let nest = json!({"method": "echo.nest", "params": {"depth": 2, "width": 5}});
    let items = seen(&rig.call("probe.watch", nest).await.unwrap());
    assert_eq!(check(&rooted(&items)).0, DoneStatus::Complete);
    assert_eq!(endings(&items).len(), 31);
    assert_eq!(items[0].plugin_path.as_str(), "probe.echo");
    for (method, params, status) in [
        ("echo.say", json!({"text": "hi"}), DoneStatus::Complete),
        ("echo.fail", json!({}), DoneStatus::Failed),
        ("echo.panic", json!({}), DoneStatus::Failed),
    ] {
        let watched = rig
            .call("probe.watch", json!({"method": method, "params": params}))
            .await;
        let items = seen(&watched.unwrap());
        assert_eq!(check(&rooted(&items)).0, status, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_consumer_misses_no_terminal_and_sees_the_same_as_the_journal() {
    let rig = Rig::probe(vec![watch()]).await;
    let params = json!({
        "method": "echo.nest", "params": {"depth": 2, "width": 6}, "pause_ms": 3,
    });
    let stream = rig.items("probe.watch", params).await;
    assert_eq!(check(&stream).0, DoneStatus::Complete);
    let result = data(&stream).pop().unwrap();
    let items = seen(&result);
    assert_eq!(check(&rooted(&items)).0, DoneStatus::Complete);
    assert_eq!(endings(&items).len(), 43);
    let journaled = stream
        .iter()
        .filter(|item| item.call_id.depth() > 0)
        .count();
    assert_eq!(items.len(), journaled);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_an_opened_call_cancels_it_and_everything_below() {
    let rig = Rig::probe(vec![unary(spec("probe.glance"), |ctx, _| async move {
        let params = json!({"depth": 2, "width": 3, "delay_ms": 60_000});
        let mut items = ctx.open("echo.nest", Params::code(params)).await?;
        let first = items.next().await.unwrap();
        drop(items);
        ctx.call_value("echo.slow", Params::code(json!({"ms": 150})))
            .await?;
        Ok(object(json!({ "first": first })))
    })])
    .await;
    let items = rig.items("probe.glance", json!({})).await;
    assert_eq!(check(&items).0, DoneStatus::Complete);
    let root = items[0].call_id.stream().root_call();
    let (nest, slow) = (root.child(1).unwrap(), root.child(2).unwrap());
    for (call, status) in endings(&items) {
        let cancelled = call.is_within(&nest);
        assert_eq!(status == DoneStatus::Cancelled, cancelled, "{call}");
    }
    // It was over long before the call that dropped it.
    let end = |call| {
        items
            .iter()
            .position(|item| item.call_id == call && matches!(item.body, ItemBody::Done { .. }))
    };
    assert!(end(nest) < end(slow));
}

/// A producer that counts what it has sent, and consumers that do not read.
fn backpressure(sent: &Arc<AtomicU64>) -> Vec<Method> {
    let counted = Arc::clone(sent);
    let produce =
        move |_: dodona_plugin::CallCtx, _: Object, out: dodona_plugin::Emitter<Object>| {
            let sent = Arc::clone(&counted);
            async move {
                loop {
                    out.send(Object::new()).await?;
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
    let bounded = MethodSpec {
        timeout_ms: Some(100),
        ..spec("probe.bounded")
    };
    vec![
        streaming(spec("probe.produce"), produce.clone()),
        streaming(bounded, produce),
        unary(spec("probe.ignore"), |ctx, p: Object| async move {
            let method = p["method"].as_str().unwrap().to_owned();
            let _unread = ctx.open(&method, Params::code(json!({}))).await?;
            std::future::pending().await
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_never_reads_holds_up_the_producer_but_not_its_end() {
    let sent = Arc::new(AtomicU64::new(0));
    let rig = Rig::probe(backpressure(&sent)).await;
    let stream = rig
        .open("probe.ignore", json!({"method": "probe.produce"}))
        .await;
    until(|| sent.load(Ordering::Relaxed) >= 16).await;
    // It waits now: however often others get their turn, it sends no more.
    for _ in 0..100 {
        rig.call("echo.say", json!({"text": ""})).await.unwrap();
    }
    assert_eq!(sent.load(Ordering::Relaxed), 16);
    let producer = stream.stream().root_call().child(1).unwrap();
    let stopped = soon(rig.hub.cancel(&alice(), &CancelTarget::Call(producer)))
        .await
        .unwrap();
    assert_eq!(stopped.len(), 1);
    until(|| rig.hub.calls(&alice()).len() == 1).await;
    drop(stream);
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    // Its own deadline ends it just as well.
    let stream = rig
        .open("probe.ignore", json!({"method": "probe.bounded"}))
        .await;
    until(|| sent.load(Ordering::Relaxed) == 32).await;
    until(|| rig.hub.calls(&alice()).len() == 1).await;
    let id = stream.stream();
    drop(stream);
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    rig.hub.journal().flush().await.unwrap();
    let page = rig.hub.journal().page(id, 0, 1000).await.unwrap();
    let items: Vec<HubStreamItem> = page.iter().map(|item| item.to_item().unwrap()).collect();
    assert_eq!(check(&items).0, DoneStatus::Cancelled);
    let ending = endings(&items)[&id.root_call().child(1).unwrap()];
    assert_eq!(ending, DoneStatus::Limited);
}
