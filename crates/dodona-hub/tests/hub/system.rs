//! `SystemContext`, callbacks for events and the data of plugins that were removed.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dodona_hub::HubConfig;
use dodona_plugin::activation::EventDraft;
use dodona_plugin::{Contribution, EventHandler, Plugin, SystemContext};
use dodona_proto::{ErrorCode, Severity};
use serde_json::{Map, json};

use crate::support::{Object, Rig, plugin, root, spec, unary, until};

/// What a plugin got at its activation.
type Got = Arc<Mutex<Option<Arc<SystemContext>>>>;

fn probe(got: &Got) -> Arc<dyn Plugin> {
    let got = Arc::clone(got);
    plugin("probe", move |ctx| {
        *got.lock().unwrap() = Some(Arc::clone(&ctx.system));
        let system = Arc::clone(&ctx.system);
        let check = unary(spec("probe.check"), move |ctx, p: Object| {
            let system = Arc::clone(&system);
            async move {
                system.auth.authorize(&ctx, p["scope"].as_str().unwrap())?;
                Ok(Object::new())
            }
        });
        Ok(Contribution::new().methods([check]))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_gets_every_service_of_the_system() {
    let got = Got::default();
    let mut global = Map::new();
    global.insert("agent".to_owned(), json!({"model": "offline"}));
    let config = HubConfig {
        global,
        ..HubConfig::default()
    };
    let rig = Rig::with(config, vec![probe(&got)]).await;
    let system = got.lock().unwrap().clone().unwrap();
    assert_eq!(system.config["agent"]["model"], "offline");
    system.telemetry.count("probes", 1).unwrap();
    system
        .telemetry
        .record("probing", Duration::from_millis(1))
        .unwrap();
    drop(system.telemetry.span("probing").entered());
    assert!(system.http_client.check("https://example.org/").is_ok());
    assert!(system.http_client.check("http://127.0.0.1/").is_err());
    let mut place = system.event_bus.subscribe("custom");
    let draft = EventDraft {
        kind: "custom.x",
        source: "probe",
        severity: Severity::Info,
        payload: json!(null),
        behalf: None,
        id: None,
    };
    system.event_bus.publish(draft).await.unwrap();
    assert_eq!(place.next().await.unwrap().unwrap().kind, "custom.x");
    // The caller's token decides, not the plugin's rights.
    rig.call("probe.check", json!({"scope": "probe:write"}))
        .await
        .unwrap();
    let refused = rig
        .call("probe.check", json!({"scope": "vault:write"}))
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::Forbidden);
    assert!(refused.hint_text().unwrap().contains("--scope vault:write"));
}

/// A plugin that counts events of a type, and fails at some.
fn counting(count: &Arc<AtomicUsize>, how: &'static str) -> Arc<dyn Plugin> {
    let count = Arc::clone(count);
    plugin("probe", move |_| {
        let count = Arc::clone(&count);
        let handler = EventHandler::new("custom.tick", move |event| {
            let count = Arc::clone(&count);
            async move {
                count.fetch_add(1, Ordering::SeqCst);
                match (how, event.payload["n"].as_u64()) {
                    ("panics", Some(0)) => panic!("no"),
                    ("hangs", Some(0)) => std::future::pending().await,
                    ("fails", _) => Err("always".to_owned()),
                    _ => Ok(()),
                }
            }
        });
        Ok(Contribution::new().on_event(handler.timeout(Duration::from_millis(100))))
    })
}

async fn tick(rig: &Rig, n: u64) {
    let draft = EventDraft {
        kind: "custom.tick",
        source: "test",
        severity: Severity::Info,
        payload: json!({ "n": n }),
        behalf: None,
        id: None,
    };
    rig.hub.bus().publish(draft).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_panics_or_hangs_gets_the_next_event_all_the_same() {
    for how in ["panics", "hangs"] {
        let count = Arc::new(AtomicUsize::new(0));
        let rig = Rig::with(HubConfig::default(), vec![counting(&count, how)]).await;
        for n in 0..3 {
            tick(&rig, n).await;
        }
        until(|| count.load(Ordering::SeqCst) == 3).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_keeps_failing_rests() {
    let count = Arc::new(AtomicUsize::new(0));
    let rig = Rig::with(HubConfig::default(), vec![counting(&count, "fails")]).await;
    for n in 0..20 {
        tick(&rig, n).await;
    }
    until(|| count.load(Ordering::SeqCst) == 5).await;
    let logs = dodona_hub::Request::new(root(), "plugins.logs", json!({"plugin": "probe"}));
    let logs = rig.hub.call(logs).await.unwrap().to_string();
    assert!(logs.contains("is suspended for 30s"), "{logs}");
    assert_eq!(count.load(Ordering::SeqCst), 5);
}

/// A home with a directory plugin that has data.
async fn with_data() -> dodona_testkit::TestHub {
    let hub = dodona_testkit::TestHub::start().await;
    let dir = hub.home().join("elsewhere/notes");
    fs::create_dir_all(&dir).unwrap();
    let manifest = "[plugin]\nid = \"notes\"\nversion = \"0.1.0\"\n";
    fs::write(dir.join("manifest.toml"), manifest).unwrap();
    let added = json!({"plugin": "notes", "module": format!("dir:{}", dir.display())});
    hub.call("ada", "plugins.add", added).await.unwrap();
    let data = hub.data_dir().join("plugins/notes");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("kept.txt"), "data").unwrap();
    hub
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_of_a_plugin_is_deleted_on_request_and_not_before() {
    let hub = with_data().await;
    let data = hub.data_dir().join("plugins/notes");
    let remove = |delete: bool| json!({"plugin": "notes", "delete_data": delete});
    let removed = hub
        .call("ada", "plugins.remove", remove(false))
        .await
        .unwrap();
    assert_eq!(removed["data_deleted"], false);
    assert!(data.join("kept.txt").exists());
    // The plugin is gone, its data is not: the same method deletes it.
    let removed = hub
        .call("ada", "plugins.remove", remove(true))
        .await
        .unwrap();
    assert_eq!(removed["data_deleted"], true);
    assert!(!data.exists());
    let again = hub
        .call("ada", "plugins.remove", remove(true))
        .await
        .unwrap_err();
    assert_eq!(again.code, ErrorCode::NotFound);
    for name in ["echo", "hub"] {
        let builtin = json!({"plugin": name, "delete_data": true});
        let refused = hub
            .call("ada", "plugins.remove", builtin)
            .await
            .unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest, "{name}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_plugin_that_is_still_loaded_stays() {
    let hub = dodona_testkit::TestHub::start().await;
    let dir = hub.config_dir().join("plugins/notes");
    fs::create_dir_all(&dir).unwrap();
    let manifest = "[plugin]\nid = \"notes\"\nversion = \"0.1.0\"\n";
    fs::write(dir.join("manifest.toml"), manifest).unwrap();
    hub.call("ada", "plugins.reload", json!({})).await.unwrap();
    let data = hub.data_dir().join("plugins/notes");
    fs::create_dir_all(&data).unwrap();
    let remove = json!({"plugin": "notes", "delete_data": true});
    let refused = hub
        .call("ada", "plugins.remove", remove.clone())
        .await
        .unwrap_err();
    assert!(
        refused
            .hint_text()
            .unwrap()
            .contains("delete or move the directory")
    );
    assert!(data.exists());
    fs::remove_dir_all(dir).unwrap();
    hub.call("ada", "plugins.reload", json!({})).await.unwrap();
    hub.call("ada", "plugins.remove", remove).await.unwrap();
    assert!(!data.exists());
    hub.stop().await;
}
