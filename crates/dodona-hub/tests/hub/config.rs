//! What plugins are set to: their files, what users choose, and what they are given.

use std::sync::{Arc, Mutex};

use dodona_hub::{HubConfig, PluginHub, Request};
use dodona_plugin::{Contribution, Plugin, PluginContext, Setting, SettingKind, Settings};
use dodona_proto::{ErrorCode, PluginState, Principal, UserId};
use serde_json::{Value, json};

use crate::homes::{Home, Made, ask, assert_status, stop};
use crate::support::{soon, user};

use PluginState::{Active, Failed};

fn declared() -> Settings {
    let mut tone = Setting::new(SettingKind::String, "dry", "How it speaks");
    tone.options = vec!["dry".to_owned(), "warm".to_owned()];
    Settings::from([
        (
            "most".to_owned(),
            Setting::new(SettingKind::Integer, 10, "How many").within(1.0, 50.0),
        ),
        ("tone".to_owned(), tone),
    ])
}

type Seen = Arc<Mutex<Option<PluginContext>>>;

/// A plugin `set` with settings, and what it was given.
fn set() -> (Arc<dyn Plugin>, Seen) {
    let seen = Seen::default();
    let given = Arc::clone(&seen);
    let plugin = Made::new("set").settings(declared()).activate(move |ctx| {
        *given.lock().unwrap() = Some(ctx);
        Ok(Contribution::new())
    });
    (plugin.done(), seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_given_its_settings_its_file_and_a_copy_of_the_users() {
    let home = Home::new();
    home.write("plugins/set.toml", "most = 20\n");
    let mut config = HubConfig::default();
    let global = json!({"agent": {"max_turns": 7}});
    config.global = global.as_object().unwrap().clone();
    let (plugin, seen) = set();
    let hub = home.start_with(config, vec![plugin]).await;
    let ctx = seen.lock().unwrap().take().unwrap();
    assert_eq!(
        json!(ctx.settings.values()),
        json!({"most": 20, "tone": "dry"})
    );
    assert_eq!(json!(*ctx.config), json!({"most": 20}));
    assert_eq!(json!(*ctx.system.config), global);
    assert_eq!(ctx.manifest.id.as_str(), "set");
    assert_eq!(ctx.manifest.version.to_string(), "1.0.0");
    assert!(ctx.data_dir.ends_with("data/plugins/set"));
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_file_the_defaults_hold() {
    let (plugin, seen) = set();
    let home = Home::new();
    let hub = home.start(vec![plugin]).await;
    let ctx = seen.lock().unwrap().take().unwrap();
    assert_eq!(
        json!(ctx.settings.values()),
        json!({"most": 10, "tone": "dry"})
    );
    assert!(ctx.config.is_empty());
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_wrong_fails_its_plugin_with_the_place() {
    for (text, words) in [
        (
            "most = 99\n",
            "set.toml:1: `most` must be at most 50, not 99",
        ),
        (
            "\nmost = \"10\"\n",
            "set.toml:2: `most` must be a whole number, not \"10\"",
        ),
        (
            "mots = 10\n",
            "unknown setting `mots`; did you mean `most`?",
        ),
        (
            "tone = \"loud\"\n",
            "must be one of dry, warm, not \"loud\"",
        ),
        ("most = \n", "set.toml:1:"),
        (
            "mots = 1\ntoen = 2\n",
            "(and 1 more; run `dodona plugins check`)",
        ),
    ] {
        let home = Home::new();
        home.write("plugins/set.toml", text);
        let (plugin, seen) = set();
        let hub = home.start(vec![plugin, Made::new("other").done()]).await;
        assert_status(&hub, "set", Failed, words);
        assert!(
            seen.lock().unwrap().is_none(),
            "it is not even asked to activate"
        );
        assert_status(&hub, "other", Active, "");
        stop(hub).await;
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_below_the_configuration() {
    let entry = |file: &str| {
        format!(
            "[plugin.set]\nenabled = true\nmodule = \"builtin:set\"\nconfig_file = \"{file}\"\n"
        )
    };
    let home = Home::with_roster(&entry("own/set.toml"));
    home.write("own/set.toml", "most = 30\n");
    let (plugin, seen) = set();
    let hub = home.start(vec![plugin]).await;
    let ctx = seen.lock().unwrap().take().unwrap();
    assert_eq!(ctx.settings.values()["most"], 30);
    stop(hub).await;
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), home.config("link")).unwrap();
    for (file, words) in [
        ("../../x.toml", "is outside the configuration directory"),
        ("/etc/x.toml", "is outside the configuration directory"),
        ("link/x.toml", "leads out of"),
    ] {
        home.write("plugins.toml", &entry(file));
        let hub = home.start(vec![set().0]).await;
        assert_status(&hub, "set", Failed, words);
        stop(hub).await;
    }
}

fn somebody(name: &str) -> Arc<Principal> {
    user(name, &["plugins:read", "plugins:settings"])
}

async fn call(
    hub: &PluginHub,
    who: &str,
    method: &str,
    params: Value,
) -> Result<Value, dodona_plugin::CallError> {
    soon(hub.call(Request::new(somebody(who), method, params))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_user_may_choose_and_the_choice_lasts() {
    let home = Home::new();
    home.write("plugins/set.toml", "most = 20\n");
    let (plugin, seen) = set();
    let hub = home.start(vec![plugin]).await;
    let choose = |value: Value| json!({"plugin": "set", "setting": "most", "value": value});
    let answer = call(&hub, "ada", "plugins.set", choose(json!(5)))
        .await
        .unwrap();
    assert_eq!(answer["settings"], json!({"most": 5, "tone": "dry"}));
    for (params, words) in [
        (choose(json!(99)), "`most` must be at most 50"),
        (choose(json!("5")), "`most` must be a whole number"),
        (
            json!({"plugin": "set", "setting": "mots", "value": 1}),
            "has no setting `mots`",
        ),
    ] {
        let error = call(&hub, "ada", "plugins.set", params).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.contains(words), "{error}");
    }
    let told = call(&hub, "ada", "plugins.settings", json!({"plugin": "set"}))
        .await
        .unwrap();
    let most = &told["plugins"]["set"]["most"];
    assert_eq!((&most["value"], &most["own"]), (&json!(5), &json!(true)));
    assert_eq!(most["max"], json!(50.0));
    let told = call(&hub, "bob", "plugins.settings", json!({}))
        .await
        .unwrap();
    assert_eq!(told["plugins"]["set"]["most"]["value"], 20);
    let ctx = seen.lock().unwrap().take().unwrap();
    let of = |name| ctx.settings.get::<i64>(&UserId::new(name).unwrap(), "most");
    assert_eq!((of("ada"), of("bob")), (Some(5), Some(20)));
    stop(hub).await;
    let hub = home.start(vec![set().0]).await;
    let told = call(&hub, "ada", "plugins.settings", json!({}))
        .await
        .unwrap();
    assert_eq!(told["plugins"]["set"]["most"]["value"], 5);
    let unset = json!({"plugin": "set", "setting": "most"});
    let answer = call(&hub, "ada", "plugins.unset", unset).await.unwrap();
    assert_eq!(answer["settings"]["most"], 20);
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_tells_what_is_wrong_before_it_is_loaded() {
    let home = Home::new();
    let hub = home.start(vec![set().0]).await;
    home.write("plugins/set.toml", "mots = 1\nmost = 99\n");
    home.write("plugins.toml", "[plugin.x]\nenabled = 1\n");
    let checked = ask(&hub, "plugins.check", json!({})).await.unwrap();
    assert_eq!(
        checked["problems"].as_array().unwrap().len(),
        4,
        "{checked:#}"
    );
    assert_status(&hub, "set", Active, "");
    stop(hub).await;
}
