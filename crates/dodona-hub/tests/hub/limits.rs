//! Rates and concurrency: who is charged for what, and when a place is given back.

use std::collections::HashMap;
use std::time::Duration;

use dodona_hub::{HubConfig, Limit, LimitsConfig, Request};
use dodona_plugin::{MethodSpec, Params};
use dodona_proto::{CallError, ErrorCode, PluginName};
use serde_json::{Value, json};

use crate::support::{Object, Rig, alice, bob, limits, object, soon, spec, unary, until};

const NONE: Limit = Limit {
    per_second: 0,
    burst: 0,
    concurrent: 0,
};

fn at_once(concurrent: u32) -> Limit {
    Limit { concurrent, ..NONE }
}

/// So few that a second one never comes within a test.
fn once() -> Limit {
    Limit {
        per_second: 1,
        burst: 1,
        concurrent: 0,
    }
}

fn of(plugin: &str, limit: Limit) -> HashMap<PluginName, Limit> {
    HashMap::from([(plugin.parse().unwrap(), limit)])
}

#[track_caller]
fn assert_refused(error: &CallError, code: &ErrorCode, whose: &str) {
    assert_eq!(error.code, *code);
    assert!(error.retryable);
    assert!(error.message.contains(whose), "{}", error.message);
    let wait = error.data_value().unwrap()["retry_after_ms"]
        .as_u64()
        .unwrap();
    assert!((1..=1_000).contains(&wait), "{wait}");
    assert!(error.hint_text().unwrap().contains(&wait.to_string()));
}

async fn say(rig: &Rig, who: std::sync::Arc<dodona_proto::Principal>) -> Result<Value, CallError> {
    rig.hub
        .call(Request::new(who, "echo.say", json!({"text": ""})))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_users_rate_is_bounded_and_nested_calls_are_not_charged() {
    let config = limits(|limits| limits.user = once());
    let rig = Rig::with(config, Vec::new()).await;
    // One call, a hundred below it.
    let nest = json!({"depth": 1, "width": 100});
    soon(rig.hub.call(Request::new(alice(), "echo.nest", nest)))
        .await
        .unwrap();
    assert_refused(
        &say(&rig, alice()).await.unwrap_err(),
        &ErrorCode::RateLimited,
        "user `alice`",
    );
    // Unknown methods are charged too: guessing is not free.
    let unknown = rig
        .hub
        .call(Request::new(alice(), "echo.sya", json!({})))
        .await
        .unwrap_err();
    assert_eq!(unknown.code, ErrorCode::RateLimited);
    say(&rig, bob()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugins_rate_is_bounded_for_all_and_nested_calls_count() {
    let config = limits(|limits| limits.plugin = of("echo", Limit { burst: 3, ..once() }));
    let rig = Rig::with(config, Vec::new()).await;
    let nest = json!({"depth": 1, "width": 5});
    let error = soon(rig.hub.call(Request::new(alice(), "echo.nest", nest)))
        .await
        .unwrap_err();
    assert_refused(&error, &ErrorCode::RateLimited, "plugin `echo`");
    let error = say(&rig, bob()).await.unwrap_err();
    assert_refused(&error, &ErrorCode::RateLimited, "plugin `echo`");
    rig.call("hub.health", json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_rate_at_one_plugin_is_bounded_and_uses_up_nothing_of_the_others() {
    let config = limits(|limits: &mut LimitsConfig| {
        limits.user_and_plugin = of("echo", once());
        limits.plugin = of("echo", Limit { burst: 2, ..once() });
    });
    let rig = Rig::with(config, Vec::new()).await;
    say(&rig, alice()).await.unwrap();
    for _ in 0..5 {
        let error = say(&rig, alice()).await.unwrap_err();
        assert_refused(
            &error,
            &ErrorCode::RateLimited,
            "user `alice` at plugin `echo`",
        );
    }
    say(&rig, bob()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_are_bounded_for_user_plugin_and_pair() {
    type Change = fn(&mut LimitsConfig);
    let cases: [(Change, &str, bool); 3] = [
        (|limits| limits.user = at_once(2), "user `alice`", true),
        (
            |limits| limits.plugin = of("echo", at_once(2)),
            "plugin `echo`",
            false,
        ),
        (
            |limits| limits.user_and_plugin = of("echo", at_once(2)),
            "user `alice` at plugin `echo`",
            true,
        ),
    ];
    for (change, whose, bob_may) in cases {
        let rig = Rig::with(limits(change), Vec::new()).await;
        let first = rig.open("echo.slow", json!({"ms": 60_000})).await;
        let second = rig.open("echo.slow", json!({"ms": 60_000})).await;
        let error = say(&rig, alice()).await.unwrap_err();
        assert_refused(&error, &ErrorCode::TooManyCalls, whose);
        assert_eq!(say(&rig, bob()).await.is_ok(), bob_may, "{whose}");
        drop(first);
        until(|| rig.hub.calls(&alice()).len() == 1).await;
        soon(async {
            while say(&rig, alice()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        drop(second);
    }
}

/// Bounds of one call at a time everywhere, so that a place which is not given back is missed by
/// the next call.
fn one_at_a_time() -> HubConfig {
    limits(|limits| {
        limits.user = at_once(1);
        limits.plugin = of("probe", at_once(1));
        limits.user_and_plugin = of("probe", at_once(1));
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_given_back_however_a_call_ends() {
    let bound = MethodSpec {
        timeout_ms: Some(10),
        ..spec("probe.bound")
    };
    let mutating = MethodSpec {
        mutates: true,
        ..spec("probe.mutate")
    };
    let rig = Rig::probe_with(
        one_at_a_time(),
        vec![
            unary(spec("probe.fine"), |_, _| async { Ok(Object::new()) }),
            unary(spec("probe.fail"), |_, _| async {
                Err(CallError::plugin("probe.failed", "no"))
            }),
            unary(spec("probe.panic"), |_, _| async { panic!("as asked") }),
            unary(bound, |_, _| std::future::pending()),
            unary(spec("probe.slow"), |_, _| std::future::pending()),
            unary(mutating, |_, _| async { Ok(Object::new()) }),
            unary(spec("probe.nested"), |ctx, _| async move {
                // The only place at this plugin is taken by the call itself.
                let refused = ctx.call_value("probe.fine", Params::code(json!({}))).await;
                Ok(object(json!({ "refused": refused.unwrap_err().code })))
            }),
        ],
    )
    .await;
    let free = async |after: &str| {
        // Places go back when the call has ended, which a dropped stream does not wait for.
        soon(async {
            while let Err(error) = rig
                .hub
                .call(Request::new(alice(), "probe.fine", json!({})))
                .await
            {
                assert_eq!(error.code, ErrorCode::TooManyCalls, "after {after}");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    };
    for method in ["fine", "fail", "panic", "bound", "mutate", "missing"] {
        let name = format!("probe.{method}");
        let _ = rig.call(&name, json!({})).await;
        free(&name).await;
        if let Ok(stream) = rig.hub.open(Request::new(alice(), &name, json!({}))).await {
            soon(stream.collect()).await.unwrap();
        }
        free(&name).await;
    }
    let call = rig.hub.call(Request::new(alice(), "probe.slow", json!({})));
    assert!(
        tokio::time::timeout(Duration::from_millis(10), call)
            .await
            .is_err()
    );
    free("a dropped call").await;
    drop(rig.open("probe.slow", json!({})).await);
    free("a dropped stream").await;
    let nested = rig.call("probe.nested", json!({})).await.unwrap();
    assert_eq!(nested, json!({"refused": "limit.concurrency"}));
    free("a refused nested call").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_told_with_the_room_that_the_journal_has_used() {
    let config = limits(|limits: &mut LimitsConfig| {
        limits.user = at_once(7);
        limits.plugin = of("echo", once());
    });
    let rig = Rig::with(config, Vec::new()).await;
    let before = rig.call("hub.limits", json!({})).await.unwrap();
    assert_eq!(before["user"]["concurrent"], 7);
    assert_eq!(before["plugins"]["echo"]["per_second"], 1);
    assert_eq!(before["plugins_for_each_user"], json!({}));
    assert_eq!(before["unary_timeout_ms"], 60_000);
    rig.call("echo.tally", json!({})).await.unwrap();
    let after = rig.call("hub.limits", json!({})).await.unwrap();
    let bytes = |told: &Value| told["journal"]["bytes"].as_u64().unwrap();
    assert!(bytes(&after) > bytes(&before), "{before} {after}");
    assert!(bytes(&after) <= after["journal"]["max_bytes"].as_u64().unwrap());
    assert!(after["journal"]["oldest"].is_string(), "{after}");
}
