//! Loading: who wins, what counts where, and what is refused.

use std::path::Path;

use dodona_rules::load::{self, Layers, LoadedFile, LoadedRules, load_directory, load_file};
use dodona_rules::{Problem, Scope};

use crate::rig::{Rig, put, rule};

fn plain(id: &str, head: &str) -> String {
    rule(id, "on_turn_start", "True", "type = \"log\"")
        .replace("trigger", &format!("{head}\ntrigger"))
}

/// Loads one file with this text.
fn one(text: &[u8], scope: Scope) -> LoadedFile {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    std::fs::write(&path, text).unwrap();
    load_file(&path, scope)
}

fn only(loaded: &LoadedFile) -> String {
    assert_eq!(loaded.problems.len(), 1, "{:#?}", loaded.problems);
    let line = loaded.problems[0].to_string();
    let start = line.find("a.toml").unwrap();
    line[start..].to_owned()
}

#[test]
fn what_counts_in_bundled_and_user_rules_only_is_said_elsewhere() {
    let text = plain("a", "core = true\nplugin_id = \"jira\"");
    for scope in [Scope::Bundled, Scope::User] {
        let loaded = one(text.as_bytes(), scope);
        let rule = loaded.rule.unwrap();
        assert!(rule.is_core && rule.key.to_string() == "jira/a");
        assert!(loaded.problems.is_empty());
    }
    let plugin = dodona_proto::PluginName::new("slack").unwrap();
    for (scope, key) in [
        (Scope::Project, "rules/a"),
        (Scope::Plugin(plugin), "slack/a"),
    ] {
        let loaded = one(text.as_bytes(), scope);
        let rule = loaded.rule.as_ref().unwrap();
        assert!(!rule.is_core && rule.key.to_string() == key);
        let lines: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].contains("a.toml:4:13  warning: `plugin_id` is only allowed in bundled rules")
        );
        assert!(lines[1].contains("a.toml:3:8  warning: `core` is only allowed in bundled rules"));
    }
}

fn layer(folder: &Path, name: &str, texts: &[(&str, String)], scope: Scope) -> Vec<LoadedFile> {
    let folder = folder.join(name);
    for (name, text) in texts {
        put(&folder, name, text);
    }
    load_directory(&folder, &scope)
}

#[test]
fn a_project_can_only_add_and_a_core_rule_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let layers = Layers {
        bundled: layer(
            root,
            "bundled",
            &[
                ("a.toml", plain("core", "core = true\nname = \"bundled\"")),
                ("b.toml", plain("soft", "name = \"bundled\"")),
            ],
            Scope::Bundled,
        ),
        user: layer(
            root,
            "user",
            &[
                ("a.toml", plain("core", "name = \"user\"")),
                ("b.toml", plain("soft", "name = \"user\"")),
                ("c.toml", plain("mine", "name = \"user\"")),
                ("d.toml", plain("mine", "name = \"twice\"")),
            ],
            Scope::User,
        ),
        project: layer(
            root,
            "project",
            &[
                ("a.toml", plain("core", "name = \"project\"")),
                ("b.toml", plain("mine", "name = \"project\"")),
                ("c.toml", plain("new", "name = \"project\"")),
            ],
            Scope::Project,
        ),
        ..Layers::default()
    };
    let loaded = LoadedRules::of(layers);
    let mut names: Vec<(&str, &str)> = loaded
        .rules
        .rules()
        .iter()
        .map(|rule| (rule.rule.id.as_str(), rule.rule.name.as_str()))
        .collect();
    names.sort_unstable();
    let expected = [
        ("core", "bundled"),
        ("mine", "user"),
        ("new", "project"),
        ("soft", "user"),
    ];
    assert_eq!(names, expected);
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4, "{problems:#?}");
    assert!(problems[0].contains("`rules/core` is a core rule and cannot be replaced"));
    assert!(problems[1].contains("d.toml:2:6") && problems[1].contains("already"));
    assert!(loaded.problems.iter().all(Problem::is_error));
}

#[test]
fn rules_are_asked_by_priority_and_then_by_id() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = layer(
        folder.path(),
        "x",
        &[
            ("1.toml", plain("b", "")),
            ("2.toml", plain("a", "")),
            ("3.toml", plain("z", "priority = 1000")),
            ("4.toml", plain("y", "priority = 1")),
        ],
        Scope::User,
    );
    let loaded = LoadedRules::of(Layers {
        user: loaded,
        ..Layers::default()
    });
    let order: Vec<&str> = loaded
        .rules
        .at(dodona_rules::Trigger::OnTurnStart)
        .rules()
        .map(|rule| rule.rule.id.as_str())
        .collect();
    assert_eq!(order, ["z", "a", "b", "y"]);
}

#[test]
fn a_script_cannot_be_outside_of_its_rules_directory() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("outside.lua"), "return true").unwrap();
    let rules = folder.path().join("rules");
    std::fs::create_dir(&rules).unwrap();
    std::os::unix::fs::symlink(folder.path().join("outside.lua"), rules.join("link.lua")).unwrap();
    let absolute = folder.path().join("outside.lua").display().to_string();
    for script in [
        "../outside.lua",
        "a/../../outside.lua",
        &absolute,
        "link.lua",
    ] {
        let text = format!(
            "[rule]\nid = \"a\"\ntrigger = \"on_turn_start\"\n[condition]\nscript = \"{script}\"\n[action]\ntype = \"log\"\n"
        );
        put(&rules, "a.toml", &text);
        let loaded = load_file(&rules.join("a.toml"), Scope::User);
        assert!(loaded.rule.is_none());
        assert!(
            only(&loaded).contains("is outside the directory of its rule"),
            "{script}"
        );
    }
    let missing = "[rule]\nid = \"a\"\ntrigger = \"on_turn_start\"\n[condition]\nscript = \"no.lua\"\n[action]\ntype = \"log\"\n";
    put(&rules, "a.toml", missing);
    let loaded = load_file(&rules.join("a.toml"), Scope::User);
    assert!(only(&loaded).contains("a.toml:5:10  error: failed to read script `no.lua`"));
}

#[test]
fn bytes_that_are_no_text_and_files_that_are_too_large_are_refused() {
    let loaded = one(b"[rule]\nid = \"\xff\xfe\"\n", Scope::User);
    assert!(only(&loaded).contains("invalid UTF-8 in line 2"));
    let large = vec![b'#'; 10 << 20];
    assert!(
        only(&one(&large, Scope::User))
            .contains("the file has 10485760 bytes; the maximum is 262144")
    );
    let missing = load_file(Path::new("/nowhere/a.toml"), Scope::User);
    assert!(only(&missing).contains("failed to read the file"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a.toml")).unwrap();
    let directory = load_file(&folder.path().join("a.toml"), Scope::User);
    assert!(only(&directory).contains("it is no file"));
}

#[test]
fn a_directory_that_is_not_there_has_no_rules_and_no_problems() {
    assert!(
        load::rule_files(Path::new("/nowhere/rules"))
            .unwrap()
            .is_empty()
    );
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a.toml", &plain("a", ""));
    put(folder.path(), ".hidden.toml", "nonsense");
    put(folder.path(), "notes.md", "nonsense");
    assert_eq!(load_directory(folder.path(), &Scope::User).len(), 1);
}

#[tokio::test]
async fn a_file_that_is_not_named_after_its_rule_is_a_warning_of_the_check() {
    let texts = ["token-budget", "well-named", "in-project"].map(|id| plain(id, ""));
    let rig = Rig::with(&[
        ("budget.toml", &texts[0]),
        ("well-named.toml", &texts[1]),
        // Only the case differs; on some file systems it is the same file.
        ("Upper.toml", &plain("upper", "")),
    ])
    .await;
    rig.put_in_project("other.toml", &texts[2]);
    rig.reload().await;
    let mut problems = rig.problems().await;
    problems.sort();
    let tail = |problem: &String| problem.rsplit('/').next().unwrap().to_owned();
    let tails: Vec<String> = problems.iter().map(tail).collect();
    assert_eq!(
        tails,
        [
            "Upper.toml:2:6  warning: the file is named `Upper.toml`, but the id of its rule is \
             `upper`, rename the file to `upper.toml`",
            "budget.toml:2:6  warning: the file is named `budget.toml`, but the id of its rule is \
             `token-budget`, rename the file to `token-budget.toml`",
            "other.toml:2:6  warning: the file is named `other.toml`, but the id of its rule is \
             `in-project`, rename the file to `in-project.toml`",
        ]
    );
    // It is a warning: the rule is in force.
    assert!(rig.listed("rules/token-budget").await.is_some());
}
