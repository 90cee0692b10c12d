//! Plugins that do not come to life fail alone and say why.

use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{HubConfig, PluginHub, StartError};
use dodona_plugin::activation::Activating;
use dodona_plugin::hooks::point::PreToolExecute;
use dodona_plugin::hooks::{Hook, Reply};
use dodona_plugin::store::Migration;
use dodona_plugin::{ActivationError, CallError, Contribution, Method, Plugin, PluginContext};
use dodona_proto::hook::Verdict;
use dodona_proto::{ErrorCode, PluginState, PluginStatus};
use serde_json::json;

use crate::support::{Object, Rig, plugin, probe, spec, streaming, unary};

fn fine(name: &'static str) -> Method {
    unary(spec(name), |_, _| async { Ok(Object::new()) })
}

fn status(rig: &Rig, name: &str) -> PluginStatus {
    let all = rig.hub.plugins();
    all.into_iter()
        .find(|status| status.name.as_str() == name)
        .unwrap()
}

/// The plugin has failed for this reason, nothing of it can be called, and all else works.
async fn assert_failed_alone(rig: &Rig, name: &str, reason: &str) {
    let status = status(rig, name);
    assert_eq!(status.state, PluginState::Failed);
    let why = status.reason.unwrap();
    assert!(why.contains(reason), "{why}");
    assert_eq!(status.version.as_deref(), Some("0.0.1"));
    for verb in ["fine", "anything"] {
        let error = rig
            .call(&format!("{name}.{verb}"), json!({}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::PluginNotActive);
        assert!(error.retryable);
        assert!(error.message.contains(&why), "{error}");
        assert!(error.hint_text().is_some());
    }
    rig.call("echo.say", json!({"text": "others are active"}))
        .await
        .unwrap();
    assert_eq!(rig.hub.health().plugins, (3, 1));
    let events = rig.hub.journal();
    events.flush().await.unwrap();
    let failed = events.recent_events("plugin.failed", 10).await.unwrap();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].payload["plugin"], name);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_refuses_or_panics_or_hangs() {
    let refuses = plugin("broken", |_| {
        Err(ActivationError::Refused("no key is set".to_owned()))
    });
    let rig = Rig::with(HubConfig::default(), vec![refuses]).await;
    assert_failed_alone(&rig, "broken", "no key is set").await;
    let panics = plugin("broken", |_| panic!("in activate"));
    let rig = Rig::with(HubConfig::default(), vec![panics]).await;
    assert_failed_alone(&rig, "broken", "panicked").await;
    struct Hangs;
    impl Plugin for Hangs {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn version(&self) -> &'static str {
            "0.0.1"
        }
        fn activate(&self, _: PluginContext) -> Activating<'_> {
            Box::pin(std::future::pending())
        }
    }
    let config = HubConfig {
        activation_timeout: Duration::from_secs(2),
        ..HubConfig::default()
    };
    let rig = Rig::with(config, vec![Arc::new(Hangs)]).await;
    assert_failed_alone(&rig, "broken", "activation timed out after 2s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_brings_what_it_may_not() {
    type Brings = fn() -> Contribution;
    let contributions: [(&str, Brings); 2] = [
        (
            "it provides `echo.shadow`, which belongs to another plugin",
            || Contribution::new().methods([fine("broken.fine"), fine("echo.shadow")]),
        ),
        ("it provides `broken.fine` twice", || {
            Contribution::new().methods([fine("broken.fine"), fine("broken.fine")])
        }),
    ];
    for (reason, contribution) in contributions {
        let broken = plugin("broken", move |_| {
            // Its gate must not be left behind either.
            let gate =
                Hook::inline::<PreToolExecute>(|_| Ok(Reply::edit(Verdict::Deny("no".into()))));
            Ok(contribution().hook(gate))
        });
        let rig = Rig::with(HubConfig::default(), vec![broken]).await;
        assert_failed_alone(&rig, "broken", reason).await;
        let error = rig.call("echo.shadow", json!({})).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::MethodNotFound);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_whose_parameters_or_result_are_no_objects() {
    let list = plugin("broken", |_| {
        let list = Method::unary(&spec("broken.list"), |_, _: Object| async {
            Ok::<Vec<u8>, CallError>(Vec::new())
        })?;
        Ok(Contribution::new().methods([fine("broken.fine"), list]))
    });
    let rig = Rig::with(HubConfig::default(), vec![list]).await;
    assert_failed_alone(
        &rig,
        "broken",
        "the result of `broken.list` must be an object",
    )
    .await;
    let number = plugin("broken", |_| {
        let number = Method::unary(&spec("broken.number"), |_, _: u8| async {
            Ok::<Object, CallError>(Object::new())
        })?;
        Ok(Contribution::new().methods([number]))
    });
    let rig = Rig::with(HubConfig::default(), vec![number]).await;
    assert_failed_alone(
        &rig,
        "broken",
        "the parameters of `broken.number` must be an object",
    )
    .await;
    // One that was described elsewhere is held to the same.
    let foreign = plugin("broken", |_| {
        let honest = streaming(spec("broken.foreign"), |_, _, _| async { Ok(()) });
        let mut descriptor = honest.descriptor().as_ref().clone();
        descriptor.result = json!({"type": "string"});
        let foreign = Method::from_parts(descriptor, honest.handler().clone());
        Ok(Contribution::new().methods([foreign]))
    });
    let rig = Rig::with(HubConfig::default(), vec![foreign]).await;
    assert_failed_alone(
        &rig,
        "broken",
        "the items of `broken.foreign` must be an object",
    )
    .await;
    let nonsense = plugin("broken", |_| {
        let honest = fine("broken.nonsense");
        let mut descriptor = honest.descriptor().as_ref().clone();
        descriptor.params = json!({"type": "object", "properties": 7});
        let foreign = Method::from_parts(descriptor, honest.handler().clone());
        Ok(Contribution::new().methods([foreign]))
    });
    let rig = Rig::with(HubConfig::default(), vec![nonsense]).await;
    assert_failed_alone(&rig, "broken", "invalid schema of `broken.nonsense`").await;
}

const TABLE: &[Migration] = &[Migration::new(
    1,
    "one",
    "create table t (n integer) strict",
)];
const WRONG: &[Migration] = &[Migration::new(1, "one", "create table broken (")];

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_whose_database_is_damaged_or_cannot_be_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("plugins/broken");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("broken.db"), "this is no database ".repeat(500)).unwrap();
    let with = |migrations: &'static [Migration]| {
        plugin("broken", move |_| {
            Ok(Contribution::new()
                .methods([fine("broken.fine")])
                .migrations(migrations))
        })
    };
    let rig = Rig::in_folder(folder, HubConfig::default(), vec![with(TABLE)]).await;
    assert_failed_alone(&rig, "broken", "damaged").await;
    let rig = Rig::with(HubConfig::default(), vec![with(WRONG)]).await;
    assert_failed_alone(&rig, "broken", "migration").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_plugins_are_checked_and_unique() {
    let start = async |plugins| {
        let folder = tempfile::tempdir().unwrap();
        PluginHub::start(folder.path(), HubConfig::default(), plugins)
            .await
            .map(drop)
    };
    let twice = vec![probe(Vec::new()), probe(Vec::new())];
    assert!(
        matches!(start(twice).await, Err(StartError::DuplicateName(name)) if name.as_str() == "probe")
    );
    let hub = vec![plugin("hub", |_| Ok(Contribution::new()))];
    assert!(matches!(
        start(hub).await,
        Err(StartError::DuplicateName(_))
    ));
    let path = vec![plugin("../hub", |_| Ok(Contribution::new()))];
    assert!(matches!(start(path).await, Err(StartError::InvalidName(_))));
}
