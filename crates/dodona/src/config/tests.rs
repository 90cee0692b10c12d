//! What is read, what is refused, and that the reference tells the same.

use super::*;
use std::time::Duration;

#[test]
fn settings_are_read() {
    let (config, faults) = parse(
        r#"
        [calls]
        unary_timeout = "5s"
        [limits]
        params_size = "64 MiB"
        user = { per_second = 7, concurrent = 3 }
        [limits.plugin.echo]
        burst = 0x10
        [journal]
        max_age = "30d"
        "#,
        Layer::User,
    );
    assert_eq!(faults, []);
    let config = config.hub;
    assert_eq!(config.unary_timeout, Duration::from_secs(5));
    assert_eq!(config.limits.params_bytes, 64 << 20);
    assert_eq!(config.limits.user.per_second, 7);
    let echo = dodona_proto::PluginName::new("echo").unwrap();
    assert_eq!(config.limits.plugin[&echo].burst, 16);
    assert_eq!(config.retention.max_age, Duration::from_secs(30 * 86_400));
}

#[test]
fn every_fault_is_found_and_shown_with_its_line() {
    let text = r#"journal = 3
[calls]
unary_timout = "5s"
stream_grace = "soon"
nested = 1

[limits]
nested = -1
params_size = 4096
colour = "red"

[limits.plugin."No Name"]
burst = 1
"#;
    let (_, faults) = parse(text, Layer::User);
    let drawn = excerpt::draw("config.toml", text, &faults, Paint::plain());
    insta::assert_snapshot!(drawn);
}

#[test]
fn a_text_that_is_no_toml_is_one_fault() {
    let text = "[calls\nunary_timeout = ";
    let (_, faults) = parse(text, Layer::User);
    let drawn = excerpt::draw("config.toml", text, &faults, Paint::plain());
    insta::assert_snapshot!(drawn);
}

#[test]
fn a_project_sets_what_is_its_own_and_nothing_else() {
    let (settings, faults) = parse("vault.root = \"./notes/\"", Layer::Project);
    assert_eq!(faults, []);
    assert_eq!(settings.project.vault_root.as_deref(), Some("notes"));
    let text = r#"models.theirs = { provider = "openai", base_url = "https://elsewhere.example" }
[vault]
root = "../elsewhere"
"#;
    let (settings, faults) = parse(text, Layer::Project);
    assert!(settings.models.is_empty());
    let drawn = excerpt::draw(".dodona/config.toml", text, &faults, Paint::plain());
    insta::assert_snapshot!(drawn);
}

#[test]
fn a_fault_inside_a_model_is_shown_where_it_is() {
    let text = "[models.mine]\nprovider = \"opnai\"\n\n[models.other]\nprovider = \"ollama\"\nmodle = \"x\"\n";
    let (settings, faults) = parse(text, Layer::User);
    assert!(settings.models.is_empty());
    let drawn = excerpt::draw("config.toml", text, &faults, Paint::plain());
    insta::assert_snapshot!(drawn);
}

#[test]
fn a_project_wins_over_the_user_and_the_origin_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("config.toml");
    std::fs::write(
        &user,
        "[vault]\nroot = \"mine\"\n[journal]\nmax_age = \"1d\"\n",
    )
    .unwrap();
    let root = folder.path().join("project");
    std::fs::create_dir_all(root.join(".dodona")).unwrap();
    std::fs::write(project_file(&root), "vault.root = \"theirs\"\n").unwrap();
    let (settings, origins) = load_with_project(&user, Some(&root)).unwrap();
    assert_eq!(settings.project.vault_root.as_deref(), Some("theirs"));
    let origin = |layer, line| Some(Origin { layer, line });
    assert_eq!(
        origins.get("vault.root").cloned(),
        origin(Layer::Project, 1)
    );
    assert_eq!(
        origins.get("journal.max_age").cloned(),
        origin(Layer::User, 4)
    );
}

#[test]
fn a_new_file_says_what_can_be_set_and_sets_nothing() {
    for layer in [Layer::User, Layer::Project] {
        let text = new_file(layer);
        let (_, faults) = parse(&text, layer);
        assert_eq!(faults, [], "{text}");
        // Uncommented it is valid as well.
        let bare: String = text
            .lines()
            .map(|line| {
                line.strip_prefix("#")
                    .filter(|rest| !rest.starts_with(' '))
                    .unwrap_or(line)
            })
            .map(|line| format!("{line}\n"))
            .collect();
        let (_, faults) = parse(&bare, layer);
        assert_eq!(faults, [], "{bare}");
    }
    insta::assert_snapshot!(new_file(Layer::Project));
}

/// The rows of the reference's table: key, default and meaning.
fn documented() -> Vec<(String, String, String)> {
    let reference = include_str!("../../../../docs/reference/configuration.md");
    let rows = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut cells = row
            .split(" | ")
            .map(|cell| cell.trim_end_matches(" |").trim());
        let mut cell = || cells.next().unwrap_or_default().to_owned();
        let (key, default) = (cell(), cell());
        (
            key.trim_matches('`').to_owned(),
            default.trim_matches('`').to_owned(),
            cell(),
        )
    })
    .collect()
}

#[test]
fn the_reference_has_every_key_with_its_default_and_meaning() {
    let known: Vec<(String, String, String)> = KEYS
        .iter()
        .map(|key| {
            let default = key.default().unwrap_or_default();
            (
                key.name.replace(
                    '*',
                    match key.name.starts_with("limits.") {
                        true => "PLUGIN",
                        false => "NAME",
                    },
                ),
                default,
                key.about.to_owned(),
            )
        })
        .collect();
    assert_eq!(documented(), known);
}
