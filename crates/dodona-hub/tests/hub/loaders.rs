//! Plugins from outside the program, made by a loader that the program hands in.

use std::path::PathBuf;
use std::sync::Arc;

use dodona_hub::HubConfig;
use dodona_plugin::reading::Problem;
use dodona_plugin::{Contribution, Loaded, Loader, Loaders, LogLevel, Outside, OutsideSource};
use dodona_proto::PluginState;
use serde_json::json;

use crate::homes::{Home, Made, ask, assert_status, stop};
use crate::support::{object, spec, unary};

use PluginState::{Active, Disabled, Failed};

/// Makes the plugin `probe`, whose method answers with what stands in its script. A script that
/// is `broken` cannot be loaded, one that is `refuses` cannot be activated.
struct Words;

impl Loader for Words {
    fn load(&self, outside: &Outside) -> Option<Result<Loaded, Vec<Problem>>> {
        let text = match &outside.source {
            OutsideSource::Directory { path, .. } => read(path.join("main.luau")),
            OutsideSource::Mcp(server) => server.clone(),
        };
        if text == "broken" {
            return Some(Err(vec![Problem::of_file("main.luau", "it is broken")]));
        }
        let fingerprint = text.clone();
        let plugin = Made::new("probe").activate(move |ctx| {
            if text == "refuses" {
                let why = "it refuses".to_owned();
                return Err(dodona_plugin::ActivationError::Refused(why));
            }
            ctx.log
                .write(LogLevel::Info, "main", &format!("I am {text}"));
            let text = text.clone();
            let say = unary(spec("probe.say"), move |_, _| {
                let said = json!({ "text": text });
                async move { Ok(object(said)) }
            });
            Ok(Contribution::new().methods([say]))
        });
        let plugin = plugin.done();
        Some(Ok(Loaded {
            plugin,
            fingerprint,
        }))
    }
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn loading() -> HubConfig {
    HubConfig {
        loaders: Loaders::new().with(Arc::new(Words)),
        ..HubConfig::default()
    }
}

fn probe(home: &Home, script: &str) {
    home.plugin_dir("probe", "[script]\nmain = \"main.luau\"\n");
    home.write("plugins/probe/main.luau", script);
}

async fn said(hub: &dodona_hub::PluginHub) -> String {
    let answer = ask(hub, "probe.say", json!({})).await.unwrap();
    answer["text"].as_str().unwrap().to_owned()
}

async fn reload(hub: &dodona_hub::PluginHub) -> serde_json::Value {
    ask(hub, "plugins.reload", json!({})).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_loader_makes_is_activated_and_made_anew_when_it_changes() {
    let home = Home::new();
    probe(&home, "one");
    let hub = home
        .start_with(loading(), vec![Made::new("a").done()])
        .await;
    assert_eq!(said(&hub).await, "one");
    assert_eq!(reload(&hub).await["activated"], json!([]));
    probe(&home, "two");
    assert_eq!(reload(&hub).await["activated"], json!(["probe"]));
    assert_eq!(said(&hub).await, "two");
    let logs = ask(&hub, "plugins.logs", json!({"plugin": "probe"})).await;
    let logs = logs.unwrap();
    let texts: Vec<_> = logs["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| &line["text"])
        .collect();
    assert_eq!(texts, ["I am one", "I am two"]);
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_broken_leaves_the_last_good_version_active_and_says_so() {
    let home = Home::new();
    probe(&home, "one");
    let hub = home
        .start_with(loading(), vec![Made::new("a").done()])
        .await;
    for script in ["broken", "refuses"] {
        probe(&home, script);
        reload(&hub).await;
        assert_status(&hub, "probe", Active, "the last good version stays active");
        assert_eq!(said(&hub).await, "one");
    }
    home.write("plugins/probe/manifest.toml", "[plugin\n");
    reload(&hub).await;
    assert_status(&hub, "probe", Active, "manifest.toml:1");
    probe(&home, "three");
    reload(&hub).await;
    assert_status(&hub, "probe", Active, "");
    assert_eq!(said(&hub).await, "three");
    probe(&home, "broken");
    ask(&hub, "plugins.disable", json!({"plugin": "probe"}))
        .await
        .unwrap();
    assert_status(&hub, "probe", Disabled, "");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_from_the_beginning_fails() {
    let home = Home::new();
    probe(&home, "broken");
    let hub = home
        .start_with(loading(), vec![Made::new("a").done()])
        .await;
    assert_status(&hub, "probe", Failed, "it is broken");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_the_roster_is_made_by_a_loader_too() {
    let home = Home::with_roster("[plugin.probe]\nenabled = true\nmodule = \"mcp:npx files\"\n");
    let hub = home
        .start_with(loading(), vec![Made::new("a").done()])
        .await;
    assert_eq!(said(&hub).await, "npx files");
    stop(hub).await;
}
