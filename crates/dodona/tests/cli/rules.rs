//! `dodona rules`: from a file to what it did, and why.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Home, Outcome, check};

const TALKATIVE: &str = r#"[rule]
id = "talkative"
trigger = "on_tool_complete"
surfaces = ["cli", "rpc"]
[condition]
expression = "context.result.tool_name == 'vault_search' and context.state.get('searches', 0) < 1"
[[actions]]
type = "set_state"
key = "searches"
value = "{{ context.state.get('searches', 0) + 1 }}"
[[actions]]
type = "log"
message = "search {{ context.state.get('searches', 0) + 1 }} with {{ context.call.arguments.query if context.call else 'nothing' }}"
[[tests]]
name = "the first search"
context = { result = { tool_name = "vault_search" } }
expect = { fired = true, message = "search 1", state = { searches = 1 } }
"#;

/// A project beside the home, with enough notes for a search to find many.
fn project(home: &Home) -> PathBuf {
    let root = home.path().with_file_name("project");
    fs::create_dir_all(root.join(".dodona/rules")).unwrap();
    for number in 1..10 {
        let text = format!("# Login {number}\n\nLogin number {number} issues a token.\n");
        fs::write(root.join(format!("login-{number}.md")), text).unwrap();
    }
    well(home, &["trust", "accept", "--follow", "--yes"]);
    root
}

fn write(root: &Path, id: &str, text: &str) {
    fs::write(root.join(".dodona/rules").join(format!("{id}.toml")), text).unwrap();
}

fn run(home: &Home, arguments: &[&str]) -> Outcome {
    let arguments = [&["--project", "project"], arguments].concat();
    home.run(&arguments)
}

fn well(home: &Home, arguments: &[&str]) -> String {
    let outcome = run(home, arguments);
    assert_eq!(outcome.code, Some(0), "{}", outcome.shown());
    outcome.stdout
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    let outcome = run(home, &[arguments, &["--json"]].concat());
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.shown()))
}

fn rule<'v>(report: &'v Value, name: &str) -> &'v Value {
    let rules = report["rules"].as_array().unwrap();
    let found = rules.iter().find(|rule| rule["rule"] == name);
    found.unwrap_or_else(|| panic!("{report:#}"))
}

#[test]
fn help_has_the_way_from_a_file_to_an_explanation() {
    check("help_rules", &["rules", "--help"]);
}

#[test]
fn bundled_rules_are_listed_in_order_and_their_tests_pass() {
    let home = Home::new();
    project(&home);
    let listed = json(&home, &["rules", "list"]);
    let names: Vec<&str> = listed["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["rule"].as_str().unwrap())
        .collect();
    let expected = [
        "rules/token-budget-warning",
        "rules/context-limit-warning",
        "rules/iteration-budget-warning",
        "rules/repeated-failure-warning",
        "rules/large-result-hint",
        "rules/query-start-log",
    ];
    assert_eq!(names, expected);
    let tested = well(&home, &["rules", "test"]);
    assert!(tested.contains("18 passed, 0 failed"), "{tested}");
    let shown = well(&home, &["rules", "show", "token-budget-warning"]);
    for part in [
        "context.turn.token_usage > 0.8",
        "core rule",
        "cooldown = 5 turns",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn a_check_names_file_line_and_column_and_what_was_meant() {
    let home = Home::new();
    let root = project(&home);
    let wrong = "[rule]\nid = \"no-main-writes\"\ntrigger = \"on_tool_call\"\n[condition]\nexpression = \"call.tool_name == 'vault_write'\"\n[action]\ntype = \"deny\"\nmessage = \"no\"\n";
    write(&root, "no-main-writes", wrong);
    let checked = run(&home, &["rules", "check"]);
    assert_eq!(checked.code, Some(1), "{}", checked.shown());
    let place =
        "no-main-writes.toml:5:15  error: unknown name `call`, did you mean `context.call`?";
    assert!(checked.stdout.contains(place), "{}", checked.stdout);
    // The same of a file by name, with nobody asked.
    let file = "project/.dodona/rules/no-main-writes.toml";
    let named = home.run(&["rules", "check", file]);
    assert_eq!(named.code, Some(1), "{}", named.shown());
    assert!(named.stdout.contains(place), "{}", named.stdout);
    // Nothing else is concerned, and the list says that there is something to look at.
    let listed = well(&home, &["rules", "list"]);
    assert!(listed.contains("1 file has errors"), "{listed}");
    let doctor = run(&home, &["rules", "doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.shown());
    assert!(
        doctor.stdout.contains("unknown name `call`"),
        "{}",
        doctor.stdout
    );
    write(
        &root,
        "no-main-writes",
        &wrong.replace("\"call.", "\"context.call."),
    );
    assert!(well(&home, &["rules", "check"]).contains("7 rules, nothing wrong"));
}

#[test]
fn a_check_warns_of_a_file_that_is_not_named_after_its_rule() {
    let home = Home::new();
    let root = project(&home);
    write(
        &root,
        "budget",
        &TALKATIVE.replace("\"talkative\"", "\"token-budget\""),
    );
    let warning = "warning: the file is named `budget.toml`, but the id of its rule is \
                   `token-budget`, rename the file to `token-budget.toml`";
    // Of the rules in use, and of a file by name. A warning does not fail the command.
    for command in [
        &["rules", "check"][..],
        &["rules", "check", "project/.dodona/rules/budget.toml"],
    ] {
        let checked = well(&home, command);
        assert!(checked.contains(warning), "{checked}");
    }
    let checked = json(&home, &["rules", "check"]);
    let problem = &checked["problems"][0];
    assert_eq!(
        (&problem["severity"], &problem["place"]["line"]),
        (&json!("warning"), &json!(2))
    );
    write(
        &root,
        "token-budget",
        &TALKATIVE.replace("\"talkative\"", "\"token-budget\""),
    );
    fs::remove_file(root.join(".dodona/rules/budget.toml")).unwrap();
    assert!(well(&home, &["rules", "check"]).contains("nothing wrong"));
}

#[test]
fn a_new_rule_works_and_is_not_written_over() {
    let home = Home::new();
    project(&home);
    let made = well(
        &home,
        &["rules", "new", "be-brief", "--trigger", "on_turn_start"],
    );
    assert!(made.contains("be-brief.toml"), "{made}");
    let tested = well(&home, &["rules", "test", "be-brief"]);
    assert!(tested.contains("2 passed, 0 failed"), "{tested}");
    let file = "project/.dodona/rules/be-brief.toml";
    assert_eq!(home.run(&["rules", "test", file]).code, Some(0));
    let again = run(&home, &["rules", "new", "be-brief"]);
    assert_eq!(again.code, Some(2), "{}", again.shown());
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    let wrong = run(&home, &["rules", "new", "Be Brief"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.shown());
    let own = json(&home, &["rules", "new", "mine", "--user"]);
    let path = home.path().join("config/rules/mine.toml");
    assert_eq!(own["path"], path.display().to_string());
    assert_eq!(json(&home, &["rules", "show", "mine"])["scope"], "user");
}

#[test]
fn a_test_that_fails_shows_the_condition_with_its_values() {
    let home = Home::new();
    let root = project(&home);
    let text = "[rule]\nid = \"wrong\"\ntrigger = \"on_turn_start\"\n[condition]\nexpression = \"context.turn.number > 5\"\n[action]\ntype = \"log\"\n[[tests]]\nname = \"fires at five\"\ncontext = { turn = { number = 5 } }\nexpect = { fired = true }\n";
    write(&root, "wrong", text);
    let tested = run(&home, &["rules", "test", "wrong"]);
    assert_eq!(tested.code, Some(1), "{}", tested.shown());
    for part in [
        "wrong.toml:8: the rule did not fire, but was expected to",
        "context.turn.number > 5 → 5 > 5 → False",
        "0 passed, 1 failed",
    ] {
        assert!(tested.stdout.contains(part), "{}", tested.stdout);
    }
    // It is told when the file is read, too, and the rule runs all the same.
    let checked = well(&home, &["rules", "check"]);
    assert!(
        checked.contains("warning: its test \"fires at five\" does not pass"),
        "{checked}"
    );
}

#[test]
fn what_happened_is_logged_explained_and_asked_again() {
    let home = Home::new();
    let root = project(&home);
    write(&root, "talkative", TALKATIVE);
    let asked = well(&home, &["ask", "How does login work?"]);
    assert!(
        asked.contains("issues a token"),
        "a notice is no question: {asked}"
    );

    let log = json(&home, &["rules", "log"]);
    let fired: Vec<&str> = log["executions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["rule"].as_str().unwrap())
        .collect();
    for name in ["rules/query-start-log", "rules/talkative"] {
        assert!(fired.contains(&name), "{fired:?}");
    }

    let line = well(
        &home,
        &["rules", "explain", "token-budget-warning", "--last"],
    );
    assert!(
        line.starts_with("not fired   context.turn.token_usage > 0.8   →   0."),
        "{line}"
    );
    assert!(line.contains(" > 0.8   →   False      turn "), "{line}");
    let all = json(&home, &["rules", "explain", "talkative", "--last", "9"]);
    let verdicts: Vec<&str> = all["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == "fired")
            .count(),
        1,
        "{all:#}"
    );
    assert!(verdicts.contains(&"not_fired"), "{all:#}");

    // A backtest comes to the same as the log, and nothing of the bundled rules is unknown.
    let report = json(&home, &["rules", "backtest"]);
    assert_eq!(report["queries"], 1);
    assert_eq!(report["unreadable"], 0);
    for one in report["rules"].as_array().unwrap() {
        let name = one["rule"].as_str().unwrap();
        let logged = fired.iter().filter(|known| **known == name).count();
        assert_eq!(one["fired"], logged, "{one:#}");
        assert_eq!(one["failed"], 0, "{one:#}");
        assert_eq!(one["not_replayable"], 0, "{one:#}");
    }
    let said = &rule(&report, "rules/talkative")["messages"][0]["message"];
    assert!(said.as_str().unwrap().starts_with("search 1"), "{said}");

    // Every command is a method, too.
    let called = well(
        &home,
        &["call", "rules.explain", "rule=query-start-log", "--json"],
    );
    let called: Value = serde_json::from_str(&called).unwrap();
    assert_eq!(called["events"][0]["verdict"], "fired", "{called:#}");
}

#[test]
fn a_changed_rule_is_compared_with_the_one_in_use() {
    let home = Home::new();
    let root = project(&home);
    write(&root, "talkative", TALKATIVE);
    well(&home, &["ask", "How does login work?"]);
    let draft = TALKATIVE.replace("< 1\"", "< 0\"");
    fs::write(root.join("draft.toml"), draft).unwrap();
    let report = json(
        &home,
        &["rules", "backtest", "--rules", "project/draft.toml"],
    );
    let diff = &report["diff"][0];
    assert_eq!(diff["rule"], "rules/talkative", "{report:#}");
    let counts = json!([diff["before"], diff["after"], diff["gone"], diff["new"]]);
    assert_eq!(counts, json!([1, 0, 1, 0]), "{diff:#}");
    assert_eq!(rule(&report, "rules/talkative")["fired"], 0);
    // Trying it changed nothing.
    assert_eq!(
        rule(&json(&home, &["rules", "backtest"]), "rules/talkative")["fired"],
        1
    );

    // What reads messages is asked again with those of then.
    let reads = TALKATIVE.replace("talkative", "reader").replace(
        "context.state.get('searches', 0) < 1",
        "context.history.messages[0].content.startswith('How does login work?')",
    );
    fs::write(root.join("reader.toml"), reads).unwrap();
    let report = json(
        &home,
        &["rules", "backtest", "--rules", "project/reader.toml"],
    );
    let reader = rule(&report, "rules/reader");
    assert!(reader["fired"].as_u64().unwrap() > 0, "{reader:#}");
    assert_eq!(reader["not_replayable"], 0, "{reader:#}");

    // A broken draft is refused with its place.
    fs::write(root.join("broken.toml"), "[rule]\nid = \"x\"\n").unwrap();
    let refused = run(
        &home,
        &["rules", "backtest", "--rules", "project/broken.toml"],
    );
    assert_eq!(refused.code, Some(2), "{}", refused.shown());
    assert!(
        refused.stderr.contains("has no `trigger`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn switching_off_is_at_once_for_good_and_not_for_core_rules() {
    let home = Home::new();
    project(&home);
    let off = well(&home, &["rules", "disable", "large-result-hint"]);
    assert!(off.contains("is off for you"), "{off}");
    well(&home, &["ask", "How does login work?"]);
    let log = well(&home, &["rules", "log", "large-result-hint"]);
    assert!(log.contains("no rule has fired"), "{log}");
    let explained = well(&home, &["rules", "explain", "large-result-hint"]);
    assert!(explained.starts_with("disabled"), "{explained}");
    assert!(explained.contains("disabled by the user"), "{explained}");
    let doctor = well(&home, &["rules", "doctor"]);
    assert!(
        doctor.contains("large-result-hint: disabled by you"),
        "{doctor}"
    );
    let on = well(&home, &["rules", "enable", "large-result-hint"]);
    assert!(on.contains("is on"), "{on}");
    let core = run(&home, &["rules", "disable", "token-budget-warning"]);
    assert_eq!(core.code, Some(3), "{}", core.shown());
    assert!(core.stderr.contains("core rule"), "{}", core.stderr);
    let unknown = run(&home, &["rules", "disable", "large-result-hnt"]);
    assert_ne!(unknown.code, Some(0));
    assert!(
        unknown
            .stderr
            .contains("did you mean `rules/large-result-hint`?"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn the_doctor_names_what_can_never_fire_and_what_fails() {
    let home = Home::new();
    let root = project(&home);
    let rule = |id: &str, expression: &str| {
        format!(
            "[rule]\nid = \"{id}\"\ntrigger = \"on_query_start\"\n[condition]\nexpression = \"{expression}\"\n[action]\ntype = \"log\"\n"
        )
    };
    write(
        &root,
        "never",
        &rule("never", "1 > 2 and context.turn.number > 3"),
    );
    write(
        &root,
        "fails",
        &rule("fails", "1 // context.turn.iteration_count > 3"),
    );
    well(&home, &["ask", "How does login work?"]);
    let doctor = json(&home, &["rules", "doctor"]);
    let found = |kind: &str| {
        let findings = doctor["findings"].as_array().unwrap().iter();
        findings
            .filter(|finding| finding["kind"] == kind)
            .map(|finding| finding["rule"].as_str().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    assert_eq!(found("never_fires"), ["rules/never"], "{doctor:#}");
    assert_eq!(found("fails"), ["rules/fails"], "{doctor:#}");
    assert!(
        found("never_asked").contains(&"rules/repeated-failure-warning"),
        "{doctor:#}"
    );
    assert_eq!(doctor["healthy"], false);
    let failed = json(&home, &["rules", "log", "fails", "--failed"]);
    assert!(
        failed["executions"][0]["error"]
            .as_str()
            .unwrap()
            .contains("zero"),
        "{failed:#}"
    );
    let explained = well(&home, &["rules", "explain", "fails"]);
    assert!(explained.starts_with("failed"), "{explained}");
}

#[test]
fn the_schema_is_printed_for_editors() {
    let schema = Home::new().run(&["rules", "schema"]);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(schema["title"], "Dodona rule");
}

#[test]
fn nothing_to_explain_says_so() {
    let home = Home::new();
    project(&home);
    let nothing = run(&home, &["rules", "explain", "token-budget-warning"]);
    assert_eq!(nothing.code, Some(1), "{}", nothing.shown());
    assert!(
        nothing.stdout.contains("contains no event"),
        "{}",
        nothing.stdout
    );
}

#[test]
fn the_first_rule_of_the_how_to_works_as_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/first-rule.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split("```toml\n").nth(1).unwrap();
    let text = block.split("```").next().unwrap();
    let commands = page
        .lines()
        .filter_map(|line| line.strip_prefix("$ dodona "));
    let commands: Vec<Vec<String>> = commands.map(words).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    let home = Home::new();
    let root = project(&home);
    for command in &commands {
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        well(&home, &arguments);
        if arguments[..2] == ["rules", "new"] {
            write(&root, "long-talk", text);
        }
    }
}

/// The words of a command line; quotes keep some together.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    parts
        .flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}
