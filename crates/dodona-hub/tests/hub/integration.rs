//! The hook points around a tool, fired by the hub for every call of one, whoever makes it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dodona_hooks::point::{PostToolExecute, PreToolExecute};
use dodona_hooks::{Hook, HookFailure, Reply};
use dodona_hub::{HubConfig, Request};
use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use dodona_proto::hook::{ResultEdit, ToolEnded, ToolEnding, Verdict};
use dodona_proto::{Effect, ErrorCode, Event, ItemBody, Principal, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Rig, user};

struct Tools;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Said {
    text: String,
}

#[plugin(name = "tools")]
impl Tools {
    /// Says it back.
    #[method(scope = "tools:use", tool(category = "meta"))]
    async fn say(&self, _ctx: &CallCtx, p: Text) -> Result<Said, CallError> {
        match p.text.as_str() {
            "fail" => Err(CallError::plugin("tools.broken", "it is broken")),
            "wait" => std::future::pending().await,
            text => Ok(Said {
                text: text.to_owned(),
            }),
        }
    }

    /// Has somebody else say it.
    #[method(scope = "tools:use")]
    async fn nested(&self, ctx: &CallCtx, p: Text) -> Result<Said, CallError> {
        let said: Value = ctx.call("tools.say", json!({ "text": p.text })).await?;
        Ok(Said {
            text: said["text"].as_str().unwrap_or_default().to_owned(),
        })
    }
}

type Hooks = Box<dyn Fn() -> Vec<Hook> + Send + Sync>;

struct ToolsPlugin(Hooks);

impl Plugin for ToolsPlugin {
    fn name(&self) -> &'static str {
        "tools"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let methods = Contribution::new().methods(Arc::new(Tools).plugin_methods()?);
            Ok((self.0)().into_iter().fold(methods, Contribution::hook))
        })
    }
}

fn alice() -> Arc<Principal> {
    user("alice", &["tools:use"])
}

struct Bench(Rig);

impl Bench {
    async fn new(hooks: impl Fn() -> Vec<Hook> + Send + Sync + 'static) -> Self {
        let plugin = Arc::new(ToolsPlugin(Box::new(hooks)));
        Self(Rig::with(HubConfig::default(), vec![plugin]).await)
    }

    async fn say(&self, text: &str) -> Result<Value, CallError> {
        let request = Request::new(alice(), "tools.say", json!({ "text": text }));
        self.0.hub.call(request).await
    }

    async fn events(&self) -> Vec<Event> {
        self.0.hub.journal().flush().await.unwrap();
        self.0
            .hub
            .journal()
            .recent_events("tool", 100)
            .await
            .unwrap()
    }
}

/// Every end that hooks were shown.
#[derive(Clone, Default)]
struct Ends(Arc<Mutex<Vec<ToolEnded>>>);

impl Ends {
    fn hook(&self) -> Hook {
        let ends = self.clone();
        Hook::inline::<PostToolExecute>(move |ended| {
            ends.0.lock().unwrap().push(ended.clone());
            Ok(Reply::none())
        })
    }

    fn endings(&self) -> Vec<ToolEnding> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|end| end.ending)
            .collect()
    }
}

fn verdict(verdict: Verdict) -> Hook {
    Hook::inline::<PreToolExecute>(move |_| Ok(Reply::edit(verdict.clone())))
}

#[tokio::test]
async fn every_ending_of_a_tool_is_shown_and_journaled_once() {
    let ends = Ends::default();
    let watched = ends.clone();
    let bench = Bench::new(move || vec![watched.hook()]).await;
    bench.say("hello").await.unwrap();
    bench.say("fail").await.unwrap_err();
    let mut late = Request::new(alice(), "tools.say", json!({ "text": "wait" }));
    late.timeout = Some(Duration::from_millis(20));
    bench.0.hub.call(late).await.unwrap_err();
    assert_eq!(
        ends.endings(),
        [ToolEnding::Success, ToolEnding::Error, ToolEnding::Timeout]
    );
    let kinds: Vec<String> = bench
        .events()
        .await
        .into_iter()
        .map(|event| event.kind)
        .collect();
    let (pending, success, failure) = (
        "tool.call.pending",
        "tool.call.success",
        "tool.call.failure",
    );
    assert_eq!(
        kinds,
        [pending, success, pending, failure, pending, failure]
    );
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_ends_as_cancelled() {
    let ends = Ends::default();
    let watched = ends.clone();
    let bench = Bench::new(move || vec![watched.hook()]).await;
    let dropped = tokio::time::timeout(Duration::from_millis(20), bench.say("wait")).await;
    assert!(dropped.is_err());
    while ends.endings().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ends.endings(), [ToolEnding::Cancelled]);
    let events = bench.events().await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[1].payload["ending"], "cancelled");
}

#[tokio::test]
async fn what_is_denied_or_answered_does_not_run_and_is_shown_all_the_same() {
    let ends = Ends::default();
    let watched = ends.clone();
    let bench = Bench::new(move || {
        let gate = Hook::inline::<PreToolExecute>(|call| {
            Ok(match call.arguments["text"].as_str() {
                Some("no") => Reply::edit(Verdict::Deny("not that".to_owned())),
                Some("wait") => Reply::edit(Verdict::Answer(json!({ "text": "at once" }))),
                _ => Reply::none(),
            })
        });
        vec![gate, watched.hook()]
    })
    .await;
    let denied = bench.say("no").await.unwrap_err();
    assert_eq!(
        (denied.code, denied.message.as_str()),
        (ErrorCode::Denied, "not that")
    );
    assert_eq!(
        bench.say("wait").await.unwrap(),
        json!({ "text": "at once" })
    );
    let ends = ends.0.lock().unwrap();
    assert_eq!(
        (ends[0].ending, ends[0].answered),
        (ToolEnding::Denied, false)
    );
    assert_eq!(
        (ends[1].ending, ends[1].answered),
        (ToolEnding::Success, true)
    );
}

#[tokio::test]
async fn a_nested_call_has_no_side_door() {
    let bench = Bench::new(|| vec![verdict(Verdict::Deny("no".to_owned()))]).await;
    let request = Request::new(alice(), "tools.nested", json!({ "text": "hello" }));
    assert_eq!(
        bench.0.hub.call(request).await.unwrap_err().code,
        ErrorCode::Denied
    );
    let events = bench.events().await;
    assert_eq!(events[0].payload["path"], "tools.tools");
}

#[tokio::test]
async fn arguments_and_results_can_be_changed_and_watchers_see_the_changed_ones() {
    let ends = Ends::default();
    let watched = ends.clone();
    let bench = Bench::new(move || {
        let result = Hook::waiting::<PostToolExecute, _>(|ended| async move {
            let text = format!("{}!", ended.result["text"].as_str().unwrap());
            Ok(Reply::edit(ResultEdit {
                result: json!({ "text": text }),
            }))
        });
        vec![
            verdict(Verdict::Modify(json!({ "text": "changed" }))),
            result,
            watched.hook().priority(200),
        ]
    })
    .await;
    let request = Request::new(alice(), "tools.say", json!({ "text": "hello" }));
    let items = bench
        .0
        .hub
        .open(request)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    let data: Vec<_> = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Data { data, .. } => Some(data.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(data, [json!({ "text": "changed!" })]);
    assert_eq!(
        ends.0.lock().unwrap()[0].arguments,
        json!({ "text": "changed" })
    );
    let events = bench.events().await;
    assert_eq!(events[0].payload["arguments"]["text"], "hello");
    assert_eq!(events[1].payload["arguments"]["text"], "changed");
    assert_eq!(events[1].payload["result"]["text"], "changed!");
}

#[tokio::test]
async fn arguments_that_a_gate_broke_are_refused() {
    let bench = Bench::new(|| vec![verdict(Verdict::Modify(json!({ "txt": 1 })))]).await;
    assert_eq!(
        bench.say("hello").await.unwrap_err().code,
        ErrorCode::InvalidParams
    );
}

#[tokio::test]
async fn effects_are_carried_out_whoever_made_the_call() {
    let bench = Bench::new(|| {
        let emits = |kind: &str, payload: Value| Effect::EmitEvent {
            event_type: kind.to_owned(),
            payload,
        };
        vec![Hook::inline::<PreToolExecute>(move |_| {
            Ok(Reply::none()
                .effect(emits("custom.seen", json!({ "n": 1 })))
                .effect(emits("tool.call.success", Value::Null))
                .effect(emits("custom.bad", json!(3)))
                .effect(Effect::Log {
                    level: Severity::Info,
                    message: "seen".to_owned(),
                }))
        })]
    })
    .await;
    bench.say("hello").await.unwrap();
    bench.0.hub.journal().flush().await.unwrap();
    let custom = bench
        .0
        .hub
        .journal()
        .recent_events("custom", 10)
        .await
        .unwrap();
    assert_eq!(custom.len(), 1);
    assert_eq!(
        (custom[0].source.as_str(), &custom[0].payload),
        ("tools", &json!({ "n": 1 }))
    );
    assert_eq!(bench.events().await.len(), 2);
}

#[tokio::test]
async fn hooks_that_fail_affect_nobody_and_a_gate_that_must_not_fail_denies() {
    let bench = Bench::new(|| {
        vec![
            Hook::inline::<PreToolExecute>(|_| panic!("boom")),
            Hook::inline::<PostToolExecute>(|_| Err(HookFailure::new("no"))),
        ]
    })
    .await;
    assert_eq!(
        bench.say("hello").await.unwrap(),
        json!({ "text": "hello" })
    );
    let bench =
        Bench::new(|| vec![Hook::inline::<PreToolExecute>(|_| panic!("boom")).fail_closed()]).await;
    let denied = bench.say("hello").await.unwrap_err();
    assert_eq!(denied.message, "the gate of plugin `tools` failed");
}
