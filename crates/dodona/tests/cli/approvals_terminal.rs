//! Tools that ask a person first, where there is a terminal to ask in.

use dodona_testkit::model_server::Reply;
use serde_json::Value;

use crate::approvals::{asking, searches, told};
use crate::pty::{CTRL_C, CTRL_D, Terminal};

#[test]
fn somebody_at_a_terminal_is_asked_and_a_clear_yes_lets_it_run() {
    let (home, model) = asking();
    for (typed, refused) in [("y\r", false), ("\r", true), ("n\r", true)] {
        searches(&model);
        let mut terminal = Terminal::run(&home, &["ask", "How does login work?"]);
        terminal.shows("\"query\": \"login\"");
        terminal.shows("Allow `vault.search`? [y/N] ");
        terminal.types(typed);
        terminal.shows("That is all.");
        assert_eq!(terminal.ends(), Some(0));
        let denied = told(&model)["code"] == "policy.denied";
        assert_eq!(denied, refused, "{typed:?}: {}", told(&model));
    }
}

#[test]
fn a_chat_asks_too_and_goes_on_when_the_question_is_stopped() {
    let (home, model) = asking();
    let search = r#"{"query":"login"}"#;
    model.says(Reply::stream().tool_call("a", "vault_search", &[search]));
    let mut terminal = Terminal::run(&home, &["chat"]);
    terminal.shows("> ");
    terminal.types("How does login work?\r");
    terminal.shows("[y/N] ");
    terminal.types(CTRL_C);
    terminal.shows("cancelled");
    terminal.shows("> ");
    // Nothing of the question is left that would take what is typed next.
    searches(&model);
    terminal.types("And now?\r");
    terminal.shows("[y/N] ");
    terminal.types("yes\r");
    terminal.shows("That is all.");
    terminal.shows("> ");
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends(), Some(0));
    let all = home.run(&["approvals", "list", "--all", "--json"]).stdout;
    let all: Value = serde_json::from_str(&all).unwrap();
    let states: Vec<&Value> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["state"])
        .collect();
    assert_eq!(states, ["approved", "cancelled"]);
}
