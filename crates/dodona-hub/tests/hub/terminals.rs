//! However a call ends, it has exactly one terminal, and that is its last item.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use dodona_hub::{CancelTarget, HubConfig, Request};
use dodona_plugin::{CallCtx, Method, MethodSpec, Params};
use dodona_proto::{CallError, DoneStatus, ErrorCode, ItemBody};
use serde_json::{Value, json};

use crate::support::{
    Object, Rig, alice, check, codes, data, endings, object, soon, spec, streaming, unary, until,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_its_work_is_complete() {
    let rig = Rig::new().await;
    let unary = rig.items("echo.say", json!({"text": "hi"})).await;
    assert_eq!(check(&unary), (DoneStatus::Complete, None));
    assert_eq!(data(&unary), [json!({"text": "hi"})]);
    let streaming = rig.items("echo.count", json!({"to": 1000})).await;
    assert_eq!(check(&streaming), (DoneStatus::Complete, None));
    let counted: Vec<Value> = (1..=1000).map(|n| json!({ "n": n })).collect();
    assert_eq!(data(&streaming), counted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugins_error_is_told_and_then_the_call_has_failed() {
    let rig = Rig::new().await;
    let items = rig.items("echo.fail", json!({"message": "oh"})).await;
    assert_eq!(check(&items), (DoneStatus::Failed, Some("oh".to_owned())));
    assert_eq!(codes(&items), [ErrorCode::Plugin("echo.failed".into())]);
    let error = rig.call("echo.fail", json!({})).await.unwrap_err();
    assert_eq!(error.code.as_str(), "echo.failed");
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

fn panicking() -> Vec<Method> {
    vec![
        unary(spec("probe.in_future"), |_, _| async {
            tokio::task::yield_now().await;
            panic!("in the future")
        }),
        unary(spec("probe.in_closure"), |_, _| {
            if true {
                panic!("in the closure");
            }
            async { Ok(Object::new()) }
        }),
        unary(spec("probe.in_drop"), |_, _| {
            let bomb = Bomb;
            async move {
                let _kept = bomb;
                std::future::pending().await
            }
        }),
        unary(spec("probe.drop_at_the_end"), |_, _| {
            let bomb = Bomb;
            async move {
                let _kept = bomb;
                Ok(Object::new())
            }
        }),
        unary(spec("probe.in_scope"), |ctx, _| async move {
            let inner = ctx.scope("inner", |_| {
                if true {
                    panic!("in a scope's closure");
                }
                async { Ok(Value::Null) }
            });
            let code = inner.await.map_err(|error| error.code.to_string());
            Ok(object(json!({ "inner": code.unwrap_err() })))
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_its_call_and_nothing_else() {
    let rig = Rig::probe(panicking()).await;
    for method in [
        "echo.panic",
        "probe.in_future",
        "probe.in_closure",
        "probe.drop_at_the_end",
    ] {
        let items = rig.items(method, json!({})).await;
        assert_eq!(check(&items).0, DoneStatus::Failed, "{method}");
        assert_eq!(codes(&items), [ErrorCode::Panicked], "{method}");
        let error = rig.call(method, json!({})).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Panicked, "{method}");
    }
    // Its parts suffer alone, too.
    let items = rig.items("probe.in_scope", json!({})).await;
    assert_eq!(check(&items).0, DoneStatus::Complete);
    assert_eq!(data(&items), [json!({"inner": "call.panicked"})]);
    // One that panics only when it is thrown away was cancelled.
    let stream = rig.open("probe.in_drop", json!({})).await;
    let target = CancelTarget::Stream(stream.stream());
    rig.hub.cancel(&alice(), &target).await.unwrap();
    let items = soon(stream.collect()).await.unwrap();
    assert_eq!(check(&items).0, DoneStatus::Cancelled);
    let dropped = rig
        .hub
        .call(Request::new(alice(), "probe.in_drop", json!({})));
    assert!(
        tokio::time::timeout(Duration::from_millis(20), dropped)
            .await
            .is_err()
    );
    assert!(rig.hub.calls(&alice()).is_empty());
    rig.call("echo.say", json!({"text": "still here"}))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_cancelled_by_its_id_its_stream_or_its_path() {
    let rig = Rig::new().await;
    for by in ["call", "stream", "path", "path within"] {
        let stream = rig.open("echo.slow", json!({"ms": 600_000})).await;
        let id = stream.stream();
        let target = match by {
            "call" => CancelTarget::Call(id.root_call()),
            "stream" => CancelTarget::Stream(id),
            "path" => CancelTarget::Path {
                prefix: "echo".parse().unwrap(),
                within: None,
            },
            _ => CancelTarget::Path {
                prefix: "echo".parse().unwrap(),
                within: Some(id),
            },
        };
        let stopped = rig.hub.cancel(&alice(), &target).await.unwrap();
        assert_eq!(stopped.len(), 1, "{by}");
        assert_eq!(stopped[0].call_id, id.root_call(), "{by}");
        let items = soon(stream.collect()).await.unwrap();
        assert_eq!(
            check(&items),
            (DoneStatus::Cancelled, Some("cancelled".to_owned())),
            "{by}"
        );
        assert!(codes(&items).is_empty(), "being stopped is no error");
    }
    let nowhere = CancelTarget::Stream(dodona_proto::StreamId::random());
    let gone = rig.hub.cancel(&alice(), &nowhere).await;
    assert_eq!(gone.unwrap_err().code, ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_limited() {
    let bound = MethodSpec {
        timeout_ms: Some(30),
        ..spec("probe.bound")
    };
    let forever = |_: CallCtx, _: Object| std::future::pending::<Result<Object, CallError>>();
    let rig = Rig::probe(vec![
        unary(bound, forever),
        unary(spec("probe.forever"), forever),
        unary(spec("probe.above"), |ctx, _| async move {
            let below = ctx.call_value("probe.bound", Params::code(json!({}))).await;
            Ok(object(json!({ "below": below.unwrap_err().code })))
        }),
    ])
    .await;
    let items = rig.items("probe.bound", json!({})).await;
    assert_eq!(check(&items).0, DoneStatus::Limited);
    assert_eq!(codes(&items), [ErrorCode::DeadlineExceeded]);
    let mut asked = Request::new(alice(), "probe.forever", json!({}));
    asked.timeout = Some(Duration::from_millis(30));
    let error = soon(rig.hub.call(asked.clone())).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DeadlineExceeded);
    let items = soon(rig.hub.open(asked).await.unwrap().collect())
        .await
        .unwrap();
    assert_eq!(check(&items).0, DoneStatus::Limited);
    // A nested call's own bound is its own.
    let items = rig.items("probe.above", json!({})).await;
    assert_eq!(check(&items).0, DoneStatus::Complete);
    let mut statuses: Vec<_> = endings(&items).into_values().collect();
    assert_eq!(statuses.remove(0), DoneStatus::Complete);
    assert_eq!(statuses, [DoneStatus::Limited]);
}

/// Calls in a loop whose every step is ready at once: there is nothing it would wait for.
fn restless() -> Vec<Method> {
    vec![
        unary(spec("probe.calls"), |ctx, _| async move {
            loop {
                ctx.call_value("echo.say", Params::code(json!({"text": ""})))
                    .await?;
            }
        }),
        streaming(spec("probe.emits"), |_, _, out| async move {
            loop {
                out.send(Object::new()).await?;
            }
        }),
        unary(spec("probe.scopes"), |ctx, _| async move {
            loop {
                ctx.scope("inner", |_| async { Ok(Value::Null) }).await?;
            }
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_never_waits_can_be_stopped_all_the_same() {
    let rig = Rig::probe(restless()).await;
    for method in ["probe.calls", "probe.emits", "probe.scopes"] {
        let mut bound = Request::new(alice(), method, json!({}));
        bound.timeout = Some(Duration::from_millis(50));
        // Nobody watches: the outcome is all there is.
        let hub = rig.hub.clone();
        let call = bound.clone();
        let outcome = soon(tokio::spawn(async move { hub.call(call).await }))
            .await
            .unwrap();
        assert_eq!(
            outcome.unwrap_err().code,
            ErrorCode::DeadlineExceeded,
            "{method}"
        );
        // Watched, by a reader that does not keep up.
        let stream = soon(rig.hub.open(bound)).await.unwrap();
        let items = soon(stream.collect()).await.unwrap();
        assert_eq!(check(&items).0, DoneStatus::Limited, "{method}");
        // Stopped from outside.
        let stream = rig.open(method, json!({})).await;
        let target = CancelTarget::Stream(stream.stream());
        soon(rig.hub.cancel(&alice(), &target)).await.unwrap();
        let items = soon(stream.collect()).await.unwrap();
        assert_eq!(check(&items).0, DoneStatus::Cancelled, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_stream_and_a_dropped_call_are_cancelled() {
    let rig = Rig::new().await;
    let stream = rig
        .open(
            "echo.nest",
            json!({"depth": 3, "width": 2, "delay_ms": 60_000}),
        )
        .await;
    let id = stream.stream();
    until(|| rig.hub.calls(&alice()).len() == 15).await;
    drop(stream);
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    let mut reader = rig.hub.attach(&alice(), id, 0).await.unwrap();
    let mut items = Vec::new();
    while let Some(some) = soon(reader.next()).await.unwrap() {
        items.extend(some.iter().map(|item| item.to_item().unwrap()));
    }
    let reason = "the caller no longer waits for the result".to_owned();
    assert_eq!(check(&items), (DoneStatus::Cancelled, Some(reason)));
    assert_eq!(endings(&items).len(), 15);
    let call = rig.hub.call(Request::new(
        alice(),
        "echo.nest",
        json!({"depth": 3, "delay_ms": 60_000}),
    ));
    assert!(
        tokio::time::timeout(Duration::from_millis(20), call)
            .await
            .is_err()
    );
    assert!(rig.hub.calls(&alice()).is_empty());
}

#[tokio::test]
async fn a_call_whose_opening_nobody_waits_for_is_cancelled() {
    let rig = Rig::new().await;
    let request = Request::new(alice(), "echo.slow", json!({"ms": 600_000}));
    let mut opening = Box::pin(rig.hub.open(request));
    let polled = std::future::poll_fn(|cx| Poll::Ready(opening.as_mut().poll(cx).is_pending()));
    assert!(polled.await, "it waits until its beginning is stored");
    let running = rig.hub.calls(&alice());
    let stream = running[0].call_id.stream();
    drop(opening);
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    rig.hub.journal().flush().await.unwrap();
    let page = rig.hub.journal().page(stream, 0, 10).await.unwrap();
    let items: Vec<_> = page.iter().map(|item| item.to_item().unwrap()).collect();
    let reason = "the caller no longer waits for the result".to_owned();
    assert_eq!(check(&items), (DoneStatus::Cancelled, Some(reason)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_nobody_reads_is_cancelled_after_the_grace_time() {
    let config = HubConfig {
        stream_grace: Duration::from_millis(30),
        ..HubConfig::default()
    };
    let rig = Rig::with(config, Vec::new()).await;
    let reader = rig
        .open("echo.slow", json!({"ms": 600_000}))
        .await
        .into_reader();
    let id = reader.stream();
    drop(reader);
    until(|| rig.hub.calls(&alice()).is_empty()).await;
    rig.hub.journal().flush().await.unwrap();
    let page = rig
        .call("hub.stream", json!({"stream_id": id}))
        .await
        .unwrap();
    assert_eq!(page["ended"], "cancelled");
    assert_eq!(page["items"][0]["reason"], "the stream had no reader");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_larger_than_the_journal_takes_is_limited() {
    let big = |_: CallCtx, _: Object| async { Ok(object(json!({"much": "x".repeat(5 << 20)}))) };
    let rig = Rig::probe(vec![
        unary(spec("probe.big"), big),
        streaming(spec("probe.big_item"), |_, _, out| async move {
            out.send(object(json!({"n": 1}))).await?;
            out.send(object(json!({"much": "x".repeat(5 << 20)}))).await
        }),
    ])
    .await;
    for method in ["probe.big", "probe.big_item"] {
        let items = rig.items(method, json!({})).await;
        assert_eq!(check(&items).0, DoneStatus::Limited, "{method}");
        assert_eq!(codes(&items), [ErrorCode::TooLarge], "{method}");
    }
    // Nothing is journaled of a call whose result goes straight to its caller.
    rig.call("probe.big", json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_comes_of_a_context_that_outlives_its_call() {
    let leaked: Arc<Mutex<Vec<CallCtx>>> = Arc::default();
    let keep = {
        let leaked = Arc::clone(&leaked);
        move |ctx: CallCtx, _: Object| {
            leaked.lock().unwrap().push(ctx);
            async { Ok(Object::new()) }
        }
    };
    let rig = Rig::probe(vec![
        unary(spec("probe.leak"), keep),
        unary(spec("probe.above"), {
            let leaked = Arc::clone(&leaked);
            move |ctx, _| {
                let leaked = Arc::clone(&leaked);
                async move {
                    ctx.call_value("probe.leak", Params::code(json!({})))
                        .await?;
                    let below = leaked.lock().unwrap().last().unwrap().clone();
                    misuse(&below).await;
                    Ok(Object::new())
                }
            }
        }),
    ])
    .await;
    for method in ["probe.leak", "probe.above"] {
        let stream = rig.open(method, json!({})).await;
        let id = stream.stream();
        let items = soon(stream.collect()).await.unwrap();
        assert_eq!(check(&items).0, DoneStatus::Complete);
        let ctx = leaked.lock().unwrap().last().unwrap().clone();
        misuse(&ctx).await;
        rig.hub.journal().flush().await.unwrap();
        let page = rig
            .call("hub.stream", json!({"stream_id": id}))
            .await
            .unwrap();
        assert_eq!(
            page["items"].as_array().unwrap().len(),
            items.len(),
            "{method}"
        );
    }
}

/// What a plugin should not do.
async fn misuse(ended: &CallCtx) {
    let body = ItemBody::Data {
        content_type: "Late".into(),
        data: json!({}),
    };
    let late = ended.emit(body).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::Cancelled);
    let late = ended.progress("late", None).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::Cancelled);
    let late = ended
        .call_value("echo.say", Params::code(json!({"text": ""})))
        .await
        .unwrap_err();
    assert_eq!(late.code, ErrorCode::Cancelled);
    let late = ended
        .scope("inner", |_| async { Ok(Value::Null) })
        .await
        .unwrap_err();
    assert_eq!(late.code, ErrorCode::Cancelled);
    let late = ended
        .open("echo.say", Params::code(json!({"text": ""})))
        .await;
    assert_eq!(late.map(drop).unwrap_err().code, ErrorCode::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_cannot_write_a_terminal() {
    let rig = Rig::probe(vec![unary(spec("probe.ends"), |ctx, _| async move {
        let done = ItemBody::Done {
            status: DoneStatus::Complete,
            reason: None,
        };
        let refused = ctx.emit(done).await.unwrap_err();
        Ok(object(json!({ "refused": refused.code })))
    })])
    .await;
    let items = rig.items("probe.ends", json!({})).await;
    assert_eq!(check(&items).0, DoneStatus::Complete);
    assert_eq!(data(&items), [json!({"refused": "rpc.internal_error"})]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_started_and_did_not_wait_for_ends_before_it() {
    let rig = Rig::probe(vec![
        unary(spec("probe.careless"), |ctx, _| async move {
            let mut open = Vec::new();
            for _ in 0..5 {
                open.push(
                    ctx.open("echo.count", Params::code(json!({"to": 1_000_000})))
                        .await?,
                );
            }
            // Not even their drops are waited for.
            std::mem::forget(open);
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(Object::new())
        }),
        unary(spec("probe.above"), |ctx, _| async move {
            ctx.call_value("probe.careless", Params::code(json!({})))
                .await?;
            Ok(Object::new())
        }),
    ])
    .await;
    for (method, calls) in [("probe.careless", 6), ("probe.above", 7)] {
        let items = rig.items(method, json!({})).await;
        assert_eq!(check(&items).0, DoneStatus::Complete);
        assert_eq!(endings(&items).len(), calls);
    }
    until(|| rig.hub.health().calls == 0).await;
}
