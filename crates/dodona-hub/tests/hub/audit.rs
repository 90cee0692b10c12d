//! Calls of mutating methods are journaled with their beginning and their end.

use std::time::Duration;

use dodona_hub::{CancelTarget, Request};
use dodona_plugin::{MethodSpec, Params};
use dodona_proto::{CallError, DoneStatus, ErrorCode};
use dodona_store::journal::CallRecord;
use serde_json::json;

use crate::support::{Object, Rig, alice, check, endings, soon, spec, unary, until};

fn mutating(name: &'static str) -> MethodSpec {
    MethodSpec {
        mutates: true,
        ..spec(name)
    }
}

async fn rig() -> Rig {
    Rig::probe(vec![
        unary(mutating("probe.write"), |_, p: Object| async { Ok(p) }),
        unary(mutating("probe.fail"), |_, _| async {
            Err(CallError::plugin("probe.failed", "no"))
        }),
        unary(mutating("probe.panic"), |_, _| async { panic!("as asked") }),
        unary(mutating("probe.hang"), |_, _| std::future::pending()),
        unary(spec("probe.read"), |_, p: Object| async { Ok(p) }),
        unary(spec("probe.through"), |ctx, p: Object| async move {
            let method = p["method"].as_str().unwrap();
            let _ = ctx
                .call_value(method, Params::code(p["params"].clone()))
                .await;
            Ok(Object::new())
        }),
        unary(spec("probe.through_big"), |ctx, _| async move {
            let big = Params::code(json!({"much": "x".repeat(5 << 20)}));
            let refused = ctx.call_value("probe.write", big).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::TooLarge);
            Ok(Object::new())
        }),
    ])
    .await
}

async fn records(rig: &Rig) -> Vec<CallRecord> {
    rig.hub.journal().flush().await.unwrap();
    rig.hub.journal().recent_calls(100).await.unwrap()
}

fn ended(record: &CallRecord) -> (&str, DoneStatus, Option<&str>) {
    let end = record.end.as_ref().unwrap();
    let code = end.code.as_ref().map(ErrorCode::as_str);
    (record.head.method.as_str(), end.status, code)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_ending_of_a_mutating_call_is_on_record_and_reads_are_not() {
    let rig = rig().await;
    let params = json!({"body": "text", "token": "abc"});
    rig.call("probe.write", params).await.unwrap();
    // Stored when it is answered.
    let calls = rig.hub.journal().recent_calls(10).await.unwrap();
    assert_eq!(
        ended(&calls[0]),
        ("probe.write", DoneStatus::Complete, None)
    );
    assert_eq!(calls[0].head.user.as_str(), "alice");
    assert_eq!(calls[0].head.path.as_str(), "probe");
    assert_eq!(
        calls[0].head.params,
        json!({"body": "text", "token": "[redacted]"})
    );
    rig.call("probe.read", json!({})).await.unwrap();
    rig.call("probe.fail", json!({})).await.unwrap_err();
    rig.call("probe.panic", json!({})).await.unwrap_err();
    let mut bound = Request::new(alice(), "probe.hang", json!({}));
    bound.timeout = Some(Duration::from_millis(10));
    soon(rig.hub.call(bound)).await.unwrap_err();
    let dropped = rig.hub.call(Request::new(alice(), "probe.hang", json!({})));
    assert!(
        tokio::time::timeout(Duration::from_millis(10), dropped)
            .await
            .is_err()
    );
    let hub = rig.hub.clone();
    let hang = Request::new(alice(), "probe.hang", json!({}));
    let cancelled = tokio::spawn(async move { hub.call(hang).await });
    until(|| rig.hub.calls(&alice()).len() == 1).await;
    let path = CancelTarget::Path {
        prefix: "probe".parse().unwrap(),
        within: None,
    };
    rig.hub.cancel(&alice(), &path).await.unwrap();
    soon(cancelled).await.unwrap().unwrap_err();
    let calls = records(&rig).await;
    let ended: Vec<_> = calls.iter().map(ended).collect();
    assert_eq!(
        ended,
        [
            ("probe.write", DoneStatus::Complete, None),
            ("probe.fail", DoneStatus::Failed, Some("probe.failed")),
            ("probe.panic", DoneStatus::Failed, Some("call.panicked")),
            ("probe.hang", DoneStatus::Limited, Some("limit.deadline")),
            ("probe.hang", DoneStatus::Cancelled, Some("call.cancelled")),
            ("probe.hang", DoneStatus::Cancelled, Some("call.cancelled")),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_mutations_are_on_record_and_a_streams_root_is_in_its_stream() {
    let rig = rig().await;
    rig.call(
        "probe.through",
        json!({"method": "probe.write", "params": {}}),
    )
    .await
    .unwrap();
    let items = rig
        .items(
            "probe.through",
            json!({"method": "probe.write", "params": {}}),
        )
        .await;
    check(&items);
    rig.items("probe.write", json!({})).await;
    let calls = records(&rig).await;
    assert_eq!(calls.len(), 2, "the stream is the record of its root");
    for call in &calls {
        assert_eq!(ended(call), ("probe.write", DoneStatus::Complete, None));
        assert_eq!(call.head.path.as_str(), "probe.probe");
    }
    assert_eq!(
        calls[1].head.call,
        items[0].call_id.stream().root_call().child(1).unwrap()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutating_call_that_cannot_be_put_on_record_does_not_run() {
    let rig = rig().await;
    let big = json!({"much": "x".repeat(5 << 20)});
    let error = rig.call("probe.write", big).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::TooLarge);
    // Nested, its terminal says the same.
    let items = rig.items("probe.through_big", json!({})).await;
    assert_eq!(check(&items).0, DoneStatus::Complete);
    let nested = items[0].call_id.stream().root_call().child(1).unwrap();
    assert_eq!(endings(&items)[&nested], DoneStatus::Limited);
    assert!(records(&rig).await.is_empty());
}
