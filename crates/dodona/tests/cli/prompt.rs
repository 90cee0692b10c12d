//! `dodona prompt`.

use dodona_testkit::model_server::Reply;
use serde_json::Value;

use crate::harness::{Home, assert_shown, check};
use crate::model::Model;

#[test]
fn what_is_shown_is_what_is_sent() {
    let home = Home::new();
    let model = Model::of(&home);
    let shown = home.run(&["prompt", "show", "--message", "Why SQLite?", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).expect(&shown.stderr);
    assert!(model.requests().is_empty(), "nothing is sent");
    model.says(Reply::text("Because."));
    home.run(&["ask", "Why SQLite?"]);
    let sent = &model.requests()[0];
    assert_eq!(sent["messages"][0]["content"], shown["system"]);
    assert_eq!(
        sent["messages"][1]["content"],
        shown["messages"][0]["content"]
    );
    let names = |tools: &Value, name: fn(&Value) -> &Value| -> Vec<Value> {
        let tools = tools.as_array().unwrap().iter();
        tools.map(|tool| name(tool).clone()).collect()
    };
    assert_eq!(
        names(&sent["tools"], |tool| &tool["function"]["name"]),
        names(&shown["tools"], |tool| &tool["name"]),
    );
}

#[test]
fn every_part_is_shown_with_its_size() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::stream().tool_call("a", "vault_search", &[r#"{"query":"login"}"#]));
    model.says(Reply::text("It is not written down."));
    home.run(&["ask", "How does login work?"]);
    let shown = home.run(&["prompt", "show", "--message", "And logout?"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    for part in ["system  ", "tools  ", "messages  "] {
        let line = shown.stdout.lines().find(|line| line.starts_with(part));
        let tokens = line.and_then(|line| line[part.len()..].strip_suffix(" tokens"));
        assert!(tokens.unwrap().parse::<u64>().unwrap() > 0, "{line:?}");
    }
    assert!(shown.stdout.contains("\nsearch_query\n    "));
    let messages = shown.stdout.split_once("\nmessages  ").unwrap().1;
    assert!(
        messages.contains("user\n    How does login work?\nassistant\n    tool_calls: ["),
        "{messages}"
    );
    assert!(messages.contains("user\n    And logout?\n"), "{messages}");
    assert!(messages.trim_end().ends_with("tokens in all · main"));
}

#[test]
fn an_unknown_model_or_conversation_is_told() {
    let home = Home::new();
    Model::of(&home);
    let model = ["prompt", "show", "--model", "nosuch"];
    assert_shown("prompt_unknown_model", &home.run(&model));
    let context = ["prompt", "show", "--context", "nosuch"];
    assert_shown("prompt_unknown_context", &home.run(&context));
}

#[test]
fn the_help_has_examples() {
    check("help_prompt_show", &["prompt", "show", "--help"]);
}
