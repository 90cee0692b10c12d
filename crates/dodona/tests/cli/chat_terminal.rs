//! `dodona chat`, as somebody at a terminal uses it.

use std::os::unix::fs::PermissionsExt;

use dodona_testkit::model_server::{Gate, Reply};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::Home;
use crate::model::{Model, last_query};
use crate::pty::{CTRL_C, CTRL_D, Terminal, UP};

#[test]
fn an_answer_is_shown_as_it_comes() {
    let home = Home::new();
    let model = Model::of(&home);
    let gate = Gate::new();
    model.says(Reply::stream().add_text("Hel").wait(&gate).add_text("lo."));
    let mut terminal = Terminal::run(&home, &["chat"]);
    terminal.shows("> ");
    terminal.types("Hi\r");
    terminal.shows("Hel");
    gate.open();
    terminal.shows("lo.\r\n");
    terminal.shows("note: 1 paragraph without a citation");
    terminal.shows("main · ");
    terminal.shows("> ");
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(model.question(), "Hi");
    assert_eq!(last_query(&home), "complete");
}

#[test]
fn ctrl_c_stops_the_answer_and_not_the_program() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::stream().add_text("On and on").wait(&Gate::new()));
    let mut terminal = Terminal::run(&home, &["chat"]);
    terminal.shows("> ");
    terminal.types("Go on\r");
    terminal.shows("On and on");
    terminal.types(CTRL_C);
    terminal.shows("cancelled");
    terminal.shows("> ");
    model.until_abandoned();
    assert_eq!(last_query(&home), "cancelled");
    model.says(Reply::text("Here I am."));
    terminal.types("Still there?\r");
    terminal.shows("Here I am.");
    terminal.shows("> ");
    terminal.types("/quit\r");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn ctrl_c_at_the_prompt_drops_what_was_typed() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::text("Well."));
    let mut terminal = Terminal::run(&home, &["chat"]);
    terminal.shows("> ");
    terminal.types("never mind");
    terminal.shows("never mind");
    terminal.types(CTRL_C);
    terminal.shows("> ");
    terminal.types("But this\r");
    terminal.shows("Well.");
    assert_eq!(model.question(), "But this");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn tools_are_shown_with_how_they_went() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(
        Reply::stream()
            .reasoning("Hm, where is it?")
            .add_text("Let me see.")
            .tool_call("a", "vault_search", &[r#"{"query":"login"}"#])
            .tool_call("b", "nosuch", &["{}"]),
    );
    model.says(Reply::text("Nowhere."));
    let mut terminal = Terminal::run(&home, &["chat", "--color", "never"]);
    terminal.shows("> ");
    terminal.types("Where is login?\r");
    terminal.shows("Hm, where is it?\r\nLet me see.\r\n");
    terminal.shows("Nowhere.\r\n");
    // Tools are shown as they end, so either may be first.
    let screen = terminal.screen();
    assert!(screen.contains("› vault.search \"login\" · "), "{screen}");
    let unknown = screen.lines().find(|line| line.contains("› nosuch · "));
    assert!(
        unknown.is_some_and(|line| line.contains("error: ")),
        "{screen}"
    );
    terminal.shows("> ");
}

#[test]
fn questions_of_several_lines_are_remembered_for_the_next_chat() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::text("First."));
    model.says(Reply::text("Second."));
    let mut terminal = Terminal::run(&home, &["chat"]);
    terminal.shows("> ");
    terminal.types("one \\\r");
    terminal.types("two\r");
    terminal.shows("First.");
    terminal.shows("> ");
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(model.question(), "one \ntwo");
    let mode = home.data().join("chat-history").metadata().unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let mut terminal = Terminal::run(&home, &["chat"]);
    terminal.shows("> ");
    terminal.types(UP);
    terminal.shows("two");
    terminal.types("\r");
    terminal.shows("Second.");
    assert_eq!(model.question(), "one \ntwo");
}

#[test]
fn being_told_to_end_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    Model::of(&home);
    let mut terminal = Terminal::run(&home, &["chat"]);
    terminal.shows("> ");
    assert!(!terminal.is_as_before(), "a line is being edited");
    kill_process(Pid::from_child(terminal.child()), Signal::TERM).unwrap();
    let seen = terminal.screen();
    crate::harness::wait_until("the program ends", || {
        terminal.child().try_wait().unwrap().is_some()
    });
    assert!(terminal.is_as_before(), "{seen}");
}
