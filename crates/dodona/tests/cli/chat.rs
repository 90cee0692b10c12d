//! `dodona chat`, as scripts use it.

use dodona_testkit::model_server::Reply;
use serde_json::json;

use crate::harness::{Home, assert_shown, wait_until};
use crate::model::Model;

#[test]
fn each_line_is_a_question() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::text("It is one."));
    model.says(Reply::text("It is two."));
    let input = "What is one?\n\nAnd \\\ntwo?\n";
    let chat = home.run_with_input(&["chat", "--no-tools"], input);
    assert_eq!(chat.code, Some(0), "{}", chat.stderr);
    assert_eq!(chat.stdout, "It is one.\n\nIt is two.\n\n");
    assert_eq!(model.question(), "And \ntwo?");
    let roles: Vec<_> = model.requests()[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "user"],
        "it is one conversation"
    );
}

#[test]
fn what_fails_is_told_and_the_next_question_is_asked() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::status(400).message("that is too much"));
    model.says(Reply::text("Fine."));
    let chat = home.run_with_input(&["chat"], "Too much?\nAnd now?\n");
    assert_eq!(chat.stdout, "Fine.\n\n");
    assert!(chat.stderr.contains("error: "), "{}", chat.stderr);
    assert_eq!(chat.code, Some(1), "{}", chat.stderr);
}

#[test]
fn commands_change_what_is_asked() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::text("Hello.").usage(100, 20, 10));
    let input = "\
/help
/model other
/model nosuch
/new release
Hi
/contexts
/usage
/context default
/context release
/contxt
/quit
never asked
";
    let chat = home.run_with_input(&["chat", "--no-tools"], input);
    assert_shown("chat_commands", &chat);
    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["model"], json!("other-1"));
}

#[test]
fn the_prompt_of_a_chat_is_what_would_be_sent() {
    let home = Home::new();
    let model = Model::of(&home);
    model.says(Reply::text("Hello."));
    let chat = home.run_with_input(&["chat"], "Hi there\n/prompt\n");
    assert_eq!(chat.code, Some(0), "{}", chat.stderr);
    let shown = chat.stdout.split_once("messages").unwrap().1;
    assert!(
        shown.contains("user\n    Hi there\nassistant\n    Hello.\n"),
        "{shown}"
    );
}

#[test]
fn a_running_server_answers_if_there_is_one() {
    let home = Home::new();
    let model = Model::of(&home);
    let ready = home.path().with_file_name("ready");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--ready-file", "ready"];
    let mut server = home.command(&serve).spawn().unwrap();
    wait_until("the server is ready", || ready.exists());
    model.says(Reply::text("From there."));
    let chat = home.run_with_input(&["chat"], "Where from?\n/model other\n");
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(chat.code, Some(0), "{}", chat.stderr);
    assert_eq!(chat.stdout, "From there.\n\nmodel other\n");
}
