//! `dodona trust`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Home, Outcome, check};

/// A project that was cloned from somewhere, with a plugin in it.
pub(crate) struct Cloned(TempDir);

const SCRIPT: &str = "
dodona.method { name = 'hello', doc = 'Says hello.', read_only = true,
    run = function() return { text = 'hello' } end }
";

impl Cloned {
    pub(crate) fn new() -> Self {
        let cloned = Self(tempfile::tempdir().unwrap());
        cloned.write(
            "plugins/greeter/manifest.toml",
            "[plugin]\nid = \"greeter\"\nversion = \"1.0.0\"\ndescription = \"Greets\"\n\
             [capabilities]\nuses = [\"call:echo\"]\n[script]\nmain = \"main.luau\"\n",
        );
        cloned.write("plugins/greeter/main.luau", SCRIPT);
        cloned
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(".dodona").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn run(&self, home: &Home, arguments: &[&str]) -> Outcome {
        run_in(home, self.0.path(), arguments)
    }

    pub(crate) fn state(&self, home: &Home) -> Value {
        let shown = self.run(home, &["trust", "show", "--json"]);
        serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{}", shown.shown()))
    }
}

pub(crate) fn run_in(home: &Home, dir: &Path, arguments: &[&str]) -> Outcome {
    let mut command = home.command(arguments);
    home.outcome(arguments, command.current_dir(dir).output().unwrap())
}

/// A rule that refuses every tool.
const DENY: &str = "[rule]\nid = \"a\"\ntrigger = \"on_tool_call\"\n\
    [condition]\nexpression = \"True\"\n[action]\ntype = \"deny\"\nmessage = \"not in here\"\n";

#[test]
fn help_says_what_trust_is() {
    check("help_trust", &["trust", "--help"]);
}

#[test]
fn nothing_of_a_project_runs_before_it_is_trusted_and_everything_after() {
    let (home, cloned) = (Home::new(), Cloned::new());
    let shown = cloned.state(&home);
    assert_eq!(shown["state"], "untrusted");
    assert_eq!(shown["items"][0]["kind"], "script");
    assert_eq!(shown["items"][0]["uses"][0], "call:echo");
    let refused = cloned.run(&home, &["call", "greeter.hello"]);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("with `dodona trust`"),
        "{}",
        refused.shown()
    );
    // Nobody can be asked, so nothing is trusted.
    let asked = cloned.run(&home, &["trust"]);
    assert_eq!(asked.code, Some(3), "{}", asked.shown());
    assert_eq!(cloned.state(&home)["state"], "untrusted");
    let accepted = cloned.run(&home, &["trust", "accept", "--yes"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.shown());
    assert!(
        accepted.stdout.contains("trusted by"),
        "{}",
        accepted.shown()
    );
    let said = cloned.run(&home, &["call", "greeter.hello", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.shown());
    // It is there for its project alone.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join(".dodona")).unwrap();
    let other = run_in(&home, elsewhere.path(), &["call", "greeter.hello"]);
    assert_ne!(other.code, Some(0), "{}", other.shown());
    let listed = cloned.run(&home, &["trust", "list"]);
    let root = cloned.root().display().to_string();
    assert!(listed.stdout.contains(&root), "{}", listed.shown());
}

#[test]
fn a_change_of_any_file_asks_again_and_says_what_changed() {
    let (home, cloned) = (Home::new(), Cloned::new());
    cloned.run(&home, &["trust", "accept", "--yes"]);
    cloned.write(
        "plugins/greeter/main.luau",
        &SCRIPT.replace("'hello' }", "'changed' }"),
    );
    cloned.write("prompts/system.md", "Obey.");
    let shown = cloned.state(&home);
    assert_eq!(shown["state"], "changed");
    let changes = shown["changes"].to_string();
    assert!(
        changes.contains("{\"path\":\"plugins/greeter/main.luau\",\"change\":\"changed\"}"),
        "{changes}"
    );
    assert!(
        changes.contains("{\"path\":\"prompts/system.md\",\"change\":\"added\"}"),
        "{changes}"
    );
    let refused = cloned.run(&home, &["call", "greeter.hello"]);
    assert!(
        refused.stderr.contains("changed since it was trusted"),
        "{}",
        refused.shown()
    );
    cloned.run(&home, &["trust", "accept", "--yes"]);
    let said = cloned.run(&home, &["call", "greeter.hello", "--json"]);
    assert!(said.stdout.contains("changed"), "{}", said.shown());
    // Settings need no trust, and rules do.
    cloned.write("config.toml", "");
    assert_eq!(cloned.state(&home)["state"], "trusted");
    cloned.write("rules/a.toml", DENY);
    assert_eq!(cloned.state(&home)["state"], "changed");
    let revoked = cloned.run(&home, &["trust", "revoke"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.shown());
    assert_ne!(cloned.run(&home, &["call", "greeter.hello"]).code, Some(0));
    // Whoever had it active cannot make it so by another way.
    let enabled = cloned.run(&home, &["plugins", "enable", "greeter"]);
    assert!(
        enabled.stderr.contains("belongs to the project"),
        "{}",
        enabled.shown()
    );
}

/// What cannot even be read as a script is not read before somebody trusts it.
#[test]
fn an_untrusted_script_is_not_even_compiled() {
    let (home, cloned) = (Home::new(), Cloned::new());
    cloned.write("plugins/greeter/main.luau", "this is no Luau (");
    cloned.run(&home, &["trust", "show"]);
    let listed = cloned.run(&home, &["plugins", "list"]);
    assert!(listed.stdout.contains("discovered"), "{}", listed.shown());
    assert!(!listed.stdout.contains("main.luau"), "{}", listed.shown());
    cloned.run(&home, &["trust", "accept", "--yes"]);
    let listed = cloned.run(&home, &["plugins", "list"]);
    assert!(listed.stdout.contains("main.luau"), "{}", listed.shown());
}

#[test]
fn a_project_with_nothing_to_trust_says_so() {
    let home = Home::new();
    let project = tempfile::tempdir().unwrap();
    fs::create_dir_all(project.path().join(".dodona/rules")).unwrap();
    let shown = run_in(&home, project.path(), &["trust"]);
    assert_eq!(shown.code, Some(0), "{}", shown.shown());
    assert!(
        shown.stdout.contains("nothing in it needs trust"),
        "{}",
        shown.shown()
    );
}

#[cfg(unix)]
#[test]
fn a_link_in_what_would_be_trusted_is_refused() {
    let (home, cloned) = (Home::new(), Cloned::new());
    let link = cloned.root().join(".dodona/plugins/other");
    std::os::unix::fs::symlink("/tmp", link).unwrap();
    let refused = cloned.run(&home, &["trust", "accept", "--yes"]);
    assert_eq!(refused.code, Some(3), "{}", refused.shown());
    assert!(refused.stdout.contains("is a link"), "{}", refused.shown());
}

/// The project of a user, empty but for `.dodona`.
fn empty_project() -> TempDir {
    let project = tempfile::tempdir().unwrap();
    fs::create_dir_all(project.path().join(".dodona")).unwrap();
    project
}

fn save(project: &Path, file: &str, text: &str) {
    let path = project.join(".dodona").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn rules_of_a_cloned_project_are_inactive_until_they_are_trusted() {
    let (home, project) = (Home::new(), empty_project());
    save(project.path(), "rules/a.toml", DENY);
    let run = |arguments: &[&str]| run_in(&home, project.path(), arguments);
    let listed = run(&["rules", "list"]);
    assert!(
        listed.stdout.contains("inactive: project not trusted"),
        "{}",
        listed.shown()
    );
    // The notice is printed once per change.
    assert!(
        listed
            .stderr
            .contains("because it is not trusted: 1 rule; review it with `dodona trust show`"),
        "{}",
        listed.shown()
    );
    let called = run(&["call", "echo.say", "text=x"]);
    assert_eq!(called.code, Some(0), "{}", called.shown());
    let listed = run(&["rules", "list"]);
    assert_eq!(listed.stderr, "", "{}", listed.shown());
    save(
        project.path(),
        "rules/b.toml",
        &DENY.replace("\"a\"", "\"b\""),
    );
    let listed = run(&["rules", "list"]);
    assert!(listed.stderr.contains("2 rules"), "{}", listed.shown());
    let shown = run(&["trust", "show"]);
    assert!(
        shown.stdout.contains("on_tool_call: deny"),
        "{}",
        shown.shown()
    );
    run(&["trust", "accept", "--yes"]);
    let called = run(&["call", "echo.say", "text=x"]);
    assert_eq!(called.code, Some(3), "{}", called.shown());
    assert!(
        called.stderr.contains("says: not in here"),
        "{}",
        called.shown()
    );
    // A rule that changes is inactive again; the reviewed one stays.
    save(
        project.path(),
        "rules/a.toml",
        &DENY.replace("not in here", "changed"),
    );
    let called = run(&["call", "echo.say", "text=x"]);
    assert!(called.stderr.contains("rule `b`"), "{}", called.shown());
    let listed = run(&["rules", "list"]);
    assert!(
        listed.stdout.contains("inactive: changed since trusted"),
        "{}",
        listed.shown()
    );
}

#[test]
fn a_project_that_the_user_began_needs_no_second_step() {
    for begin in [
        &["init"][..],
        &["rules", "new", "first"],
        &["trust", "accept", "--follow", "--yes"],
    ] {
        let (home, project) = (Home::new(), tempfile::tempdir().unwrap());
        fs::create_dir(project.path().join(".git")).unwrap();
        let run = |arguments: &[&str]| run_in(&home, project.path(), arguments);
        let begun = run(begin);
        assert_eq!(
            (begun.code, &*begun.stderr),
            (Some(0), ""),
            "{}",
            begun.shown()
        );
        // Saved in an editor.
        save(project.path(), "rules/a.toml", DENY);
        let called = run(&["call", "echo.say", "text=x"]);
        assert_eq!(called.code, Some(3), "{}", called.shown());
    }
}

#[test]
fn a_new_rule_in_a_clone_is_trusted_and_the_rest_of_the_clone_is_not() {
    let (home, cloned) = (Home::new(), Cloned::new());
    cloned.write("rules/a.toml", DENY);
    let made = cloned.run(&home, &["rules", "new", "mine"]);
    assert_eq!(made.code, Some(0), "{}", made.shown());
    assert!(made.stderr.contains("review it with"), "{}", made.shown());
    let listed = cloned.run(&home, &["rules", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let inactive = |rule: &str| {
        let mut rules = listed["rules"].as_array().unwrap().iter();
        rules.find(|one| one["rule"] == rule).unwrap()["inactive"].clone()
    };
    assert_eq!(inactive("rules/mine"), Value::Null);
    assert_eq!(inactive("rules/a"), "changed_since_trusted");
    assert_ne!(cloned.run(&home, &["call", "greeter.hello"]).code, Some(0));
}

#[cfg(unix)]
#[test]
fn settings_of_a_project_are_not_read_through_a_link() {
    let (home, project) = (Home::new(), empty_project());
    let secret = home.path().with_file_name("secret");
    fs::write(&secret, "dod_secret_of_the_owner").unwrap();
    let link = project.path().join(".dodona/config.toml");
    std::os::unix::fs::symlink(&secret, link).unwrap();
    for arguments in [
        &["config", "show"][..],
        &["trust", "show"],
        &["rules", "list"],
    ] {
        let outcome = run_in(&home, project.path(), arguments);
        let shown = outcome.shown();
        assert!(!shown.contains("dod_secret"), "{shown}");
    }
}

#[test]
fn no_entry_of_the_roster_removes_the_rules() {
    for entry in [
        "module = \"builtin:echo\"",
        "module = \"builtin:rules\"\nclass = \"Nope\"",
        "module = \"mcp:nope\"",
        "module = \"dir:plugins/nope\"",
        "module = \"builtin:nope\"",
    ] {
        let home = Home::new();
        home.configure("");
        let config = home.path().join("config");
        let roster = format!("[plugin.rules]\nenabled = true\n{entry}\n");
        fs::write(config.join("plugins.toml"), roster).unwrap();
        fs::create_dir(config.join("rules")).unwrap();
        fs::write(config.join("rules/a.toml"), DENY).unwrap();
        let called = home.run(&["call", "echo.say", "text=x"]);
        assert_eq!(called.code, Some(3), "{entry}: {}", called.shown());
        let checked = home.run(&["plugins", "check"]);
        let shown = checked.shown();
        assert!(
            shown.contains("`rules` is always active"),
            "{entry}: {shown}"
        );
    }
}
