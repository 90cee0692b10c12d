//! The program as a library, with a plugin of its own.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Output};

use serde_json::{Value, json};

use crate::harness::Home;

#[path = "../../examples/own_plugin/greeter.rs"]
mod greeter;

/// The variable that makes this test the program; it holds the command line.
const WORDS: &str = "DODONA_TEST_WORDS";

/// Runs the program with the plugin `greeter` by running this test again.
fn run(home: &Home, words: &[&str]) -> Output {
    let name = "library::a_plugin_of_the_program_is_a_method_a_tool_and_in_the_roster";
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(WORDS, words.join("\n"))
        .env("DODONA_HOME", home.path())
        .current_dir(home.path().parent().unwrap())
        .output()
        .unwrap()
}

/// The JSON that the program printed, among what the test harness prints.
fn json_of(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| Some(&line[line.find('{')?..]));
    let line = line.unwrap_or_else(|| panic!("{output:?}"));
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn a_plugin_of_the_program_is_a_method_a_tool_and_in_the_roster() {
    if let Ok(words) = std::env::var(WORDS) {
        let words = std::iter::once("dodona").chain(words.split('\n'));
        let app = dodona::App::new().plugin(greeter::GreeterPlugin);
        let code = app.run_from(words.map(OsString::from));
        assert_eq!(code, ExitCode::SUCCESS);
        return;
    }
    let home = Home::new();
    let greeted = run(&home, &["call", "greeter.greet", "name=Ada", "--json"]);
    assert_eq!(json_of(&greeted), json!({ "text": "Hello, Ada!" }));
    let offered = run(&home, &["methods", "greeter.greet", "--json"]);
    assert!(offered.status.success(), "{offered:?}");
    // The roster knows it as a built-in, and can disable it.
    let disabled = run(&home, &["plugins", "disable", "greeter", "--json"]);
    assert_eq!(json_of(&disabled)["state"], "disabled", "{disabled:?}");
    let refused = run(&home, &["call", "greeter.greet", "name=Ada"]);
    assert!(!refused.status.success(), "{refused:?}");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("dodona plugins enable greeter"), "{told}");
}

#[test]
fn the_how_to_shows_the_example_as_it_is() {
    let page = include_str!("../../../../docs/how-to/add-a-plugin.md");
    let main = include_str!("../../examples/own_plugin/main.rs");
    let code = main.split_once("\n\n").unwrap().1;
    assert!(page.contains(code), "the how-to does not have:\n{code}");
}
