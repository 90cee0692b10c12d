//! `dodona methods`.

use crate::harness::{Home, check};
use serde_json::Value;

#[test]
fn a_plugins_methods_are_a_table() {
    check("methods_of_a_plugin", &["methods", "echo"]);
}

#[test]
fn everything_is_listed() {
    let listed = Home::new().run(&["methods"]).stdout;
    for name in ["echo.say", "hub.methods"] {
        assert!(
            listed.lines().any(|line| line.starts_with(name)),
            "{listed}"
        );
    }
}

#[test]
fn one_method_is_told_in_full() {
    check("methods_one", &["methods", "echo.count"]);
    check("methods_one_without_parameters", &["methods", "echo.tally"]);
    check("methods_one_with_choices", &["methods", "hub.stream"]);
}

#[test]
fn schemas_are_json() {
    check("methods_schema", &["methods", "echo.say", "--schema"]);
}

#[test]
fn descriptors_are_json() {
    let home = Home::new();
    let all: Value = serde_json::from_str(&home.run(&["methods", "--json"]).stdout).unwrap();
    let names: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"echo.nest"), "{names:?}");
    let one = home.run(&["methods", "echo.nest", "--json"]).stdout;
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["kind"], "streaming");
}

#[test]
fn unknown_names_are_told_with_the_nearest() {
    check("methods_unknown_plugin", &["methods", "ehco"]);
    check("methods_unknown_method", &["methods", "echo.cuont"]);
}
