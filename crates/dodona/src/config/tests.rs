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
    );
    assert_eq!(faults, []);
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
    let (_, faults) = parse(text);
    let drawn = excerpt::draw("config.toml", text, &faults, Paint::plain());
    insta::assert_snapshot!(drawn);
}

#[test]
fn a_text_that_is_no_toml_is_one_fault() {
    let text = "[calls\nunary_timeout = ";
    let (_, faults) = parse(text);
    let drawn = excerpt::draw("config.toml", text, &faults, Paint::plain());
    insta::assert_snapshot!(drawn);
}

/// The rows of the reference's table: key and default.
fn documented() -> Vec<(String, String)> {
    let reference = include_str!("../../../../docs/reference/configuration.md");
    let rows = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`'));
        let mut cell = || cells.next().unwrap_or_default().to_owned();
        (cell(), cell())
    })
    .collect()
}

#[test]
fn the_reference_has_every_key_with_its_default() {
    let known: Vec<(String, String)> = KEYS
        .iter()
        .map(|key| (key.name.replace('*', "PLUGIN"), key.default()))
        .collect();
    assert_eq!(documented(), known);
}
