//! Calls that wait until a person has agreed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dodona_hub::{Approvers, CancelTarget, HubConfig, Request};
use dodona_plugin::hooks::point::PreToolExecute;
use dodona_plugin::hooks::{Hook, Reply};
use dodona_plugin::{Contribution, MethodSpec, Params, Plugin, ToolRequest, ToolSpec};
use dodona_proto::hook::{ToolPending, Verdict};
use dodona_proto::{
    Approval, CallError, DoneStatus, ErrorCode, Event, HubStreamItem, ItemBody, Principal,
    QuerySnapshot, ToolCategory,
};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    Object, Rig, alice, bob, check, codes, data, object, plugin, root, soon, spec, streaming, unary,
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

/// A hub where somebody can answer.
fn answerable() -> HubConfig {
    let mut config = HubConfig::default();
    config.approvals.approvers = Approvers::Available;
    config
}

fn snapshot() -> QuerySnapshot {
    serde_json::from_value(json!({
        "query_id": "q-1",
        "context_id": "c-1",
        "user": "alice",
        "project": null,
        "turn": {
            "number": 1,
            "iteration_count": 1,
            "max_iterations": 30,
            "token_usage": 0.0,
            "context_usage": 0.0,
        },
        "tokens_used": 0,
        "token_budget": 16000,
        "history": {"total_tool_calls": 0, "total_failures": 0, "message_count": 1},
    }))
    .unwrap()
}

/// Tools that ask and count how often they ran, and a gate that may ask about any tool.
fn asking(
    ran: &Arc<AtomicU32>,
    gate: impl Fn(&ToolPending) -> Verdict + Send + Sync + Clone + 'static,
) -> Arc<dyn Plugin> {
    let count = || {
        let ran = Arc::clone(ran);
        move || ran.fetch_add(1, Ordering::Relaxed)
    };
    let (write, many, plain) = (count(), count(), count());
    let short = MethodSpec {
        timeout_ms: Some(3000),
        ..tool("probe.short", Approval::Always)
    };
    let methods = vec![
        unary(
            tool("probe.write", Approval::Always),
            move |_, p: Object| {
                write();
                async { Ok(p) }
            },
        ),
        unary(tool("probe.kept", Approval::Agents), |_, p: Object| async {
            Ok(p)
        }),
        unary(tool("probe.tool", Approval::Never), move |_, p: Object| {
            plain();
            async { Ok(p) }
        }),
        streaming(tool("probe.silent", Approval::Always), move |_, _, _| {
            many();
            async { Ok(()) }
        }),
        unary(short, |_, p: Object| async { Ok(p) }),
        unary(spec("probe.hang"), |_, _| std::future::pending()),
        unary(spec("probe.seen"), |ctx, _| async move {
            let query = ctx.snapshot.as_ref().map(|snapshot| &snapshot.query_id);
            Ok(object(json!({ "query": query })))
        }),
        unary(spec("probe.seen_below"), |ctx, _| async move {
            let seen: Value = ctx.call("probe.seen", json!({})).await?;
            Ok(object(json!({ "result": seen })))
        }),
        unary(spec("probe.agent"), |ctx, p: Object| async move {
            let request = ToolRequest {
                on_start: None,
                params: Params::foreign(json!({})),
                timeout: p
                    .get("timeout_ms")
                    .and_then(Value::as_u64)
                    .map(Duration::from_millis),
                snapshot: Some(Arc::new(snapshot())),
            };
            let method = p["method"].as_str().unwrap();
            let result = ctx.call_tool(method, request).await.outcome?;
            Ok(object(json!({ "result": result })))
        }),
        unary(spec("probe.through"), |ctx, p: Object| async move {
            let method = p["method"].as_str().unwrap();
            let result = ctx
                .call_value(method, Params::code(p["params"].clone()))
                .await?;
            Ok(object(json!({ "result": result })))
        }),
    ];
    plugin("probe", move |_| {
        let gate = gate.clone();
        let gate = Hook::inline::<PreToolExecute>(move |call| Ok(Reply::edit(gate(call))));
        Ok(Contribution::new()
            .methods(methods.clone())
            .hook(gate.fail_closed()))
    })
}

async fn rig_with(
    config: HubConfig,
    gate: impl Fn(&ToolPending) -> Verdict + Send + Sync + Clone + 'static,
) -> (Rig, Arc<AtomicU32>) {
    let ran = Arc::new(AtomicU32::new(0));
    let rig = Rig::with(config, vec![asking(&ran, gate)]).await;
    (rig, ran)
}

async fn rig() -> (Rig, Arc<AtomicU32>) {
    rig_with(answerable(), |_| Verdict::Allow).await
}

async fn call(
    rig: &Rig,
    who: Arc<Principal>,
    method: &str,
    params: Value,
) -> Result<Value, CallError> {
    soon(rig.hub.call(Request::new(who, method, params))).await
}

async fn listed(rig: &Rig, who: Arc<Principal>, params: Value) -> Vec<Value> {
    let listed = call(rig, who, "hub.approvals", params).await.unwrap();
    listed["approvals"].as_array().unwrap().clone()
}

/// Waits until something is pending.
async fn pending(rig: &Rig) -> Value {
    soon(async {
        loop {
            if let Some(first) = listed(rig, root(), json!({})).await.pop() {
                return first;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
}

/// How a question came to stand, once it does not wait any more.
async fn settled(rig: &Rig, id: &Value) -> Value {
    soon(async {
        loop {
            let found = listed(rig, root(), json!({ "id": id })).await.remove(0);
            if found["state"] != "pending" {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
}

/// The data of one kind.
fn of_type<'i>(items: &'i [HubStreamItem], wanted: &str) -> Vec<&'i Value> {
    let data = |item: &'i HubStreamItem| match &item.body {
        ItemBody::Data { content_type, data } if content_type == wanted => Some(data),
        _ => None,
    };
    items.iter().filter_map(data).collect()
}

async fn events(rig: &Rig) -> Vec<Event> {
    rig.hub.journal().flush().await.unwrap();
    let mut events = rig
        .hub
        .journal()
        .recent_events("approval", 100)
        .await
        .unwrap();
    events.sort_by_key(|event| event.id);
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_with_what_was_shown_to_whoever_agreed() {
    let (rig, ran) = rig_with(answerable(), |call| match call.arguments.get("changed") {
        None => Verdict::Modify(json!({"changed": true, "token": "hunter2"})),
        Some(_) => Verdict::Allow,
    })
    .await;
    let stream = rig.open("probe.write", json!({"path": "a.md"})).await;
    let asked = pending(&rig).await;
    let shown = json!({"changed": true, "token": "[redacted]"});
    assert_eq!(asked["params"], shown);
    assert_eq!(asked["method"], "probe.write");
    assert_eq!(asked["path"], "probe");
    assert_eq!(asked["user"], "alice");
    assert_eq!(asked["state"], "pending");
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    let params = json!({"id": asked["id"], "reason": "as agreed"});
    let answered = rig.call("hub.approve", params).await.unwrap();
    assert_eq!(answered["state"], "approved");
    assert_eq!(answered["answered_by"], "alice");
    let items = soon(stream.collect()).await.unwrap();
    assert_eq!(check(&items), (DoneStatus::Complete, None));
    let request = of_type(&items, "ApprovalRequest");
    let message = "`probe.write` requires approval";
    assert_eq!(
        request,
        [
            &json!({"approval_id": asked["id"], "method": "probe.write", "plugin": null, "message": message, "params": shown})
        ]
    );
    let answer = of_type(&items, "ApprovalAnswer");
    assert_eq!(
        answer,
        [
            &json!({"approval_id": asked["id"], "state": "approved", "answered_by": "alice", "reason": "as agreed"})
        ]
    );
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    assert_eq!(
        data(&items).last().unwrap()["changed"],
        true,
        "it ran with what the gate made of it"
    );
    let told: Vec<(String, Value)> = events(&rig)
        .await
        .into_iter()
        .map(|event| (event.kind, event.payload["state"].clone()))
        .collect();
    assert_eq!(
        told,
        [
            ("approval.requested".to_owned(), json!("pending")),
            ("approval.answered".to_owned(), json!("approved")),
        ]
    );
    assert!(listed(&rig, alice(), json!({})).await.is_empty());
    assert_eq!(listed(&rig, alice(), json!({"all": true})).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gates_question_is_answered_from_wherever_the_call_comes() {
    let (rig, ran) = rig_with(answerable(), |call| match call.method.as_str() {
        "probe.tool" => Verdict::Ask("touch it?".to_owned()),
        _ => Verdict::Allow,
    })
    .await;
    let through = json!({"method": "probe.tool", "params": {}});
    for (method, params, path) in [
        ("probe.tool", json!({}), "probe"),
        ("probe.through", through, "probe.probe"),
    ] {
        let calling = rig.call(method, params);
        let answering = async {
            let asked = pending(&rig).await;
            assert_eq!(asked["plugin"], "probe");
            assert_eq!(asked["message"], "touch it?");
            assert_eq!(asked["path"], path);
            rig.call("hub.approve", json!({"id": asked["id"]}))
                .await
                .unwrap();
        };
        let (called, ()) = tokio::join!(calling, answering);
        called.unwrap();
    }
    assert_eq!(ran.load(Ordering::Relaxed), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_agree_says_why_and_nothing_runs() {
    let (rig, ran) = rig().await;
    let stream = rig.open("probe.write", json!({})).await;
    let id = pending(&rig).await["id"].clone();
    let params = json!({"id": id, "reason": "not today"});
    call(&rig, root(), "hub.deny", params).await.unwrap();
    let items = soon(stream.collect()).await.unwrap();
    let reason = "user `root` denied `probe.write`: not today".to_owned();
    assert_eq!(check(&items), (DoneStatus::Refused, Some(reason)));
    assert_eq!(codes(&items), [ErrorCode::Denied]);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_answers_exactly_one_counts_and_the_others_are_told_which() {
    let (rig, ran) = rig().await;
    let rig = Arc::new(rig);
    for round in 1.. {
        let stream = rig.open("probe.write", json!({})).await;
        let id = pending(&rig).await["id"].clone();
        let answers = (0..8).map(|n| {
            let (rig, id) = (Arc::clone(&rig), id.clone());
            tokio::spawn(async move {
                let who = if n % 4 < 2 { alice() } else { root() };
                let method = if n % 2 == 0 {
                    "hub.approve"
                } else {
                    "hub.deny"
                };
                call(&rig, who, method, json!({ "id": id })).await
            })
        });
        let answers: Vec<_> = join_all(answers)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let winners: Vec<&Value> = answers.iter().filter_map(|a| a.as_ref().ok()).collect();
        let [winner] = winners[..] else {
            panic!("several answers count: {answers:#?}");
        };
        for told in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            assert_eq!(told.code, ErrorCode::InvalidRequest);
            assert_eq!(told.data_value(), Some(winner));
            let by = winner["answered_by"].as_str().unwrap();
            let state = winner["state"].as_str().unwrap();
            let message = format!("user `{by}` has already answered: {state}");
            assert_eq!(told.message, message);
        }
        let items = soon(stream.collect()).await.unwrap();
        let agreed = winner["state"] == "approved";
        let status = if agreed {
            DoneStatus::Complete
        } else {
            DoneStatus::Refused
        };
        assert_eq!(check(&items).0, status);
        assert_eq!(ran.swap(0, Ordering::Relaxed), u32::from(agreed));
        assert_eq!(events(&rig).await.len(), 2 * round);
        if round == 10 {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_question_is_not_found_and_no_call_answers_its_own() {
    let (rig, _) = rig().await;
    let stream = rig.open("probe.write", json!({})).await;
    let id = pending(&rig).await["id"].clone();
    assert!(listed(&rig, bob(), json!({"all": true})).await.is_empty());
    assert!(listed(&rig, bob(), json!({ "id": id })).await.is_empty());
    for method in ["hub.approve", "hub.deny"] {
        let error = call(&rig, bob(), method, json!({ "id": id }))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
        let missing = json!({"id": "000000000000"});
        let error = call(&rig, alice(), method, missing).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
        let inside = json!({"method": method, "params": {"id": id}});
        let error = call(&rig, alice(), "probe.through", inside)
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::Forbidden);
        let error = call(&rig, alice(), method, json!({"id": "../x"}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
    }
    assert_eq!(pending(&rig).await["id"], id, "it still waits");
    call(&rig, root(), "hub.approve", json!({ "id": id }))
        .await
        .unwrap();
    let items = soon(stream.collect()).await.unwrap();
    assert_eq!(check(&items), (DoneStatus::Complete, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_stopped_takes_its_question_with_it() {
    let (rig, ran) = rig().await;
    let stream = rig.open("probe.write", json!({})).await;
    let id = pending(&rig).await["id"].clone();
    let target = CancelTarget::Stream(stream.stream());
    rig.hub.cancel(&alice(), &target).await.unwrap();
    let items = soon(stream.collect()).await.unwrap();
    assert_eq!(check(&items).0, DoneStatus::Cancelled);
    assert_eq!(settled(&rig, &id).await["state"], "cancelled");
    let late = call(&rig, alice(), "hub.approve", json!({ "id": id })).await;
    let message = "the approval is no longer pending: cancelled";
    assert_eq!(late.unwrap_err().message, message);
    // The same where the caller just goes away.
    let calling = rig
        .hub
        .call(Request::new(alice(), "probe.write", json!({})));
    let id = tokio::select! {
        called = calling => panic!("nobody agreed: {called:?}"),
        asked = pending(&rig) => asked["id"].clone(),
    };
    assert_eq!(settled(&rig, &id).await["state"], "cancelled");
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert_eq!(events(&rig).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_is_a_refusal_in_the_end() {
    let mut config = answerable();
    config.approvals.timeout = Duration::from_millis(30);
    let (rig, ran) = rig_with(config, |_| Verdict::Allow).await;
    let error = rig.call("probe.write", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    let message = "`probe.write` was not approved: no answer within 30ms";
    assert_eq!(error.message, message);
    let all = listed(&rig, alice(), json!({"all": true})).await;
    assert_eq!(all[0]["state"], "expired");
    assert_eq!(all[0]["answered_by"], Value::Null);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_answer_nobody_is_asked() {
    let (rig, ran) = rig_with(HubConfig::default(), |_| Verdict::Allow).await;
    let error = rig.call("probe.write", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ApprovalRequired);
    assert!(error.hint_text().unwrap().contains("dodona approvals"));
    assert!(listed(&rig, root(), json!({"all": true})).await.is_empty());
    assert!(events(&rig).await.is_empty());
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_call_and_of_those_above_it_stands_still_while_somebody_is_asked() {
    let (rig, _) = rig().await;
    // The tool has three seconds, and so has the call above it.
    let through = json!({"method": "probe.short", "params": {"n": 1}});
    let mut request = Request::new(alice(), "probe.through", through);
    request.timeout = Some(Duration::from_secs(3));
    let calling = soon(rig.hub.call(request));
    let answering = async {
        let id = pending(&rig).await["id"].clone();
        tokio::time::sleep(Duration::from_millis(3500)).await;
        rig.call("hub.approve", json!({ "id": id })).await.unwrap();
    };
    let (called, ()) = tokio::join!(calling, answering);
    assert_eq!(called.unwrap(), json!({"result": {"n": 1}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_an_agent_gives_a_tool_stands_still_too() {
    let (rig, _) = rig().await;
    let params = json!({"method": "probe.write", "timeout_ms": 3000});
    let calling = rig.call("probe.agent", params);
    let answering = async {
        let id = pending(&rig).await["id"].clone();
        tokio::time::sleep(Duration::from_millis(3500)).await;
        rig.call("hub.approve", json!({ "id": id })).await.unwrap();
    };
    let (called, ()) = tokio::join!(calling, answering);
    assert_eq!(called.unwrap(), json!({"result": {}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_has_the_time_and_the_snapshot_that_the_agent_gave_it() {
    let (rig, _) = rig().await;
    let hang = json!({"method": "probe.hang", "timeout_ms": 20});
    let error = rig.call("probe.agent", hang).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DeadlineExceeded);
    let message = "`probe.hang` timed out after 20ms";
    assert_eq!(error.message, message);
    // The call below the tool knows it as well; one that no agent made does not.
    let seen = json!({"method": "probe.seen_below", "timeout_ms": 60_000});
    let seen = rig.call("probe.agent", seen).await.unwrap();
    assert_eq!(seen["result"]["result"]["query"], "q-1");
    let seen = rig.call("probe.seen", json!({})).await.unwrap();
    assert_eq!(seen["query"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_stops_waits_for_no_answer() {
    let (rig, ran) = rig().await;
    let stream = rig.open("probe.write", json!({})).await;
    pending(&rig).await;
    // As long as it takes: what waits is not given that time.
    rig.hub.stop(Duration::from_secs(100_000)).await;
    let items = soon(stream.collect()).await.unwrap();
    let reason = "the server is stopping".to_owned();
    assert_eq!(check(&items), (DoneStatus::Cancelled, Some(reason)));
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_no_part_of_the_result() {
    let (rig, ran) = rig().await;
    let calling = rig.call("probe.silent", json!({}));
    let answering = async {
        let id = pending(&rig).await["id"].clone();
        rig.call("hub.approve", json!({ "id": id })).await.unwrap();
    };
    let (called, ()) = tokio::join!(calling, answering);
    assert_eq!(called.unwrap(), Value::Null);
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_may_want_to_be_asked_about_any_tool() {
    let mut config = answerable();
    config.approvals.approvers = Approvers::None;
    config.approvals.methods = ["probe.tool", "probe.through"]
        .map(|name| name.parse().unwrap())
        .into();
    let (rig, ran) = rig_with(config, |_| Verdict::Allow).await;
    let error = rig.call("probe.tool", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ApprovalRequired);
    // It is no tool, and so nobody's business but its caller's.
    let through = json!({"method": "hub.health", "params": {}});
    rig.call("probe.through", through).await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn what_agents_are_asked_about_is_everybody_elses_own_business() {
    let mut config = HubConfig::default();
    config.approvals.approvers = Approvers::None;
    let by_agent = json!({ "method": "probe.kept" });
    let (rig, _) = rig_with(config.clone(), |_| Verdict::Allow).await;
    rig.call("probe.kept", json!({})).await.unwrap();
    let through = json!({ "method": "probe.kept", "params": {} });
    rig.call("probe.through", through).await.unwrap();
    let error = rig.call("probe.agent", by_agent.clone()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ApprovalRequired);
    // Unless it is trusted, which no gate's question and no other setting is moved by.
    config.approvals.unattended = [
        "probe.kept".parse().unwrap(),
        "probe.write".parse().unwrap(),
    ]
    .into();
    let (rig, _) = rig_with(config.clone(), |_| Verdict::Allow).await;
    rig.call("probe.agent", by_agent.clone()).await.unwrap();
    let error = rig
        .call("probe.agent", json!({ "method": "probe.write" }))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ApprovalRequired);
    config.approvals.methods = ["probe.kept".parse().unwrap()].into();
    let (rig, _) = rig_with(config, |_| Verdict::Allow).await;
    let error = rig.call("probe.agent", by_agent).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ApprovalRequired);
}
