//! `dodona init` and `dodona config`.

use std::fs;

use insta::assert_snapshot;

use crate::harness::Home;

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
