//! Tools that ask a person first: `dodona approvals`, and `ask` where there is no terminal.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::harness::{Home, Outcome, assert_shown, check, wait_until};
use crate::model::Model;
use crate::serve::Server;

/// A home whose `vault.search` asks first, and a model.
pub(crate) fn asking() -> (Home, Model) {
    let home = Home::new();
    let model = Model::of(&home);
    let file = home.path().join("config/config.toml");
    let settings = fs::read_to_string(&file).unwrap();
    let settings = format!("[approvals]\nmethods = [\"vault.search\"]\n\n{settings}");
    fs::write(&file, settings).unwrap();
    (home, model)
}

/// It uses the tool, and then it has done.
pub(crate) fn searches(model: &Model) {
    let search = r#"{"query":"login"}"#;
    model.says(Reply::stream().tool_call("a", "vault_search", &[search]));
    model.says(Reply::text("That is all."));
}

/// What the model was shown of the tool it used last: the `text`, and `code` and `error` of a failure.
pub(crate) fn told(model: &Model) -> Value {
    let request = model.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let result = messages.iter().rev().find(|said| said["role"] == "tool");
    let text = result.unwrap()["content"].as_str().unwrap();
    match text
        .strip_prefix("error (")
        .and_then(|rest| rest.split_once("): "))
    {
        Some((code, error)) => json!({ "text": text, "code": code, "error": error.lines().next() }),
        None => json!({ "text": text }),
    }
}

/// Waits until a call waits in the server, and tells its approval.
pub(crate) fn pending(server: &Server) -> Value {
    let mut found = Value::Null;
    wait_until("a call waits", || {
        found = server.json(&["approvals", "list", "--json"])[0].clone();
        !found.is_null()
    });
    found
}

fn finish(server: &Server, child: Child) -> Outcome {
    server
        .home
        .outcome(&["ask"], child.wait_with_output().unwrap())
}

#[test]
fn a_question_that_waits_in_a_server_is_answered_by_another_command() {
    let (home, model) = asking();
    let server = Server::on(home);
    for (answer, state) in [("approve", "approved"), ("deny", "denied")] {
        searches(&model);
        let ask = ["ask", "How does login work?"];
        let asking = server.home.command(&ask).spawn().unwrap();
        let waiting = pending(&server);
        let id = waiting["id"].as_str().unwrap();
        assert_eq!(waiting["method"], "vault.search");
        assert_eq!(waiting["path"], "agent.vault");
        assert_eq!(waiting["params"]["query"], "login");
        let list = server.home.run(&["approvals", "list"]).stdout;
        assert!(
            list.contains(&format!("\n{id}  pending")) && list.contains("vault.search"),
            "{list}"
        );
        let shown = server.home.run(&["approvals", "show", &id[..6]]).stdout;
        assert!(shown.contains("\"query\": \"login\""), "{shown}");
        let arguments = [
            "approvals",
            answer,
            &id[..6],
            "--reason",
            "because",
            "--json",
        ];
        let answered = server.json(&arguments);
        assert_eq!(answered["state"], state);
        assert_eq!(answered["answered_by"], "local");
        let asked = finish(&server, asking);
        assert_eq!(asked.code, Some(0), "{}", asked.stderr);
        assert!(asked.stdout.starts_with("That is all."), "{}", asked.stdout);
        let how = format!("answer with `dodona approvals approve {id}`");
        assert!(asked.stderr.contains(&how), "{}", asked.stderr);
        match answer {
            "approve" => assert!(told(&model)["code"].is_null(), "{}", told(&model)),
            _ => {
                let error = "user `local` denied `vault.search`: because";
                assert_eq!(told(&model)["error"], error);
                assert_eq!(told(&model)["code"], "policy.denied");
            }
        }
        let again = server.home.run(&["approvals", "deny", id]);
        let already = format!("user `local` has already answered: {state}");
        assert!(again.stderr.contains(&already), "{}", again.stderr);
    }
}

#[test]
fn a_server_that_is_killed_leaves_no_question_behind() {
    let (home, model) = asking();
    let mut server = Server::on(home);
    searches(&model);
    let asking = server.home.command(&["ask", "How?"]).spawn().unwrap();
    let id = pending(&server)["id"].clone();
    server.restart();
    assert_eq!(
        server.json(&["approvals", "list", "--json"]),
        serde_json::json!([])
    );
    let all = server.json(&["approvals", "list", "--all", "--json"]);
    assert_eq!((&all[0]["id"], &all[0]["state"]), (&id, &"expired".into()));
    let asked = finish(&server, asking);
    assert_ne!(asked.code, Some(0));
    assert!(asked.stderr.contains("interrupted"), "{}", asked.stderr);
    let late = server
        .home
        .run(&["approvals", "approve", id.as_str().unwrap()]);
    assert!(late.stderr.contains("expired"), "{}", late.stderr);
    assert_eq!(late.code, Some(2));
}

#[test]
fn where_nobody_can_be_asked_the_tool_is_refused_and_the_model_told() {
    let (home, model) = asking();
    searches(&model);
    let asked = home.run(&["ask", "How does login work?"]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    assert_eq!(told(&model)["code"], "policy.approval_required");
    assert!(asked.stderr.contains("denied"), "{}", asked.stderr);
}

#[test]
fn nothing_waits_in_a_new_home() {
    check("approvals_list_empty", &["approvals", "list"]);
    check("approvals_list_never", &["approvals", "list", "--all"]);
    check(
        "approvals_show_unknown",
        &["approvals", "show", "3fa9c2d41b07"],
    );
}

#[test]
fn a_setting_that_names_no_method_is_told() {
    let home = Home::new();
    home.configure("[approvals]\nmethods = [\"everything\"]\n");
    assert_shown("approvals_setting_wrong", &home.run(&["config", "show"]));
    home.configure("[approvals]\nmethods = \"vault.search\"\n");
    assert_shown("approvals_setting_no_list", &home.run(&["config", "show"]));
}

#[test]
fn a_call_that_waits_says_so() {
    let home = Home::new();
    home.configure("[approvals]\nmethods = [\"echo.say\"]\n");
    let server = Server::on(home);
    let call = ["call", "echo.say", "text=hello"];
    let mut command = server.home.command(&call);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let id = pending(&server)["id"].as_str().unwrap().to_owned();
    let waits = told.next().unwrap().unwrap();
    assert!(
        waits.starts_with("`echo.say` is waiting for approval"),
        "{waits}"
    );
    let how = told.next().unwrap().unwrap();
    assert!(
        how.contains(&format!("dodona approvals approve {id}")),
        "{how}"
    );
    server.json(&["approvals", "approve", &id, "--json"]);
    let rest: Vec<String> = told.map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
}
