//! `dodona init` and `dodona config`.

use std::fs;

use insta::assert_snapshot;

use crate::harness::Home;
use crate::trust::run_in;

/// A place for a project beside the home.
fn project(home: &Home) -> &'static str {
    fs::create_dir(home.path().with_file_name("project")).unwrap();
    "project"
}

#[test]
fn a_new_file_is_written_once_and_never_over_another() {
    let home = Home::new();
    let project = project(&home);
    assert_snapshot!(home.run(&["init", "--project", project]).shown());
    assert_snapshot!(home.run(&["init", "--project", project]).shown());
    assert_snapshot!(home.run(&["init", "--user"]).shown());
    let asked = home.run(&["config", "show", "--project", project]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
}

#[test]
fn every_setting_is_shown_with_where_it_comes_from() {
    let home = Home::new();
    let project = project(&home);
    home.configure("[journal]\nmax_age = \"30d\"\n\n[limits.plugin.echo]\nburst = 3\n");
    let folder = home.path().with_file_name("project");
    fs::create_dir(folder.join(".dodona")).unwrap();
    fs::write(
        folder.join(".dodona/config.toml"),
        "vault.root = \"notes\"\n",
    )
    .unwrap();
    assert_snapshot!(
        home.run(&["config", "show", "--origin", "--project", project])
            .shown()
    );
    let shown = home.run(&["config", "show", "--json", "--project", project]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["vault.root"]["value"], "\"notes\"");
    assert_eq!(shown["vault.root"]["origin"]["line"], 1);
    assert_snapshot!(home.run(&["config", "path", "--project", project]).shown());
}

#[test]
fn a_projects_faulty_settings_are_shown_and_concern_that_project_only() {
    let home = Home::new();
    let project = project(&home);
    let folder = home.path().with_file_name("project");
    fs::create_dir(folder.join(".dodona")).unwrap();
    fs::write(
        folder.join(".dodona/config.toml"),
        "[vault]\nrot = \"notes\"\n",
    )
    .unwrap();
    assert_snapshot!(
        home.run(&["search", "anything", "--project", project])
            .shown()
    );
    assert_snapshot!(home.run(&["config", "show", "--project", project]).shown());
    fs::create_dir(home.path().with_file_name("other")).unwrap();
    let other = home.run(&["search", "anything", "--project", "other"]);
    assert_eq!(other.code, Some(0), "{}", other.stderr);
}

const NO_LINES: &str = "no rule has logged a line\n";

/// A rule that logs a line when a setting of the project is on.
const STRICT: &str = r#"
[rule]
id = "strict"
trigger = "on_query_start"

[condition]
expression = "context.project.settings.strict and context.user.settings.level > 2"

[action]
type = "log"
level = "warning"
message = "strict: {{ context.project.settings.strict }}"
"#;

#[test]
fn rules_read_settings_and_their_lines_are_shown() {
    let home = Home::new();
    let project = project(&home);
    let folder = home.path().with_file_name("project");
    let run = |arguments: &[&str]| {
        let outcome = run_in(&home, &folder, arguments);
        assert_eq!(outcome.code, Some(0), "{}", outcome.shown());
        outcome.stdout
    };
    run(&["init"]);
    fs::create_dir_all(folder.join(".dodona/rules")).unwrap();
    fs::write(folder.join(".dodona/rules/strict.toml"), STRICT).unwrap();
    run(&["ask", "What is this?"]);
    assert_eq!(run(&["logs", "--rule", "strict"]), NO_LINES);
    // The key may stand before or after `--project`.
    run(&["config", "set", "--project", "settings.strict", "true"]);
    run(&["config", "set", "settings.level", "3"]);
    assert_eq!(run(&["config", "get", "settings.level"]).trim(), "3");
    run(&["ask", "What is this?"]);
    let shown = run(&["logs", "--rule", "strict"]);
    assert!(shown.contains("strict: True"), "{shown}");
    assert!(shown.contains("warning"), "{shown}");
    let lines: serde_json::Value =
        serde_json::from_str(&run(&["logs", "--rule", "strict", "--json"])).unwrap();
    let line = &lines["lines"][0];
    assert_eq!(lines["lines"].as_array().unwrap().len(), 1, "{lines}");
    assert!(line["rule"].as_str().unwrap().ends_with("strict"), "{line}");
    assert_eq!(line["level"], "warning");
    assert!(line["at"].as_str().is_some(), "{line}");
    assert_eq!(run(&["logs", "--level", "error"]), NO_LINES);
    run(&["config", "unset", "settings.strict", "--project"]);
    run(&["ask", "What is this?"]);
    assert_eq!(run(&["logs", "--rule", "strict"]).lines().count(), 1);
    // Another project has neither the setting nor the lines.
    fs::create_dir(home.path().with_file_name("elsewhere")).unwrap();
    let other = home.run(&["logs", "--project", "elsewhere"]);
    assert_eq!(other.stdout, NO_LINES, "{}", other.shown());
    assert_ne!(project, "elsewhere");
}

#[test]
fn an_invalid_setting_is_refused_and_the_file_stays_as_it_is() {
    let home = Home::new();
    home.configure("# mine\n[agent]\nmax_turns = 5\n");
    let file = home.path().join("config/config.toml");
    let before = fs::read_to_string(&file).unwrap();
    for (arguments, expected) in [
        (&["config", "set", "agent.max_turn", "3"][..], "max_turns"),
        (
            &["config", "set", "agent.max_turns", "many"],
            "agent.max_turns",
        ),
        (&["config", "set", "settings.Strict", "true"], "lower-case"),
        (&["config", "set", "settings.plugins", "true"], "reserved"),
        (&["config", "unset", "settings.strict"], "not set"),
    ] {
        let refused = home.run(arguments);
        assert_ne!(refused.code, Some(0), "{}", refused.shown());
        assert!(refused.stderr.contains(expected), "{}", refused.shown());
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
    let set = home.run(&["config", "set", "agent.max_turns", "7"]);
    assert_eq!(set.code, Some(0), "{}", set.shown());
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(after, before.replace('5', "7"));
}
