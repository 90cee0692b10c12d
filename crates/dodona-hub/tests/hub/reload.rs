//! Plugins that come, change and go while calls run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dodona_hub::{PluginHub, Request};
use dodona_plugin::hooks::{Hook, Reply, point};
use dodona_plugin::{CallError, Contribution, Plugin};
use dodona_proto::{ErrorCode, PluginState};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::homes::{Home, Made, ask, assert_status, stop};
use crate::support::{Object, limits, object, root, soon, spec, unary, until};

use PluginState::{Active, Disabled, Failed, SkippedDependency};

const COUNTED: &str = "[plugin.counted]\nenabled = true\nmodule = \"builtin:counted\"\n";

/// How often something happened.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU64>);

impl Count {
    fn up(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A plugin `counted` whose method tells in which life it is.
fn counted(lives: &Count, ends: &Count) -> Arc<dyn Plugin> {
    let (lives, ends) = (lives.clone(), ends.clone());
    Made::new("counted")
        .activate(move |_| {
            let life = lives.up();
            let mut life_spec = spec("counted.life");
            life_spec.scope = Some("counted:use");
            let method = unary(life_spec, move |_, _| async move {
                Ok(object(json!({ "life": life })))
            });
            let hook = Hook::inline::<point::PreToolExecute>(|_| Ok(Reply::none()));
            Ok(Contribution::new().methods([method]).hook(hook))
        })
        .deactivate(move || {
            ends.up();
        })
        .done()
}

async fn reload(hub: &PluginHub) -> Value {
    ask(hub, "plugins.reload", json!({})).await.unwrap()
}

async fn life(hub: &PluginHub) -> Result<u64, CallError> {
    let answer = ask(hub, "counted.life", json!({})).await?;
    Ok(answer["life"].as_u64().unwrap())
}

async fn hooks(hub: &PluginHub) -> usize {
    let traced = ask(hub, "plugins.trace", json!({})).await.unwrap();
    traced["hooks"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_changed_is_activated_again() {
    let (lives, ends) = (Count::default(), Count::default());
    let others = Count::default();
    let other = {
        let others = others.clone();
        Made::new("other").activate(move |_| {
            others.up();
            Ok(Contribution::new())
        })
    };
    let home = Home::new();
    let hub = home.start(vec![counted(&lives, &ends), other.done()]).await;
    let reloaded = reload(&hub).await;
    assert_eq!(reloaded["activated"], json!([]));
    assert_eq!(
        reloaded["kept"],
        json!(["counted", "hub", "other", "plugins"])
    );
    home.write("plugins/counted.toml", "anything = 1\n");
    let reloaded = reload(&hub).await;
    assert_eq!(reloaded["activated"], json!(["counted"]));
    assert_eq!((lives.get(), others.get()), (2, 1));
    assert_eq!(life(&hub).await.unwrap(), 2);
    assert_eq!(ends.get(), 0, "an instance that lives on is not let go");
    assert_eq!(hooks(&hub).await, 1);
    stop(hub).await;
    assert_eq!(ends.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_disabled_is_gone_with_its_methods_and_hooks_until_it_is_enabled() {
    let (lives, ends) = (Count::default(), Count::default());
    let home = Home::with_roster("# mine\n");
    let needs = Made::new("needs").needs(&["counted"]).done();
    let hub = home.start(vec![counted(&lives, &ends), needs]).await;
    assert_eq!(hooks(&hub).await, 1);
    let status = ask(&hub, "plugins.disable", json!({"plugin": "counted"}))
        .await
        .unwrap();
    assert_eq!(status["state"], "disabled");
    assert_status(&hub, "counted", Disabled, "dodona plugins enable counted");
    assert_status(
        &hub,
        "needs",
        SkippedDependency,
        "needs counted, which is disabled",
    );
    assert_eq!(
        life(&hub).await.unwrap_err().code,
        ErrorCode::PluginNotActive
    );
    assert_eq!(hooks(&hub).await, 0);
    until(|| ends.get() == 1).await;
    let expected = "# mine\n\n[plugin.counted]\nenabled = false\nmodule = \"builtin:counted\"\n";
    assert_eq!(home.read("plugins.toml"), expected);
    ask(&hub, "plugins.enable", json!({"plugin": "counted"}))
        .await
        .unwrap();
    assert_eq!(life(&hub).await.unwrap(), 2);
    assert_status(&hub, "needs", Active, "");
    stop(hub).await;
    let hub = home.start(vec![counted(&lives, &ends)]).await;
    assert_status(&hub, "counted", Active, "");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_runs_ends_on_what_it_began_with_and_only_then_its_plugin_is_let_go() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gone = Arc::new(AtomicBool::new(false));
    let slow = {
        let (begun, go, gone) = (Arc::clone(&begun), Arc::clone(&go), Arc::clone(&gone));
        Made::new("probe")
            .activate(move |_| {
                let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
                let wait = unary(spec("probe.wait"), move |_, _| {
                    let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
                    async move {
                        begun.notify_one();
                        go.notified().await;
                        Ok(object(json!({ "done": true })))
                    }
                });
                Ok(Contribution::new().methods([wait]))
            })
            .deactivate(move || gone.store(true, Ordering::SeqCst))
    };
    let home = Home::new();
    let hub = home.start(vec![slow.done()]).await;
    let running = tokio::spawn({
        let hub = hub.clone();
        async move {
            hub.call(Request::new(root(), "probe.wait", json!({})))
                .await
        }
    });
    soon(begun.notified()).await;
    ask(&hub, "plugins.disable", json!({"plugin": "probe"}))
        .await
        .unwrap();
    let refused = ask(&hub, "probe.wait", json!({})).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::PluginNotActive);
    assert!(!gone.load(Ordering::SeqCst), "a call of it still runs");
    go.notify_one();
    assert_eq!(soon(running).await.unwrap().unwrap()["done"], true);
    until(|| gone.load(Ordering::SeqCst)).await;
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_roster_that_cannot_be_read_changes_nothing_and_says_so() {
    let (lives, ends) = (Count::default(), Count::default());
    let home = Home::with_roster(COUNTED);
    let hub = home.start(vec![counted(&lives, &ends)]).await;
    home.write("plugins.toml", "[plugin.counted\n");
    let reloaded = reload(&hub).await;
    assert!(
        reloaded["refused"]
            .as_str()
            .unwrap()
            .contains("plugins.toml:1:")
    );
    assert_eq!(life(&hub).await.unwrap(), 1);
    let error = ask(&hub, "plugins.disable", json!({"plugin": "counted"}))
        .await
        .unwrap_err();
    assert!(error.message.contains("correct it first"), "{error}");
    assert_eq!(home.read("plugins.toml"), "[plugin.counted\n");
    home.write("plugins.toml", &COUNTED.replace("true", "false"));
    assert_eq!(reload(&hub).await["deactivated"], json!(["counted"]));
    home.write("plugins.toml", COUNTED);
    home.write("plugins/counted.toml", "broken = ");
    reload(&hub).await;
    assert_status(&hub, "counted", Failed, "counted.toml:1:");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_come_and_go() {
    let home = Home::new();
    let hub = home.start(vec![Made::new("one").done()]).await;
    home.plugin_dir("new", "");
    assert_eq!(reload(&hub).await["activated"], json!(["new"]));
    home.plugin_dir("new", "description = \"changed\"\n");
    assert_eq!(reload(&hub).await["activated"], json!(["new"]));
    std::fs::remove_dir_all(home.config("plugins/new")).unwrap();
    assert_eq!(reload(&hub).await["deactivated"], json!(["new"]));
    assert!(!hub.is_active("new"));
    let info = ask(&hub, "plugins.info", json!({"plugin": "new"}))
        .await
        .unwrap_err();
    assert_eq!(info.code, ErrorCode::NotFound);
    stop(hub).await;
}

/// Snapshots are swapped as fast as can be while many calls are made: each call finds a plugin
/// that is whole, or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_and_reloads_at_the_same_time() {
    let busy = Made::new("probe").activate(move |ctx| {
        let life = ctx.config.get("life").cloned().unwrap_or_default();
        let make = |name: &'static str| {
            let life = life.clone();
            unary(spec(name), move |ctx, _| {
                let life = life.clone();
                async move {
                    tokio::task::yield_now().await;
                    let said = json!({ "text": "x" });
                    ctx.call::<Object>("echo.say", said).await?;
                    Ok(object(json!({ "life": life })))
                }
            })
        };
        Ok(Contribution::new().methods([make("probe.one"), make("probe.two")]))
    });
    let home = Home::new();
    let echo: Arc<dyn Plugin> = Arc::new(dodona_hub::echo::EchoPlugin::default());
    let unlimited = limits(|limits| limits.user.per_second = 0);
    let hub = home.start_with(unlimited, vec![busy.done(), echo]).await;
    let over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..8)
        .map(|number| {
            let (hub, over) = (hub.clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let method = if number % 2 == 0 {
                    "probe.one"
                } else {
                    "probe.two"
                };
                let (mut well, mut refused) = (0_u64, 0_u64);
                while !over.load(Ordering::SeqCst) {
                    match hub.call(Request::new(root(), method, json!({}))).await {
                        Ok(_) => well += 1,
                        Err(error) if error.code == ErrorCode::PluginNotActive => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                    tokio::task::yield_now().await;
                }
                (well, refused)
            })
        })
        .collect();
    for round in 0..40 {
        home.write("plugins/probe.toml", &format!("life = {round}\n"));
        reload(&hub).await;
        let method = if round % 2 == 0 {
            "plugins.disable"
        } else {
            "plugins.enable"
        };
        ask(&hub, method, json!({"plugin": "probe"})).await.unwrap();
    }
    assert_eq!(
        ask(&hub, "probe.one", json!({})).await.unwrap()["life"],
        39,
        "the last one counts"
    );
    over.store(true, Ordering::SeqCst);
    let (mut well, mut refused) = (0, 0);
    for caller in callers {
        let (fine, not) = soon(caller).await.unwrap();
        well += fine;
        refused += not;
    }
    assert!(well > 0 && refused > 0, "{well} and {refused}");
    stop(hub).await;
}
