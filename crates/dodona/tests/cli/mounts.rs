//! `dodona plugins add`, `remove` and `logs`: servers of others, by command.

use std::fs;
use std::path::{Path, PathBuf};

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::approvals::{pending, told};
use crate::harness::{Home, Outcome, wait_until};
use crate::model::Model;
use crate::serve::Server;
use crate::wire::post;

/// The program has no path of its own in these tests, so all of them are named in full.
pub(crate) fn python() -> String {
    let path = std::env::var_os("PATH").unwrap();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let found: PathBuf = places.find(|place| place.is_file()).unwrap();
    found.display().to_string()
}

pub(crate) fn good() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let server = here.join("../dodona-extern/tests/servers/good.py");
    server.canonicalize().unwrap().display().to_string()
}

fn add(home: &Home, name: &str) -> Outcome {
    home.run(&["plugins", "add", name, "--", &python(), "-I", &good()])
}

fn roster(home: &Home) -> String {
    fs::read_to_string(home.path().join("config/plugins.toml")).unwrap_or_default()
}

#[test]
fn a_server_is_added_called_and_removed() {
    let home = Home::new();
    let added = add(&home, "good");
    assert_eq!(added.code, Some(0), "{}", added.shown());
    assert!(
        added.stdout.contains("\ngood    0.0.0    active\n"),
        "{}",
        added.shown()
    );
    assert!(added.stdout.contains("\n  good.say\n"), "{}", added.shown());
    assert!(roster(&home).contains("[plugin.good]"), "{}", roster(&home));
    let said = home.run(&["call", "good.say", "text=here I am"]);
    assert!(said.stdout.contains("here I am"), "{}", said.shown());
    let listed = home.run(&["methods", "good"]);
    assert!(listed.stdout.contains("good.add_up"), "{}", listed.shown());
    let wrong = home.run(&["call", "good.add_up", "a=two", "b=3"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.shown());
    let again = add(&home, "good");
    assert_ne!(again.code, Some(0), "{}", again.shown());
    let removed = home.run(&["plugins", "remove", "good"]);
    assert_eq!(removed.code, Some(0), "{}", removed.shown());
    assert!(!roster(&home).contains("good"), "{}", roster(&home));
    assert_ne!(home.run(&["call", "good.say", "text=x"]).code, Some(0));
    let missing = home.run(&["plugins", "remove", "good"]);
    assert_ne!(missing.code, Some(0), "{}", missing.shown());
}

#[test]
fn a_server_that_does_not_answer_is_not_added_and_the_command_says_why() {
    let home = Home::new();
    let arguments = ["plugins", "add", "bad", "--", "/nowhere/at/all"];
    let refused = home.run(&arguments);
    assert_ne!(refused.code, Some(0), "{}", refused.shown());
    assert!(
        refused.stderr.contains("could not be started"),
        "{}",
        refused.shown()
    );
    assert!(!roster(&home).contains("bad"), "{}", roster(&home));
    for (name, more) in [
        ("../up", ""),
        ("hub", ""),
        ("vault", ""),
        ("fine", "ftp://x/y"),
    ] {
        let mut arguments = vec!["plugins", "add", name];
        match more.is_empty() {
            true => arguments.extend(["--", "/bin/true"]),
            false => arguments.extend(["--url", more]),
        }
        let refused = home.run(&arguments);
        assert_ne!(refused.code, Some(0), "{}", refused.shown());
    }
    assert_eq!(roster(&home), "");
}

#[test]
fn a_directory_is_added_where_it_is() {
    let home = Home::new();
    let made = home.run(&["plugins", "new", "tally", "--luau"]);
    assert_eq!(made.code, Some(0), "{}", made.shown());
    let elsewhere = home.path().with_file_name("tally");
    fs::rename(home.path().join("config/plugins/tally"), &elsewhere).unwrap();
    let added = home.run(&["plugins", "add", "tally", "--dir", "tally", "--json"]);
    let told: Value =
        serde_json::from_str(&added.stdout).unwrap_or_else(|_| panic!("{}", added.shown()));
    assert_eq!(told["name"], "tally", "{}", added.shown());
    let reason = told["reason"].as_str().unwrap();
    assert!(
        reason.contains("run `dodona plugins grant tally tool_exec`"),
        "{reason}"
    );
    let granted = home.run(&["plugins", "grant", "tally", "tool_exec"]);
    assert_eq!(granted.code, Some(0), "{}", granted.shown());
    let counted = home.run(&["call", "tally.count", "text=one two", "--json"]);
    assert!(
        counted.stdout.contains("\"words\":2"),
        "{}",
        counted.shown()
    );
}

#[test]
fn a_running_server_tells_what_its_plugins_said() {
    let server = Server::on(Home::new());
    assert_eq!(add(&server.home, "good").code, Some(0));
    wait_until("the log has it", || {
        let logs = server.home.run(&["plugins", "logs", "good"]);
        logs.stdout.contains("stderr: the good server is here")
    });
    let none = server.home.run(&["plugins", "logs", "nobody"]);
    assert_ne!(none.code, Some(0), "{}", none.shown());
}

/// A tool that does not say of itself that it only reads: the agent asks before it uses it.
#[test]
fn a_tool_of_a_mounted_server_asks_first_and_is_answered_by_command_and_over_rpc() {
    let home = Home::new();
    let model = Model::of(&home);
    let server = Server::on(home);
    assert_eq!(add(&server.home, "good").code, Some(0));
    for answer in ["approve", "deny"] {
        model.says(Reply::stream().tool_call("a", "good_learn", &[r#"{"name":"juggle"}"#]));
        model.says(Reply::text("That is all."));
        let asking = server
            .home
            .command(&["ask", "Learn to juggle."])
            .spawn()
            .unwrap();
        let waiting = pending(&server);
        let id = waiting["id"].as_str().unwrap();
        assert_eq!(
            (&waiting["method"], &waiting["path"]),
            (&json!("good.learn"), &json!("agent.good"))
        );
        match answer {
            "approve" => drop(server.json(&["approvals", "approve", id, "--json"])),
            _ => {
                let (address, token) = server.door();
                let params = json!({ "id": id, "reason": "not today" });
                let request =
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "hub.deny", "params": params });
                let answer = post(&address, "/rpc", &token, &request);
                assert_eq!(answer["result"]["state"], "denied", "{answer}");
            }
        }
        let asked = server
            .home
            .outcome(&["ask"], asking.wait_with_output().unwrap());
        assert!(
            asked.stdout.starts_with("That is all."),
            "{}",
            asked.shown()
        );
        let told = told(&model);
        match answer {
            "approve" => assert_eq!(told["text"], "learnt", "{told}"),
            _ => assert_eq!(told["code"], "policy.denied", "{told}"),
        }
    }
    // One that only reads does not ask.
    model.says(Reply::stream().tool_call("b", "good_say", &[r#"{"text":"unasked"}"#]));
    model.says(Reply::text("Said."));
    let asked = server.home.run(&["ask", "Say it."]);
    assert!(asked.stdout.starts_with("Said."), "{}", asked.shown());
    assert_eq!(told(&model)["text"], "unasked");
}

/// Servers that say nothing, and a start that does not wait for them.
#[test]
fn a_server_is_ready_before_silent_mcp_servers_which_start_side_by_side() {
    let home = Home::new();
    home.configure("");
    let config = home.path().join("config");
    fs::create_dir(config.join("plugins")).unwrap();
    let mut roster = String::new();
    for name in ["one", "two", "three"] {
        roster.push_str(&format!(
            "[plugin.{name}]\nenabled = true\nmodule = \"mcp:/bin/sleep 600\"\n"
        ));
        let settings = "[server]\nstart_timeout = \"4s\"\n";
        fs::write(
            config.join("plugins").join(format!("{name}.toml")),
            settings,
        )
        .unwrap();
    }
    fs::write(config.join("plugins.toml"), roster).unwrap();
    let server = Server::on(home);
    let statuses = || -> Vec<(String, String)> {
        let listed = server.json(&["plugins", "list", "--json"]);
        let listed = listed["plugins"].as_array().unwrap().clone();
        let silent = listed
            .into_iter()
            .filter(|one| ["one", "two", "three"].contains(&one["name"].as_str().unwrap()));
        silent
            .map(|one| {
                let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
                (text("state"), text("reason"))
            })
            .collect()
    };
    let first = statuses();
    assert_eq!(first.len(), 3);
    assert!(
        first.iter().all(|(state, _)| state == "starting"),
        "{first:?}"
    );
    wait_until("all three have failed", || {
        statuses().iter().all(|(state, _)| state == "failed")
    });
    for (_, reason) in statuses() {
        assert!(reason.contains("(waited "), "{reason}");
    }
}
