//! Gates: asked about every call of a tool-marked method, from wherever it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dodona_hub::{HubConfig, Request};
use dodona_plugin::hooks::point::PreToolExecute;
use dodona_plugin::hooks::{Hook, Reply};
use dodona_plugin::{Contribution, Method, MethodSpec, Params, Plugin, ToolSpec};
use dodona_proto::hook::{ToolPending, Verdict};
use dodona_proto::{Approval, DoneStatus, ErrorCode, ToolCategory};
use serde_json::{Value, json};

use crate::support::{
    Object, Rig, alice, check, codes, data, object, plugin, soon, spec, streaming, unary,
};

fn tool(name: &'static str, approval: Approval) -> MethodSpec {
    let tool = ToolSpec {
        category: ToolCategory::Meta,
        agents: &["oracle"],
        approval,
    };
    MethodSpec {
        tool: Some(tool),
        ..spec(name)
    }
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Numbered {
    n: u8,
}

/// Tools that count how often they ran, and a method that calls one.
fn methods(ran: &Arc<AtomicU32>) -> Vec<Method> {
    let count = || {
        let ran = Arc::clone(ran);
        move || ran.fetch_add(1, Ordering::Relaxed)
    };
    let (one, many, plain, asks) = (count(), count(), count(), count());
    let typed = Method::unary(
        &tool("probe.tool", Approval::Never),
        move |_, p: Numbered| {
            one();
            async { Ok::<_, dodona_proto::CallError>(p) }
        },
    );
    vec![
        typed.unwrap(),
        streaming(tool("probe.stream", Approval::Never), move |_, p, out| {
            many();
            async move { out.send(p).await }
        }),
        unary(spec("probe.plain"), move |_, p: Object| {
            plain();
            async { Ok(p) }
        }),
        unary(tool("probe.asks", Approval::Always), move |_, p: Object| {
            asks();
            async { Ok(p) }
        }),
        unary(spec("probe.through"), |ctx, p: Object| async move {
            let method = p["method"].as_str().unwrap();
            let result = ctx
                .call_value(method, Params::code(p["params"].clone()))
                .await?;
            Ok(object(json!({ "result": result })))
        }),
    ]
}

fn gated(
    ran: &Arc<AtomicU32>,
    gate: impl Fn(&ToolPending) -> Verdict + Send + Sync + Clone + 'static,
) -> Arc<dyn Plugin> {
    let methods = methods(ran);
    plugin("probe", move |_| {
        let gate = gate.clone();
        let gate = Hook::inline::<PreToolExecute>(move |call| Ok(Reply::edit(gate(call))));
        Ok(Contribution::new()
            .methods(methods.clone())
            .hook(gate.fail_closed()))
    })
}

async fn rig(
    gate: impl Fn(&ToolPending) -> Verdict + Send + Sync + Clone + 'static,
) -> (Rig, Arc<AtomicU32>) {
    let ran = Arc::new(AtomicU32::new(0));
    let rig = Rig::with(HubConfig::default(), vec![gated(&ran, gate)]).await;
    (rig, ran)
}

fn through(method: &str, params: Value) -> Value {
    json!({"method": method, "params": params})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_has_no_side_door() {
    let (rig, ran) = rig(|call| Verdict::Deny(format!("not `{}`", call.method))).await;
    for (tool, params) in [("probe.tool", json!({"n": 1})), ("probe.stream", json!({}))] {
        let denied = rig.call(tool, params.clone()).await.unwrap_err();
        assert_eq!(denied.code, ErrorCode::Denied);
        assert_eq!(denied.message, format!("not `{tool}`"));
        let opened = rig.items(tool, params.clone()).await;
        assert_eq!(
            check(&opened),
            (DoneStatus::Refused, Some(denied.message.clone()))
        );
        assert_eq!(codes(&opened), [ErrorCode::Denied]);
        let trusted = Request::from_code(alice(), tool, params.clone());
        assert_eq!(rig.hub.call(trusted).await.unwrap_err(), denied);
        let items = rig.items("probe.through", through(tool, params)).await;
        assert_eq!(
            check(&items),
            (DoneStatus::Refused, Some(format!("not `{tool}`")))
        );
        // The tool's own, and that of the call which did not know what to do about it.
        assert_eq!(codes(&items), [ErrorCode::Denied, ErrorCode::Denied]);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    // It has a say over tools alone.
    rig.call("probe.plain", json!({})).await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_parameters_are_what_the_method_gets_and_are_checked_again() {
    let (rig, ran) = rig(|call| match call.arguments["n"].as_u64() {
        Some(n @ 0..10) => Verdict::Modify(json!({ "n": n * 100 })),
        _ => Verdict::Allow,
    })
    .await;
    assert_eq!(
        rig.call("probe.tool", json!({"n": 2})).await.unwrap(),
        json!({"n": 200})
    );
    assert_eq!(
        rig.call("probe.tool", json!({"n": 20})).await.unwrap(),
        json!({"n": 20})
    );
    let nested = rig
        .call("probe.through", through("probe.tool", json!({"n": 1})))
        .await
        .unwrap();
    assert_eq!(nested, json!({"result": {"n": 100}}));
    assert_eq!(ran.load(Ordering::Relaxed), 3);
    // 900 is no byte.
    for (method, params) in [
        ("probe.tool", json!({"n": 9})),
        ("probe.through", through("probe.tool", json!({"n": 9}))),
    ] {
        let error = rig.call(method, params).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.contains("`n`"), "{error}");
    }
    assert_eq!(ran.load(Ordering::Relaxed), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gates_answer_stands_for_the_result_and_nothing_runs() {
    let (rig, ran) = rig(|_| Verdict::Answer(json!({"n": 7}))).await;
    for (tool, params) in [("probe.tool", json!({"n": 1})), ("probe.stream", json!({}))] {
        assert_eq!(
            rig.call(tool, params.clone()).await.unwrap(),
            json!({"n": 7}),
            "{tool}"
        );
        let items = rig.items(tool, params.clone()).await;
        assert_eq!(check(&items), (DoneStatus::Complete, None));
        assert_eq!(data(&items), [json!({"n": 7})], "{tool}");
        let nested = rig
            .call("probe.through", through(tool, params))
            .await
            .unwrap();
        assert_eq!(nested, json!({"result": {"n": 7}}));
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_can_answer_is_a_refusal() {
    let (asking, ran) = rig(|_| Verdict::Ask("may it?".to_owned())).await;
    let error = asking
        .call("probe.tool", json!({"n": 1}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ApprovalRequired);
    assert!(error.message.contains("may it?"), "{error}");
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    // The method's own wish counts as one, whatever the gates say.
    for verdict in [Verdict::Allow, Verdict::Answer(json!({}))] {
        let (rig, ran) = rig(move |_| verdict.clone()).await;
        for (method, params) in [
            ("probe.asks", json!({})),
            ("probe.through", through("probe.asks", json!({}))),
        ] {
            let error = rig.call(method, params).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::ApprovalRequired);
        }
        assert_eq!(ran.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_panics_counts_as_closed_and_the_hub_goes_on() {
    let (rig, ran) = rig(|_| panic!("in a gate")).await;
    let error = soon(rig.call("probe.tool", json!({"n": 1})))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    rig.call("probe.plain", json!({})).await.unwrap();
}
