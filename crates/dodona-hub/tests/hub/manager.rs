//! The roster, discovery and activation: who is active, in which order, and why not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dodona_hub::{HubConfig, Module};
use dodona_plugin::activation::Activating;
use dodona_plugin::{ActivationError, Contribution, Plugin, PluginContext, ToolSpec};
use dodona_proto::{Approval, ErrorCode, PluginState, ToolCategory};
use serde_json::json;

use crate::homes::{Home, Made, ask, assert_status, status, stop};
use crate::support::{Object, spec, unary};

use PluginState::{Active, Disabled, Failed, SkippedDependency};

fn plain(name: &'static str) -> Arc<dyn Plugin> {
    Made::new(name).done()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_roster_the_built_ins_are_active_and_nothing_is_written() {
    let home = Home::new();
    let hub = home.start(vec![plain("one"), plain("two")]).await;
    for name in ["hub", "plugins", "one", "two"] {
        assert_status(&hub, name, Active, "");
    }
    assert_eq!(status(&hub, "one").version.as_deref(), Some("1.0.0"));
    assert!(hub.plugin("one").is_some() && hub.plugin("none").is_none());
    assert!(!home.config("plugins.toml").exists());
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unparseable_roster_leaves_the_built_ins_with_their_defaults_and_is_told() {
    let text = "[plugin.one]\nenabled = flase\n";
    let home = Home::with_roster(text);
    home.plugin_dir("mine", "");
    let hub = home.start(vec![plain("one")]).await;
    assert_status(&hub, "one", Active, "");
    // Nothing says what it may do.
    assert_status(&hub, "mine", Failed, "`plugins.toml` cannot be read");
    let listed = ask(&hub, "plugins.list", json!({})).await.unwrap();
    let problem = &listed["problems"][0];
    assert_eq!(problem["place"]["line"], 2);
    assert_eq!(problem["place"]["text"], "enabled = flase");
    assert_eq!(home.read("plugins.toml"), text, "it is left as it is");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_entry_fails_alone() {
    let home = Home::with_roster(
        r#"
        [plugin.one]
        enabled = "false"
        module = "builtin:one"
        [plugin.two]
        enabled = true
        module = "builtin:two"
        dependencies = ["two"]
        [plugin.three]
        enabled = true
        modul = "builtin:three"
        [plugin."../four"]
        enabled = true
        module = "builtin:four"
        [plugin.good]
        enabled = true
        module = "builtin:good"
        [plugin.hub]
        enabled = false
        module = "builtin:hub"
        "#,
    );
    let modules = ["one", "two", "three", "four", "good"].map(plain);
    let hub = home.start(modules.to_vec()).await;
    assert_status(
        &hub,
        "one",
        Failed,
        "plugins.toml:3: `enabled` must be true or false",
    );
    assert_status(&hub, "two", Failed, "`two` cannot depend on itself");
    assert_status(
        &hub,
        "three",
        Failed,
        "unknown key `modul`; did you mean `module`?",
    );
    assert_status(&hub, "four", Active, "");
    assert_status(&hub, "good", Active, "");
    assert_status(&hub, "hub", Active, "");
    let listed = ask(&hub, "plugins.list", json!({})).await.unwrap();
    let told = listed["problems"].to_string();
    assert!(told.contains("`../four` has `.`"), "{told}");
    assert!(told.contains("`hub` is part of the hub"), "{told}");
    let error = ask(&hub, "one.x", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PluginNotActive);
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_named_twice_counts_once() {
    let home = Home::with_roster(
        r#"
        [plugin.alpha]
        enabled = true
        module = "builtin:alpha"
        dependencies = ["beta", "beta"]
        [plugin.gamma]
        enabled = true
        module = "builtin:gamma"
        dependencies = ["beta >= 1", "beta < 2", "beta"]
        [plugin.delta]
        enabled = true
        module = "builtin:delta"
        dependencies = ["beta", "beta >= 2"]
        "#,
    );
    let modules = ["alpha", "beta", "delta", "gamma"].map(plain);
    let hub = home.start(modules.to_vec()).await;
    assert_status(&hub, "alpha", Active, "");
    assert_status(&hub, "gamma", Active, "");
    // Every mention counts: the second one asks for a version that is not there.
    assert_status(
        &hub,
        "delta",
        SkippedDependency,
        "needs beta >=2, and beta is version 1.0.0",
    );
    let listed = ask(&hub, "plugins.list", json!({})).await.unwrap();
    assert_eq!(listed["problems"], json!([]));
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_stands_twice_fails_alone() {
    let text = r#"
        [plugin.one]
        enabled = false
        module = "builtin:one"
        [plugin.two]
        enabled = true
        module = "builtin:two"
        enabled = false
        [plugin.good]
        enabled = true
        module = "builtin:good"
        [plugin.one]
        enabled = true
        module = "builtin:one"
        [plugin.off]
        enabled = false
        module = "builtin:off"
        "#;
    let home = Home::with_roster(text);
    let modules = ["one", "two", "good", "off"].map(plain);
    let hub = home.start(modules.to_vec()).await;
    let twice = "plugins.toml:12: `one` stands twice; remove one of the two";
    assert_status(&hub, "one", Failed, twice);
    assert_status(
        &hub,
        "two",
        Failed,
        "plugins.toml:8: `enabled` stands twice",
    );
    assert_status(&hub, "good", Active, "");
    assert_status(&hub, "off", Disabled, "");
    let listed = ask(&hub, "plugins.list", json!({})).await.unwrap();
    assert_eq!(listed["problems"].as_array().unwrap().len(), 2);
    assert_eq!(home.read("plugins.toml"), text, "it is left as it is");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn activation_is_by_need_and_then_by_name_and_the_end_is_in_reverse() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = |name: &'static str, needs: &'static [&'static str]| {
        let (up, down) = (Arc::clone(&log), Arc::clone(&log));
        Made::new(name)
            .needs(needs)
            .activate(move |_| {
                up.lock().unwrap().push(format!("+{name}"));
                Ok(Contribution::new())
            })
            .deactivate(move || down.lock().unwrap().push(format!("-{name}")))
            .done()
    };
    let home = Home::with_roster(
        "[plugin.a]\nenabled = true\nmodule = \"builtin:a\"\ndependencies = [\"z >= 1\"]\n",
    );
    let modules = vec![
        noted("c", &["a", "b"]),
        noted("z", &[]),
        noted("a", &[]),
        noted("b", &[]),
    ];
    let hub = home.start(modules).await;
    let ordered = ask(&hub, "plugins.order", json!({})).await.unwrap();
    let names: Vec<&str> = ordered["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| plugin["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b", "hub", "plugins", "z", "a", "c"]);
    assert_eq!(ordered["plugins"][4]["needs"], json!(["z >=1"]));
    stop(hub).await;
    let log = log.lock().unwrap().join(" ");
    assert_eq!(log, "+b +z +a +c -c -a -z -b");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_need_is_told_in_its_own_words() {
    let home = Home::with_roster("[plugin.off]\nenabled = false\nmodule = \"builtin:off\"\n");
    let fails = Made::new("fails").activate(|_| Err(ActivationError::Refused("no key".to_owned())));
    let modules = vec![
        plain("off"),
        fails.done(),
        plain("fine"),
        Made::new("on-missing").needs(&["fien"]).done(),
        Made::new("on-disabled").needs(&["off"]).done(),
        Made::new("on-failed").needs(&["fails"]).done(),
        Made::new("on-skipped").needs(&["on-failed"]).done(),
        Made::new("on-old").needs(&["fine >= 1.2"]).done(),
        Made::new("on-fine").needs(&["fine ^1"]).done(),
        Made::new("ring-a").needs(&["ring-b"]).done(),
        Made::new("ring-b").needs(&["ring-a"]).done(),
        Made::new("after-ring").needs(&["ring-a"]).done(),
        Made::new("bad-version").version("one").done(),
    ];
    let hub = home.start(modules).await;
    assert_status(&hub, "off", Disabled, "dodona plugins enable off");
    assert_status(&hub, "fails", Failed, "no key");
    for (name, words) in [
        (
            "on-missing",
            "needs fien, which is not installed; did you mean `fine`?",
        ),
        ("on-disabled", "needs off, which is disabled"),
        ("on-failed", "needs fails, which failed"),
        ("on-skipped", "needs on-failed, which is not active"),
        ("on-old", "needs fine >=1.2, and fine is version 1.0.0"),
        ("after-ring", "needs ring-a, which failed"),
    ] {
        assert_status(&hub, name, SkippedDependency, words);
    }
    assert_status(&hub, "on-fine", Active, "");
    assert_status(
        &hub,
        "ring-a",
        Failed,
        "it needs itself: ring-a → ring-b → ring-a",
    );
    assert_status(&hub, "ring-b", Failed, "ring-b → ring-a → ring-b");
    assert_status(&hub, "bad-version", Failed, "invalid version `one`");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_picks_one_export_and_without_it_there_must_be_exactly_one() {
    let several = Module::new("several")
        .export("First", plain("first"))
        .export("Second", plain("second"));
    let modules = || vec![several.clone(), Module::new("none"), plain("single").into()];
    // Without entries every export is there under its own name.
    let home = Home::new();
    let hub = home.start(modules()).await;
    for name in ["first", "second", "single"] {
        assert_status(&hub, name, Active, "");
    }
    stop(hub).await;
    let entry = |name: &str, module: &str, class: &str| {
        let class = match class {
            "" => String::new(),
            class => format!("class = \"{class}\"\n"),
        };
        format!("[plugin.{name}]\nenabled = true\nmodule = \"builtin:{module}\"\n{class}")
    };
    let roster = [
        entry("first", "several", ""),
        entry("second", "several", "Second"),
        entry("third", "several", "Third"),
        entry("other", "single", ""),
        entry("empty", "none", ""),
        entry("typo", "sinlge", ""),
    ];
    let home = Home::with_roster(&roster.concat());
    let hub = home.start(modules()).await;
    assert_status(
        &hub,
        "first",
        Failed,
        "exports 2 plugins; pick one with `class`: `First`, `Second`",
    );
    assert_status(&hub, "second", Active, "");
    assert_status(
        &hub,
        "third",
        Failed,
        "exports no `Third`; it has `First`, `Second`",
    );
    assert_status(&hub, "other", Failed, "is the plugin `single`");
    assert_status(&hub, "empty", Failed, "exports no plugin");
    assert_status(&hub, "typo", Failed, "did you mean `builtin:single`?");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_loader_takes_is_refused_with_these_words() {
    let home = Home::with_roster("[plugin.files]\nenabled = true\nmodule = \"mcp:npx files\"\n");
    home.plugin_dir("script", "[script]\nmain = \"main.luau\"\n");
    home.plugin_dir("process", "[process]\ncommand = \"server\"\n");
    let hub = home.start(vec![plain("one")]).await;
    for (plugin, what) in [
        ("files", "module `mcp:`"),
        ("script", "`[script]`"),
        ("process", "`[process]`"),
    ] {
        let told = format!("nothing in this program runs the {what}");
        assert_status(&hub, plugin, Failed, &told);
    }
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_panics_or_hangs_fails_and_takes_only_its_dependents_along() {
    struct Hangs;
    impl Plugin for Hangs {
        fn name(&self) -> &'static str {
            "hangs"
        }
        fn version(&self) -> &'static str {
            "1.0.0"
        }
        fn activate(&self, _: PluginContext) -> Activating<'_> {
            Box::pin(std::future::pending())
        }
    }
    let config = HubConfig {
        activation_timeout: Duration::from_secs(2),
        ..HubConfig::default()
    };
    let panics = Made::new("panics").activate(|_| panic!("in activate"));
    let modules = vec![
        panics.done(),
        Arc::new(Hangs),
        Made::new("after-panic").needs(&["panics"]).done(),
        Made::new("after-hang").needs(&["hangs"]).done(),
        plain("fine"),
    ];
    let home = Home::new();
    let hub = home.start_with(config, modules).await;
    assert_status(&hub, "panics", Failed, "panicked");
    assert_status(&hub, "hangs", Failed, "timed out after 2s");
    assert_status(&hub, "after-panic", SkippedDependency, "needs panics");
    assert_status(&hub, "after-hang", SkippedDependency, "needs hangs");
    assert_status(&hub, "fine", Active, "");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_with_a_manifest_needs_no_entry() {
    let home = Home::new();
    home.plugin_dir(
        "standup",
        "description = \"Reminds.\"\n[rules]\ninclude = [\"rules/*.toml\"]\n[settings.hour]\ntype = \"integer\"\ndefault = 9\n",
    );
    home.write("plugins/standup/rules/b.toml", "");
    home.write("plugins/standup/rules/a.toml", "");
    home.write(
        "plugins/other/manifest.toml",
        "[plugin]\nid = \"else\"\nversion = \"1.0.0\"\n",
    );
    home.write(
        "plugins/broken/manifest.toml",
        "[plugin]\nid = 3\nversion = \"x\"\n",
    );
    home.write("plugins/No Name/manifest.toml", "");
    home.write("plugins/nothing/readme.md", "");
    home.plugin_dir("one", "");
    let hub = home.start(vec![plain("one")]).await;
    assert_status(&hub, "standup", Active, "");
    assert_status(
        &hub,
        "other",
        Failed,
        "`id = \"else\"`, and the plugin is named `other`",
    );
    assert_status(
        &hub,
        "broken",
        Failed,
        "manifest.toml:2: `id` must be a text, not an integer",
    );
    assert_status(&hub, "one", Active, "");
    let listed = ask(&hub, "plugins.list", json!({})).await.unwrap();
    let told = listed["problems"].to_string();
    assert!(told.contains("No Name"), "{told}");
    assert!(told.contains("`one` is `builtin:one` already"), "{told}");
    assert!(
        told.contains("is not a version"),
        "every fault of a manifest is told: {told}"
    );
    let info = ask(&hub, "plugins.info", json!({"plugin": "standup"}))
        .await
        .unwrap();
    assert_eq!(info["description"], "Reminds.");
    assert_eq!(info["module"], "dir:plugins/standup");
    let rules: Vec<&str> = info["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule.as_str().unwrap())
        .collect();
    assert!(rules[0].ends_with("rules/a.toml") && rules[1].ends_with("rules/b.toml"));
    assert_eq!(info["settings"]["hour"]["value"], 9);
    stop(hub).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_below_the_configuration_or_named_in_full() {
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().join("far");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(
        place.join("manifest.toml"),
        "[plugin]\nid = \"far\"\nversion = \"1.0.0\"\n",
    )
    .unwrap();
    let entry = |name: &str, path: &str| {
        format!("[plugin.{name}]\nenabled = true\nmodule = \"dir:{path}\"\n")
    };
    let roster = [
        entry("far", place.to_str().unwrap()),
        entry("up", "../up"),
        entry("link", "link"),
        entry("gone", "gone"),
    ];
    let home = Home::with_roster(&roster.concat());
    std::os::unix::fs::symlink(&place, home.config("link")).unwrap();
    let hub = home.start(vec![plain("one")]).await;
    assert_status(&hub, "far", Active, "");
    assert_status(&hub, "up", Failed, "leads out of");
    assert_status(&hub, "link", Failed, "leads out of");
    assert_status(&hub, "gone", Failed, "manifest.toml: there is no such file");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_a_plugin_requires_must_be_provided() {
    let tool = |plugin: &'static str, method: &'static str| {
        Made::new(plugin).activate(move |_| {
            let mut spec = spec(method);
            spec.tool = Some(ToolSpec {
                category: ToolCategory::Meta,
                agents: &[],
                approval: Approval::Never,
            });
            let method = unary(spec, |_, _| async { Ok(Object::new()) });
            Ok(Contribution::new().methods([method]))
        })
    };
    let home = Home::with_roster("[plugin.web]\nenabled = false\nmodule = \"builtin:web\"\n");
    let requires = |tools: &str| format!("[capabilities]\nrequires = [{tools}]\n");
    home.plugin_dir("a-good", &requires("\"zettel_search\", \"zettel.search\""));
    home.plugin_dir("b-off", &requires("\"web_search\""));
    home.plugin_dir("c-none", &requires("\"zettel_burn\""));
    let modules = vec![
        tool("zettel", "zettel.search").done(),
        tool("web", "web.search").done(),
    ];
    let hub = home.start(modules).await;
    // Its name comes first, and yet it is activated after what it requires.
    assert_status(&hub, "a-good", Active, "");
    assert_status(
        &hub,
        "b-off",
        SkippedDependency,
        "needs the tool `web_search` of web, which is disabled",
    );
    assert_status(
        &hub,
        "c-none",
        Failed,
        "needs the tool `zettel_burn`, which no active plugin provides",
    );
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_and_changing_are_different_rights() {
    let home = Home::new();
    let hub = home.start(vec![plain("one")]).await;
    let reader = crate::support::user("reader", &["plugins:read"]);
    let call = async |method: &str, params| {
        hub.call(dodona_hub::Request::new(
            Arc::clone(&reader),
            method,
            params,
        ))
        .await
    };
    call("plugins.list", json!({})).await.unwrap();
    call("plugins.check", json!({})).await.unwrap();
    for (method, params) in [
        ("plugins.reload", json!({})),
        ("plugins.disable", json!({"plugin": "one"})),
        (
            "plugins.grant",
            json!({"plugin": "one", "capabilities": ["prompt"]}),
        ),
        (
            "plugins.set",
            json!({"plugin": "one", "setting": "x", "value": 1}),
        ),
    ] {
        let error = call(method, params).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Forbidden, "{method}");
    }
    let error = ask(&hub, "plugins.info", json!({"plugin": "onne"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert_eq!(error.hint_text(), Some("did you mean `one`?"));
    stop(hub).await;
}
