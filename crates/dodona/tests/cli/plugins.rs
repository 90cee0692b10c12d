//! `dodona plugins`.

use std::fs;

use serde_json::Value;

use crate::harness::{Home, assert_shown, check};

/// Writes a file of the configuration.
fn write(home: &Home, file: &str, text: &str) {
    home.configure("");
    let path = home.path().join("config").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn manifest(home: &Home, id: &str, version: &str, more: &str) {
    let text = format!("[plugin]\nid = \"{id}\"\nversion = \"{version}\"\n{more}");
    write(home, &format!("plugins/{id}/manifest.toml"), &text);
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    let outcome = home.run(&arguments);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.shown()))
}

#[test]
fn help_has_the_way_from_nothing_to_a_plugin() {
    check("help_plugins", &["plugins", "--help"]);
}

#[test]
fn a_list_says_who_is_active_who_is_not_and_what_to_do() {
    let home = Home::new();
    manifest(
        &home,
        "jira",
        "0.3.1",
        "\n[capabilities]\nuses = [\"net:jira.example\"]\n",
    );
    manifest(&home, "standup", "0.2.0", "");
    write(
        &home,
        "plugins.toml",
        "# who comes in the morning\n[plugin.standup]\nenabled = true\nmodule = \"dir:plugins/standup\"\ndependencies = [\"jira >= 0.3\"]\n\n[plugin.echo]\nenabled = false\nmodule = \"builtin:echo\"\n",
    );
    assert_shown("plugins_list", &home.run(&["plugins", "list"]));
    assert_shown(
        "plugins_grant",
        &home.run(&["plugins", "grant", "jira", "net:jira.example"]),
    );
    assert_shown("plugins_list_granted", &home.run(&["plugins", "list"]));
    assert_shown("plugins_order", &home.run(&["plugins", "order"]));
    let roster = fs::read_to_string(home.path().join("config/plugins.toml")).unwrap();
    insta::assert_snapshot!("plugins_roster_granted", roster);
    let revoked = home.run(&["plugins", "revoke", "jira", "net:jira.example"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.shown());
    let listed = json(&home, &["plugins", "list"]);
    let states: Vec<&str> = listed["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|plugin| plugin["state"] != "active")
        .map(|plugin| plugin["name"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["echo", "jira", "standup"]);
}

#[test]
fn a_faulty_roster_is_shown_where_it_is_wrong_and_stops_nothing() {
    let home = Home::new();
    let text = "[plugin.echo]\nenabled = \"false\"\nmodule = \"builtin:echo\"\n\n[plugin.vault]\nenabeld = true\nmodule = \"builtin:vault\"\n";
    write(&home, "plugins.toml", text);
    assert_shown("plugins_check_entries", &home.run(&["plugins", "check"]));
    let said = home.run(&["call", "hub.health"]);
    assert_eq!(said.code, Some(0), "{}", said.shown());
    write(&home, "plugins.toml", "[plugin.echo\nenabled = true\n");
    assert_shown("plugins_check_no_toml", &home.run(&["plugins", "check"]));
    assert_shown("plugins_list_no_toml", &home.run(&["plugins", "list"]));
    assert_shown(
        "plugins_disable_no_toml",
        &home.run(&["plugins", "disable", "echo"]),
    );
    let said = home.run(&["call", "echo.say", "text=still here"]);
    assert_eq!(said.code, Some(0), "{}", said.shown());
    let doctor = home.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("plugins.toml:1:"),
        "{}",
        doctor.shown()
    );
    assert_eq!(doctor.code, Some(1));
}

#[test]
fn a_new_plugin_works_and_its_tests_can_fail() {
    let home = Home::new();
    assert_shown("plugins_new", &home.run(&["plugins", "new", "standup"]));
    assert_shown(
        "plugins_new_again",
        &home.run(&["plugins", "new", "standup"]),
    );
    assert_shown("plugins_new_bad", &home.run(&["plugins", "new", "../up"]));
    assert_shown(
        "plugins_check_one",
        &home.run(&["plugins", "check", "standup"]),
    );
    assert_shown("plugins_info", &home.run(&["plugins", "info", "standup"]));
    let listed = json(&home, &["plugins", "list"]);
    assert_eq!(listed["problems"], serde_json::json!([]));
    // The tests are really run.
    let rule = home
        .path()
        .join("config/plugins/standup/rules/long-query.toml");
    let text = fs::read_to_string(&rule).unwrap();
    fs::write(&rule, text.replace("> settings", "< settings")).unwrap();
    assert_shown(
        "plugins_check_failing",
        &home.run(&["plugins", "check", "standup"]),
    );
    fs::write(
        &rule,
        text.replace("turn.iteration_count > ", "turn.iterations > "),
    )
    .unwrap();
    assert_shown(
        "plugins_check_bad_rule",
        &home.run(&["plugins", "check", "standup"]),
    );
    let checked = json(&home, &["plugins", "check", "standup"]);
    assert_eq!(checked["problems"][0]["place"]["line"], 8);
    assert_shown(
        "plugins_check_nowhere",
        &home.run(&["plugins", "check", "nowhere"]),
    );
}

#[test]
fn what_a_user_sets_is_checked_and_shown() {
    let home = Home::new();
    home.run(&["plugins", "new", "standup"]);
    let set = |value: &str| {
        let value = format!("value={value}");
        let arguments = [
            "call",
            "plugins.set",
            "plugin=standup",
            "setting=many_turns",
            &value,
        ];
        home.run(&arguments)
    };
    assert_eq!(set("7").code, Some(0));
    assert_eq!(set("1000").code, Some(2));
    let info = json(&home, &["plugins", "info", "standup"]);
    assert_eq!(info["settings"]["many_turns"]["value"], 7);
    write(&home, "plugins/standup.toml", "many_turn = 9\n");
    assert_shown(
        "plugins_info_bad_settings",
        &home.run(&["plugins", "info", "standup"]),
    );
}

#[test]
fn every_built_in_can_be_let_go_and_come_back() {
    let home = Home::new();
    let names = ["agent", "code", "echo", "search", "vault"];
    for name in names {
        let outcome = home.run(&["plugins", "disable", name]);
        assert!(outcome.stdout.contains("disabled"), "{}", outcome.shown());
    }
    assert_shown(
        "plugins_call_disabled",
        &home.run(&["call", "echo.say", "text=x"]),
    );
    for name in names {
        let outcome = home.run(&["plugins", "enable", name]);
        assert!(outcome.stdout.contains("active"), "{}", outcome.shown());
    }
    assert_shown(
        "plugins_disable_hub",
        &home.run(&["plugins", "disable", "hub"]),
    );
    assert_shown("plugins_unknown", &home.run(&["plugins", "info", "vualt"]));
    assert_shown(
        "plugins_grant_bad",
        &home.run(&["plugins", "grant", "echo", "promt"]),
    );
    assert_shown("plugins_reload", &home.run(&["plugins", "reload"]));
    let traced = json(&home, &["plugins", "trace"]);
    assert!(traced["hooks"].is_array() && traced["runs"].is_array());
}

#[test]
fn a_setting_is_chosen_and_taken_back() {
    let home = Home::new();
    let settings = "[settings.hour]\ntype = \"integer\"\ndefault = 9\nmin = 0\nmax = 23\n\n\
                    [settings.room]\ntype = \"string\"\ndefault = \"7\"\n";
    manifest(&home, "standup", "0.2.0", settings);
    let set = |setting, value| home.run(&["plugins", "set", "standup", setting, value]);
    assert_eq!(set("hour", "8").stdout, "hour = 8\nroom = \"7\"\n");
    // What looks like a number is a text where a text is wanted.
    assert_eq!(set("room", "12").stdout, "hour = 8\nroom = \"12\"\n");
    for (setting, value, why) in [
        ("hour", "-1", "must be at least 0"),
        ("hour", "eight", "must be a whole number"),
        ("hours", "8", "did you mean `hour`?"),
    ] {
        let refused = set(setting, value);
        assert_eq!(refused.code, Some(2), "{}", refused.shown());
        assert!(refused.stderr.contains(why), "{}", refused.shown());
    }
    let back = json(&home, &["plugins", "unset", "standup", "hour"]);
    assert_eq!(back["settings"]["hour"], 9);
    let info = home.run(&["plugins", "info", "standup"]).stdout;
    assert!(info.contains("room = \"12\" (your own)"), "{info}");
}

#[test]
fn a_plugin_in_luau_brings_rules_as_its_manifest_suggests() {
    let home = Home::new();
    for arguments in [
        &["plugins", "new", "tally", "--luau"][..],
        &["plugins", "grant", "tally", "tool_exec"],
    ] {
        let done = home.run(arguments);
        assert_eq!(done.code, Some(0), "{}", done.shown());
    }
    let manifest = home.path().join("config/plugins/tally/manifest.toml");
    let suggested = fs::read_to_string(&manifest).unwrap();
    let wanted = suggested
        .replace("# [rules]", "[rules]")
        .replace("# include", "include");
    assert_ne!(wanted, suggested);
    fs::write(&manifest, wanted).unwrap();
    write(
        &home,
        "plugins/tally/rules/greet.toml",
        "[rule]\nid = \"greet\"\nplugin_id = \"tally\"\ntrigger = \"on_query_start\"\n[condition]\nexpression = \"True\"\n[action]\ntype = \"log\"\nmessage = \"counted on\"\n",
    );
    let asked = home.run(&["ask", "Who counts?"]);
    assert_eq!(asked.code, Some(0), "{}", asked.shown());
    let log = home.run(&["rules", "log"]);
    assert!(log.stdout.contains("tally/greet"), "{}", log.shown());
    assert!(log.stdout.contains("counted on"), "{}", log.shown());
}

#[test]
fn a_new_plugin_in_luau_passes_its_tests_and_is_called_once_it_is_granted() {
    let home = Home::new();
    assert_shown(
        "plugins_new_luau",
        &home.run(&["plugins", "new", "tally", "--luau"]),
    );
    assert_shown(
        "plugins_test_luau",
        &home.run(&["plugins", "test", "tally"]),
    );
    assert_shown(
        "plugins_check_luau",
        &home.run(&["plugins", "check", "tally"]),
    );
    let refused = home.run(&["call", "tally.count", "text=one two"]);
    assert!(
        refused
            .stderr
            .contains("dodona plugins grant tally tool_exec"),
        "{}",
        refused.shown()
    );
    let granted = home.run(&["plugins", "grant", "tally", "tool_exec"]);
    assert_eq!(granted.code, Some(0), "{}", granted.shown());
    let counted = home.run(&["call", "tally.count", "text=one two", "--json"]);
    assert_eq!(counted.code, Some(0), "{}", counted.shown());
    assert!(
        counted.stdout.contains("\"words\":2"),
        "{}",
        counted.shown()
    );
    let listed = home.run(&["methods", "tally"]);
    assert!(listed.stdout.contains("tally.count"), "{}", listed.shown());
    // The tests are really run, and a script that is broken says where.
    let main = home.path().join("config/plugins/tally/main.luau");
    let text = fs::read_to_string(&main).unwrap();
    fs::write(&main, text.replace("words += 1", "words += 2")).unwrap();
    assert_shown(
        "plugins_test_luau_failing",
        &home.run(&["plugins", "test", "tally"]),
    );
    let report = json(&home, &["plugins", "test", "tally"]);
    assert_eq!(report["failed"], 1);
    assert_eq!(report["tests"][0]["verdict"], "failed");
    fs::write(&main, text.replace("d.method {", "d.method {{")).unwrap();
    assert_shown(
        "plugins_check_luau_broken",
        &home.run(&["plugins", "check", "tally"]),
    );
    assert_shown("plugins_logs", &home.run(&["plugins", "logs", "echo"]));
    home.run(&["plugins", "new", "standup"]);
    assert_shown(
        "plugins_test_none",
        &home.run(&["plugins", "test", "standup"]),
    );
}
