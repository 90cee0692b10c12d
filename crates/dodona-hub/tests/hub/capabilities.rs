//! What plugins may do: hooks, calls, and what is granted.

use std::sync::Arc;

use dodona_hub::{CapabilityMode, HubConfig};
use dodona_plugin::hooks::{Hook, Reply, point};
use dodona_plugin::{Contribution, Plugin};
use dodona_proto::{ErrorCode, PluginState};
use serde_json::{Value, json};

use crate::homes::{Home, Made, ask, assert_status, stop};
use crate::support::{Object, object, spec, unary};

use PluginState::{Active, Failed};

fn enforcing() -> HubConfig {
    HubConfig {
        capability_mode: CapabilityMode::Enforce,
        ..HubConfig::default()
    }
}

/// A plugin with a hook at the prompt and one at tool calls.
fn hooked() -> Arc<dyn Plugin> {
    Made::new("hooked")
        .activate(|_| {
            Ok(Contribution::new()
                .hook(Hook::inline::<point::SystemPromptExtend>(|_| {
                    Ok(Reply::none())
                }))
                .hook(Hook::inline::<point::PreToolExecute>(|_| Ok(Reply::none()))))
        })
        .done()
}

fn entry(name: &str, capabilities: &str) -> String {
    format!(
        "[plugin.{name}]\nenabled = true\nmodule = \"builtin:{name}\"\ncapabilities = [{capabilities}]\n"
    )
}

async fn info(hub: &dodona_hub::PluginHub, plugin: &str) -> Value {
    ask(hub, "plugins.info", json!({ "plugin": plugin }))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_built_in_is_granted_everything_unless_the_roster_says_otherwise() {
    let home = Home::new();
    let hub = home.start_with(enforcing(), vec![hooked()]).await;
    assert_status(&hub, "hooked", Active, "");
    let told = info(&hub, "hooked").await;
    assert_eq!(
        told["hooks"],
        json!(["SYSTEM_PROMPT_EXTEND", "PRE_TOOL_EXECUTE"])
    );
    assert_eq!(told["granted"], Value::Null);
    let error = ask(
        &hub,
        "plugins.revoke",
        json!({"plugin": "hooked", "capabilities": ["prompt"]}),
    )
    .await
    .unwrap_err();
    assert!(error.message.contains("granted everything"), "{error}");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_outside_the_capabilities_warns_or_is_refused_as_configured() {
    let home = Home::with_roster(&entry("hooked", "\"prompt\""));
    let hub = home.start(vec![hooked()]).await;
    assert_status(&hub, "hooked", Active, "");
    let warnings = info(&hub, "hooked").await["warnings"].to_string();
    assert!(
        warnings.contains("a hook at PRE_TOOL_EXECUTE without the capability `tool_exec`"),
        "{warnings}"
    );
    stop(hub).await;
    let hub = home.start_with(enforcing(), vec![hooked()]).await;
    assert_status(
        &hub,
        "hooked",
        Failed,
        "run `dodona plugins grant hooked tool_exec`",
    );
    let traced = ask(&hub, "plugins.trace", json!({})).await.unwrap();
    assert_eq!(traced["hooks"], json!([]), "none of its hooks stays");
    let grant = json!({"plugin": "hooked", "capabilities": ["tool_exec"]});
    let status = ask(&hub, "plugins.grant", grant.clone()).await.unwrap();
    assert_eq!(status["state"], "active");
    assert!(
        home.read("plugins.toml")
            .contains("capabilities = [\"prompt\", \"tool_exec\"]")
    );
    let status = ask(&hub, "plugins.revoke", grant).await.unwrap();
    assert_eq!(status["state"], "failed");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_manifest_uses_must_be_granted() {
    let home = Home::new();
    home.plugin_dir(
        "jira",
        "[capabilities]\nuses = [\n  \"net:jira.example\",\n  \"call:vault\",\n]\n",
    );
    let hub = home.start(vec![hooked()]).await;
    assert_status(
        &hub,
        "jira",
        Failed,
        "manifest.toml:6: capabilities `net:jira.example`, `call:vault` not granted; \
         run `dodona plugins grant jira net:jira.example call:vault`",
    );
    let grant = |these: Value| json!({"plugin": "jira", "capabilities": these});
    let status = ask(&hub, "plugins.grant", grant(json!(["call:vault"])))
        .await
        .unwrap();
    let reason = status["reason"].as_str().unwrap();
    assert!(
        reason.ends_with("run `dodona plugins grant jira net:jira.example`"),
        "{reason}"
    );
    let status = ask(&hub, "plugins.grant", grant(json!(["net:jira.example"])))
        .await
        .unwrap();
    assert_eq!(status["state"], "active");
    let roster = home.read("plugins.toml");
    assert!(roster.contains("module = \"dir:plugins/jira\""), "{roster}");
    let error = ask(&hub, "plugins.grant", grant(json!(["everything"])))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    stop(hub).await;
}

/// `outer` calls `middle`, which calls `inner`; each tells what it was answered.
fn chain() -> Vec<Arc<dyn Plugin>> {
    let link = |plugin: &'static str, method: &'static str, next: Option<&'static str>| {
        Made::new(plugin)
            .activate(move |_| {
                let mut spec = spec(method);
                spec.scope = Some("chain:use");
                let call = unary(spec, move |ctx, _| async move {
                    let callable: Vec<String> =
                        ctx.methods().iter().map(|m| m.name.to_string()).collect();
                    let below = match next {
                        Some(next) => json!(ctx.call::<Object>(next, json!({})).await?),
                        None => Value::Null,
                    };
                    Ok(object(
                        json!({ "callable": callable.len(), "below": below }),
                    ))
                });
                Ok(Contribution::new().methods([call]))
            })
            .done()
    };
    vec![
        link("outer", "outer.go", Some("middle.go")),
        link("middle", "middle.go", Some("inner.go")),
        link("inner", "inner.go", None),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plugins_that_may_be_called_only_become_fewer_on_the_way_down() {
    // Enough for the whole chain.
    let home = Home::with_roster(&entry("outer", "\"call:middle\", \"call:inner\""));
    let hub = home.start_with(enforcing(), chain()).await;
    let answer = ask(&hub, "outer.go", json!({})).await.unwrap();
    assert_eq!(answer["callable"], 3, "it is offered what it may call");
    stop(hub).await;
    // `middle` may call `inner`, and not on behalf of one that may not.
    let home = Home::with_roster(&entry("outer", "\"call:middle\""));
    let hub = home.start_with(enforcing(), chain()).await;
    ask(&hub, "middle.go", json!({})).await.unwrap();
    let error = ask(&hub, "outer.go", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Forbidden);
    assert_eq!(error.message, "`outer.middle` may not call plugin `inner`");
    stop(hub).await;
    // Nor does it help to be allowed more further down.
    let both = [entry("outer", ""), entry("middle", "\"call:inner\"")].concat();
    let home = Home::with_roster(&both);
    let hub = home.start_with(enforcing(), chain()).await;
    let error = ask(&hub, "outer.go", json!({})).await.unwrap_err();
    assert_eq!(error.message, "`outer` may not call plugin `middle`");
    ask(&hub, "middle.go", json!({})).await.unwrap();
    stop(hub).await;
}
