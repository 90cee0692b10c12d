//! `dodona steer`.

use dodona_testkit::model_server::{Gate, Reply};
use serde_json::Value;

use crate::harness::{Home, wait_until};
use crate::model::Model;
use crate::serve::Server;

#[test]
fn a_message_reaches_the_query_that_is_running() {
    let home = Home::new();
    let model = Model::of(&home);
    let server = Server::on(home);
    let gate = Gate::new();
    model.says(
        Reply::stream()
            .add_text("It is")
            .wait(&gate)
            .add_text(" so."),
    );
    model.says(Reply::text("C'est ça."));
    let mut ask = server.home.command(&["ask", "Explain", "--no-tools"]);
    let ask = ask.stdout(std::process::Stdio::piped()).spawn().unwrap();
    wait_until("the model is asked", || model.requests().len() == 1);
    let steered = server.home.run(&["steer", "In French, please", "--json"]);
    assert_eq!(steered.code, Some(0), "{}", steered.stderr);
    let steered: Value = serde_json::from_str(&steered.stdout).unwrap();
    assert!(steered["query_id"].is_string(), "{steered}");
    let more = server.home.run_with_input(&["steer", "-"], "And shorter\n");
    assert_eq!(more.code, Some(0), "{}", more.stderr);
    assert!(more.stdout.starts_with("sent to query "), "{}", more.stdout);
    gate.open();
    let answered = ask.wait_with_output().unwrap();
    assert!(answered.status.success());
    let sent = model.requests().pop().unwrap();
    let sent: Vec<&str> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        sent,
        ["Explain", "It is so.", "In French, please", "And shorter"]
    );
    let shown = server.home.run(&["contexts", "show"]).stdout;
    assert!(shown.contains("steering   In French, please"), "{shown}");
}

#[test]
fn without_a_running_query_the_error_names_the_way() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::text("Yes."));
    assert_eq!(home.run(&["ask", "One?", "--no-tools"]).code, Some(0));
    let steered = home.run(&["steer", "Too late"]);
    assert_ne!(steered.code, Some(0));
    assert!(
        steered
            .stderr
            .contains("no query is running in the conversation `default`"),
        "{}",
        steered.stderr
    );
    assert!(steered.stderr.contains("dodona ask"), "{}", steered.stderr);
    let empty = home.run(&["steer", " "]);
    assert!(
        empty.stderr.contains("the message is empty"),
        "{}",
        empty.stderr
    );
}
