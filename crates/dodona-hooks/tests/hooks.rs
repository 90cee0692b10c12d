//! The contract of the hook registry, line by line.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dodona_hooks::point::{
    PostToolExecute, PreLlmCall, PreToolExecute, SystemPromptExtend, ToolRegistryBuild,
};
use dodona_hooks::{Fired, Hook, HookFailure, HookRegistry, Hooks, Point, Reply};
use dodona_proto::hook::{
    ModelCall, ModelCallEdit, ModelOptionsEdit, PromptEdit, ResultEdit, SystemPrompt, ToolAddition,
    ToolEnded, ToolEnding, ToolPending, ToolTable, Verdict,
};
use dodona_proto::{
    Effect, ExchangeRange, HistorySnapshot, HookPoint, Message, MethodName, Notification,
    PluginName, PluginPath, QuerySnapshot, StreamId, Surface, TurnSnapshot, UserId,
};
use serde_json::{Value, json};

fn plugin(name: &str) -> PluginName {
    PluginName::new(name).unwrap()
}

fn user() -> UserId {
    "alice".parse().unwrap()
}

fn prompt(text: &str) -> SystemPrompt {
    SystemPrompt {
        query_id: None,
        context_id: None,
        user: user(),
        project: None,
        prompt: text.to_owned(),
    }
}

fn pending() -> ToolPending {
    ToolPending {
        call_id: StreamId::random().root_call(),
        path: PluginPath::root(&plugin("vault")),
        method: MethodName::new("vault.write").unwrap(),
        tool_name: "vault_write".to_owned(),
        arguments: json!({ "n": 0 }),
        user: user(),
        surface: Surface::Rpc,
        project: None,
        snapshot: None,
        ask: None,
        answer: None,
        denied: None,
    }
}

/// Appends a word to the prompt.
fn word(word: &'static str) -> Hook {
    Hook::inline::<SystemPromptExtend>(move |system| {
        let prompt = format!("{} {word}", system.prompt);
        Ok(Reply::edit(PromptEdit::Replace(prompt)))
    })
}

fn frozen(hooks: Vec<(&str, Hook)>) -> Hooks {
    let mut registry = HookRegistry::default();
    for (name, hook) in hooks {
        registry.register(&plugin(name), hook);
    }
    registry.freeze()
}

async fn said(hooks: &Hooks) -> String {
    hooks
        .fire::<SystemPromptExtend>(prompt("so"))
        .await
        .payload
        .prompt
}

async fn judged(hooks: Vec<(&str, Hook)>) -> ToolPending {
    frozen(hooks)
        .fire::<PreToolExecute>(pending())
        .await
        .payload
}

#[tokio::test]
async fn callbacks_run_by_priority_then_plugin_then_registration() {
    let hooks = frozen(vec![
        ("zeta", word("4")),
        ("alpha", word("2")),
        ("alpha", word("3")),
        ("omega", word("1").priority(5)),
        ("beta", word("5").priority(200)),
    ]);
    assert_eq!(said(&hooks).await, "so 1 2 3 4 5");
}

#[tokio::test]
async fn before_and_after_beat_priorities() {
    let hooks = frozen(vec![
        ("alpha", word("a").after(plugin("omega"))),
        ("beta", word("b")),
        ("omega", word("o").priority(900)),
        ("zeta", word("z").priority(1000).before(plugin("beta"))),
    ]);
    assert_eq!(said(&hooks).await, "so o a z b");
}

#[tokio::test]
async fn wishes_in_a_circle_lose_nobody() {
    let hooks = frozen(vec![
        ("alpha", word("a").after(plugin("beta"))),
        ("beta", word("b").after(plugin("alpha"))),
    ]);
    assert_eq!(said(&hooks).await, "so a b");
}

#[tokio::test]
async fn a_callback_that_fails_or_panics_changes_nothing_and_the_others_go_on() {
    let hooks = frozen(vec![
        ("a", word("1")),
        (
            "b",
            Hook::inline::<SystemPromptExtend>(|_| Err(HookFailure::new("no"))),
        ),
        ("c", Hook::inline::<SystemPromptExtend>(|_| panic!("boom"))),
        (
            "d",
            Hook::waiting::<SystemPromptExtend, _>(|_| async { panic!("later") }),
        ),
        ("e", word("2")),
    ]);
    assert_eq!(said(&hooks).await, "so 1 2");
    let failed: Vec<_> = hooks
        .recent(10)
        .into_iter()
        .filter_map(|record| Some((record.plugin.to_string(), record.hook, record.error?)))
        .collect();
    let at = HookPoint::SystemPromptExtend;
    let expected = [("b", "no"), ("c", "it panicked"), ("d", "it panicked")];
    assert_eq!(
        failed,
        expected.map(|(who, why)| (who.to_owned(), at, why.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_late_callback_is_dropped_and_its_edit_is_not_applied() {
    let slow = Hook::waiting::<SystemPromptExtend, _>(|_| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(Reply::edit(PromptEdit::Replace("late".to_owned())))
    });
    let hooks = frozen(vec![
        ("a", slow.timeout(Duration::from_secs(2))),
        ("b", word("b")),
    ]);
    assert_eq!(said(&hooks).await, "so b");
    assert_eq!(hooks.recent(1)[0].plugin, plugin("b"));
    assert_eq!(
        hooks.recent(2)[0].error.as_deref(),
        Some("it took longer than 2s")
    );
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_keeps_failing_is_left_alone_for_a_while() {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let bad = Hook::inline::<SystemPromptExtend>(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(HookFailure::new("no"))
    });
    let hooks = frozen(vec![("bad", bad), ("good", word("g"))]);
    for _ in 0..9 {
        assert_eq!(said(&hooks).await, "so g");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 5);
    assert_eq!(hooks.list()[0].runs, 5);
    assert_eq!(hooks.list()[1].runs, 9);
    tokio::time::advance(Duration::from_secs(31)).await;
    said(&hooks).await;
    said(&hooks).await;
    assert_eq!(asked.load(Ordering::Relaxed), 6);
}

#[tokio::test]
async fn an_absent_value_keeps_the_prompt_and_only_a_replacement_empties_it() {
    let keeps = Hook::inline::<SystemPromptExtend>(|_| Ok(Reply::none()));
    assert_eq!(said(&frozen(vec![("a", keeps)])).await, "so");
    let appends =
        Hook::inline::<SystemPromptExtend>(|_| Ok(Reply::edit(PromptEdit::Append("on".into()))));
    assert_eq!(said(&frozen(vec![("a", appends)])).await, "so\n\non");
    let empties =
        Hook::inline::<SystemPromptExtend>(|_| Ok(Reply::edit(PromptEdit::Replace(String::new()))));
    assert_eq!(said(&frozen(vec![("a", empties)])).await, "");
}

#[tokio::test]
async fn what_is_unregistered_is_gone_from_the_next_freeze_and_not_from_the_last() {
    let mut registry = HookRegistry::default();
    registry.register(&plugin("a"), word("a"));
    let second = registry.register(&plugin("b"), word("b"));
    registry.register(&plugin("c"), word("c"));
    let before = registry.freeze();
    assert!(registry.unregister(second));
    assert!(!registry.unregister(second));
    assert_eq!(said(&registry.freeze()).await, "so a c");
    registry.unregister_all(&plugin("a"));
    assert_eq!(said(&registry.freeze()).await, "so c");
    assert_eq!(said(&before).await, "so a b c");
}

fn verdict(verdict: Verdict) -> Hook {
    Hook::inline::<PreToolExecute>(move |_| Ok(Reply::edit(verdict.clone())))
}

#[tokio::test]
async fn a_refusal_beats_an_answer_and_a_question_that_came_first() {
    let answer = || ("a", verdict(Verdict::Answer(json!(1))));
    let ask = || ("b", verdict(Verdict::Ask("sure?".into())));
    let unasked = Hook::inline::<PreToolExecute>(|_| panic!("not come to"));
    let denied = judged(vec![
        answer(),
        ask(),
        ("c", verdict(Verdict::Deny("no".into()))),
        ("d", unasked),
    ])
    .await;
    assert_eq!(denied.denied, Some((plugin("c"), "no".to_owned())));
    let asked = judged(vec![
        answer(),
        ask(),
        ("c", verdict(Verdict::Ask("also?".into()))),
    ])
    .await;
    assert_eq!(asked.ask, Some((plugin("b"), "sure?".to_owned())));
    let answered = judged(vec![answer(), ("b", verdict(Verdict::Answer(json!(2))))]).await;
    assert_eq!(answered.answer, Some((plugin("a"), json!(1))));
}

#[tokio::test]
async fn each_gate_sees_what_the_one_before_made_of_the_arguments() {
    let more = |digit: u64| {
        Hook::inline::<PreToolExecute>(move |call| {
            let n = call.arguments["n"].as_u64().unwrap() * 10 + digit;
            Ok(Reply::edit(Verdict::Modify(json!({ "n": n }))))
        })
    };
    let call = judged(vec![("a", more(1)), ("b", more(2)), ("a", more(3))]).await;
    assert_eq!(call.arguments, json!({ "n": 132 }));
}

#[tokio::test(start_paused = true)]
async fn a_gate_fails_open_or_closed_as_it_declares_however_it_fails() {
    let failing = || {
        [
            Hook::inline::<PreToolExecute>(|_| Err(HookFailure::new("no"))),
            Hook::inline::<PreToolExecute>(|_| panic!("boom")),
            Hook::waiting::<PreToolExecute, _>(|_| std::future::pending()),
        ]
    };
    for gate in failing() {
        assert_eq!(judged(vec![("bad", gate)]).await.denied, None);
    }
    for gate in failing() {
        let call = judged(vec![("bad", gate.fail_closed())]).await;
        let said = "the gate of plugin `bad` failed".to_owned();
        assert_eq!(call.denied, Some((plugin("bad"), said)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_must_not_fail_refuses_while_it_is_left_alone() {
    let gate = Hook::inline::<PreToolExecute>(|_| Err(HookFailure::new("no"))).fail_closed();
    let hooks = frozen(vec![("bad", gate)]);
    for _ in 0..8 {
        assert!(
            hooks
                .fire::<PreToolExecute>(pending())
                .await
                .payload
                .denied
                .is_some()
        );
    }
}

#[tokio::test]
async fn effects_come_in_order_with_the_name_of_who_wants_them() {
    let notify = |text: &'static str| {
        Hook::inline::<PreToolExecute>(move |_| {
            Ok(Reply::none().effect(Effect::NotifySelf(Notification::new(text))))
        })
    };
    let hooks = frozen(vec![("b", notify("two")), ("a", notify("one"))]);
    let Fired { effects, .. } = hooks.fire::<PreToolExecute>(pending()).await;
    let who: Vec<_> = effects
        .iter()
        .map(|effect| effect.plugin.as_str())
        .collect();
    assert_eq!(who, ["a", "b"]);
    assert_eq!(
        effects[0].effect,
        Effect::NotifySelf(Notification::new("one"))
    );
}

#[tokio::test]
async fn tools_are_collected() {
    let adds = |method: &'static str| {
        Hook::inline::<ToolRegistryBuild>(move |_| {
            let method = MethodName::new(method).unwrap();
            Ok(Reply::edit(vec![ToolAddition {
                method,
                description: None,
            }]))
        })
    };
    let hooks = frozen(vec![("a", adds("x.one")), ("b", adds("x.two"))]);
    let table = ToolTable {
        user: "ada".parse().unwrap(),
        project: None,
        agent: "oracle".into(),
        methods: Vec::new(),
        added: Vec::new(),
    };
    let added = hooks.fire::<ToolRegistryBuild>(table).await.payload.added;
    let names: Vec<_> = added.iter().map(|tool| tool.method.as_str()).collect();
    assert_eq!(names, ["x.one", "x.two"]);
}

fn snapshot() -> Arc<QuerySnapshot> {
    Arc::new(QuerySnapshot {
        query_id: "q".into(),
        context_id: "c".into(),
        user: user(),
        project: None,
        turn: TurnSnapshot {
            number: 1,
            iteration_count: 1,
            max_iterations: 30,
            token_usage: 0.1,
            context_usage: 0.1,
        },
        tokens_used: 10,
        token_budget: 100,
        history: HistorySnapshot::default(),
        exchanges: ExchangeRange::default(),
    })
}

#[tokio::test]
async fn a_request_can_lose_tools_but_not_gain_them() {
    let call = ModelCall {
        snapshot: snapshot(),
        model: "m".into(),
        system: "s".into(),
        messages: Vec::new(),
        tools: vec!["a".into(), "b".into()],
        options: ModelOptionsEdit::default(),
    };
    let edit = ModelCallEdit {
        append: vec![Message::User {
            content: "more".into(),
        }],
        tools: Some(vec!["b".into(), "c".into()]),
        ..ModelCallEdit::default()
    };
    let hook = Hook::inline::<PreLlmCall>(move |_| Ok(Reply::edit(edit.clone())));
    let call = frozen(vec![("a", hook)])
        .fire::<PreLlmCall>(call)
        .await
        .payload;
    assert_eq!(call.tools, ["b"]);
    assert_eq!(call.messages.len(), 1);
}

fn ended(ending: ToolEnding) -> ToolEnded {
    let call = pending();
    ToolEnded {
        call_id: call.call_id,
        path: call.path,
        method: call.method,
        tool_name: call.tool_name,
        arguments: call.arguments,
        user: call.user,
        surface: call.surface,
        project: None,
        snapshot: None,
        ending,
        answered: false,
        result: Value::Null,
        error: None,
        duration_ms: 1.0,
    }
}

#[tokio::test]
async fn a_result_can_be_changed_but_an_error_cannot_be_made_one() {
    let hook = || {
        Hook::inline::<PostToolExecute>(|_| {
            Ok(Reply::edit(ResultEdit {
                result: json!("new"),
            }))
        })
    };
    let hooks = frozen(vec![("a", hook())]);
    let good = hooks
        .fire::<PostToolExecute>(ended(ToolEnding::Success))
        .await;
    assert_eq!(good.payload.result, json!("new"));
    let bad = hooks
        .fire::<PostToolExecute>(ended(ToolEnding::Denied))
        .await;
    assert_eq!(bad.payload.result, Value::Null);
}

#[tokio::test]
async fn plugins_from_outside_register_by_name_and_speak_json() {
    let seen = Arc::new(Mutex::new(Value::Null));
    let shown = Arc::clone(&seen);
    let hook = Hook::foreign(HookPoint::PreToolExecute, move |payload| {
        *shown.lock().unwrap() = payload;
        Box::pin(async {
            Ok(json!({
                "edit": { "modify": { "n": 7 } },
                "effects": [{ "type": "log", "message": "seen" }],
            }))
        })
    });
    let fired = frozen(vec![("out", hook)])
        .fire::<PreToolExecute>(pending())
        .await;
    assert_eq!(fired.payload.arguments, json!({ "n": 7 }));
    assert_eq!(fired.effects.len(), 1);
    let seen = seen.lock().unwrap();
    assert_eq!(
        (&seen["tool_name"], &seen["arguments"]["n"]),
        (&json!("vault_write"), &json!(0))
    );
}

#[tokio::test]
async fn an_answer_from_outside_that_does_not_fit_is_a_failure() {
    for answer in [
        json!({ "edit": { "modfy": 1 } }),
        json!({ "edits": {} }),
        json!(3),
    ] {
        let hook = Hook::foreign(HookPoint::PreToolExecute, move |_| {
            let answer = answer.clone();
            Box::pin(async move { Ok(answer) })
        });
        let hooks = frozen(vec![("out", hook)]);
        assert_eq!(
            hooks.fire::<PreToolExecute>(pending()).await.payload.denied,
            None
        );
        assert!(
            hooks.recent(1)[0]
                .error
                .as_deref()
                .unwrap()
                .contains("does not fit")
        );
    }
    for point in HookPoint::ALL {
        assert_eq!(
            Hook::foreign(point, |_| Box::pin(async { Ok(Value::Null) })).point(),
            point
        );
    }
}

#[tokio::test]
async fn nobody_is_asked_where_nobody_subscribed() {
    let hooks = frozen(vec![("a", word("a"))]);
    assert!(hooks.has_subscribers::<SystemPromptExtend>());
    assert!(!hooks.has_subscribers::<PreToolExecute>());
    let unbuilt = hooks
        .fire_with::<PreToolExecute>(|| panic!("was built"))
        .await;
    assert!(unbuilt.is_none());
    assert_eq!(PreToolExecute::POINT.as_str(), "PRE_TOOL_EXECUTE");
}

#[tokio::test]
async fn quiet_runs_are_counted_and_recorded_while_somebody_watches() {
    let quiet = || Hook::inline::<SystemPromptExtend>(|_| Ok(Reply::none())).named("quiet");
    let hooks = frozen(vec![("a", quiet())]);
    said(&hooks).await;
    assert_eq!((hooks.recent(9).len(), hooks.list()[0].runs), (0, 1));
    hooks.trace().watch(true);
    said(&hooks).await;
    assert_eq!((hooks.recent(9).len(), hooks.list()[0].runs), (1, 2));
    assert_eq!(hooks.recent(1)[0].name.as_deref(), Some("quiet"));
}

#[test]
fn many_threads_fire_while_new_sets_are_frozen() {
    let registry = Arc::new(Mutex::new(HookRegistry::default()));
    registry.lock().unwrap().register(&plugin("a"), word("a"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .build()
                    .unwrap();
                for _ in 0..500 {
                    let hooks = registry.lock().unwrap().freeze();
                    let text = runtime.block_on(said(&hooks));
                    assert!(text == "so a" || text == "so a b", "{text}");
                }
            });
        }
        for _ in 0..500 {
            let id = registry.lock().unwrap().register(&plugin("b"), word("b"));
            std::thread::yield_now();
            registry.lock().unwrap().unregister(id);
        }
    });
}
