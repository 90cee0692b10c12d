//! What it says about itself.

use crate::harness::{Home, check};

#[test]
fn the_help_lists_the_commands() {
    check("help", &["--help"]);
}

#[test]
fn call_explains_parameters_and_exit_codes() {
    check("help_call", &["call", "--help"]);
}

#[test]
fn ask_and_chat_say_how_they_are_used() {
    check("help_ask", &["ask", "--help"]);
    check("help_chat", &["chat", "--help"]);
}

#[test]
fn methods_has_examples() {
    check("help_methods", &["methods", "--help"]);
}

#[test]
fn doctor_says_what_it_changes() {
    check("help_doctor", &["doctor", "--help"]);
}

#[test]
fn completions_say_where_to_put_them() {
    check("help_completions", &["completions", "--help"]);
}

#[test]
fn the_version_is_one_line() {
    check("version", &["--version"]);
}

#[test]
fn an_unknown_command_is_told_with_the_nearest() {
    check("unknown_command", &["mehtods"]);
}

#[test]
fn without_a_command_an_overview_is_shown() {
    let home = Home::new();
    let outcome = home.run(&[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("model    none configured"));
    assert!(!home.data().exists(), "looking creates nothing");
}

#[test]
fn a_mistyped_command_is_suggested() {
    for (words, meant) in [(["aks", "Why?"], "ask"), (["rules", "lsit"], "list")] {
        let outcome = Home::new().run(&words);
        assert_eq!(outcome.code, Some(2));
        let hint = format!("a similar subcommand exists: '{meant}'");
        assert!(outcome.stderr.contains(&hint), "{}", outcome.stderr);
    }
}

#[test]
fn every_command_has_examples() {
    let home = Home::new();
    let help = home.run(&["--help"]).stdout;
    let commands = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| line.split(' ').next())
        .filter(|command| !command.is_empty() && *command != "help");
    for command in commands {
        let help = home.run(&[command, "--help"]).stdout;
        assert!(help.contains("Examples:\n  dodona "), "{command}: {help}");
    }
}
