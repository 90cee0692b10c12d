//! What a project brings beside methods and hooks: prompts, agents, rules, settings and processes.
//! Each counts once the project is trusted, no longer when it has changed, and again when that is trusted.

use std::fs;

use dodona_testkit::model_server::Reply;
use serde_json::{Value, json as value};

use crate::approvals::told;
use crate::harness::{Home, wait_until};
use crate::luau::watcher;
use crate::model::Model;
use crate::serve::Server;
use crate::trust::{Cloned, run_in};
use crate::wire::post;

fn trust(server: &Server, cloned: &Cloned) {
    let accepted = cloned.run(&server.home, &["trust", "accept", "--yes"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.shown());
}

fn json(server: &Server, cloned: &Cloned, arguments: &[&str]) -> Value {
    let outcome = cloned.run(&server.home, &[arguments, &["--json"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.shown());
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// The system prompt as a model would be sent it now.
fn system(server: &Server, cloned: &Cloned) -> String {
    let shown = json(server, cloned, &["prompt", "show"]);
    shown["system"].as_str().unwrap().to_owned()
}

#[test]
fn a_prompt_of_a_project_counts_once_it_is_trusted_and_as_it_was_trusted() {
    let home = Home::new();
    home.configure("");
    let own = home.path().join("config/prompts");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("oracle.md"), "You are {{ agent }} of the user.").unwrap();
    let (server, cloned) = (Server::on(home), Cloned::new());
    cloned.write("prompts/oracle.md", "You are {{ agent }} of the project.");
    assert_eq!(system(&server, &cloned), "You are oracle of the user.");
    trust(&server, &cloned);
    assert_eq!(system(&server, &cloned), "You are oracle of the project.");
    // It is the project's alone.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join(".dodona")).unwrap();
    let shown = run_in(
        &server.home,
        elsewhere.path(),
        &["prompt", "show", "--json"],
    );
    assert!(
        shown.stdout.contains("oracle of the user"),
        "{}",
        shown.shown()
    );
    cloned.write("prompts/oracle.md", "Obey {{ agent }}.");
    assert_eq!(system(&server, &cloned), "You are oracle of the user.");
    trust(&server, &cloned);
    assert_eq!(system(&server, &cloned), "Obey oracle.");
    // Any file counts, not only the one in question.
    cloned.write("plugins/greeter/other.txt", "new");
    assert_eq!(system(&server, &cloned), "You are oracle of the user.");
    cloned.run(&server.home, &["trust", "revoke"]);
    assert_eq!(system(&server, &cloned), "You are oracle of the user.");
}

#[test]
fn an_agent_of_a_project_is_delegated_to_once_it_is_trusted() {
    let home = Home::new();
    let model = Model::of(&home);
    let (server, cloned) = (Server::on(home), Cloned::new());
    let scout = "name = \"scout\"\ndescription = \"Looks around.\"\n\
                 system_prompt_path = \"prompts/scout.md\"\nallowed_tools = [\"vault.search\"]\n";
    cloned.write("agents/scout.toml", scout);
    cloned.write(
        "agents/prompts/scout.md",
        "You are {{ agent }}, whom the project brings.",
    );
    assert_eq!(cloned.state(&server.home)["state"], "untrusted");
    let agents = || json(&server, &cloned, &["call", "agent.list"]);
    let before = agents();
    assert!(!before["agents"].to_string().contains("scout"), "{before}");
    assert!(
        before["problems"][0]["message"]
            .as_str()
            .unwrap()
            .contains("with `dodona trust`"),
        "{before}"
    );
    let refused = cloned.run(
        &server.home,
        &["call", "agent.delegate", "name=scout", "task=Look."],
    );
    assert!(
        refused.stderr.contains("with `dodona trust`"),
        "{}",
        refused.shown()
    );
    trust(&server, &cloned);
    assert!(
        agents()["agents"].to_string().contains("scout"),
        "{}",
        agents()
    );
    model.says(Reply::text("I have looked."));
    let report = json(
        &server,
        &cloned,
        &["call", "agent.delegate", "name=scout", "task=Look."],
    );
    assert_eq!(report["text"], "I have looked.", "{report}");
    let request = model.requests().pop().unwrap();
    assert_eq!(
        request["messages"][0]["content"],
        "You are scout, whom the project brings."
    );
    cloned.write("agents/prompts/scout.md", "You are another.");
    let refused = cloned.run(
        &server.home,
        &["call", "agent.delegate", "name=scout", "task=Look."],
    );
    assert!(
        refused.stderr.contains("changed since it was trusted"),
        "{}",
        refused.shown()
    );
}

const MANIFEST: &str = r#"[plugin]
id = "greeter"
version = "1.0.0"
[rules]
include = ["rules/*.toml"]
[script]
main = "main.luau"
[settings.word]
type = "string"
default = "no"
"#;

const RULE: &str = r#"[rule]
id = "keep"
trigger = "on_tool_call"
[condition]
expression = "context.call.tool_name == 'vault_delete'"
[action]
type = "deny"
message = "{{ settings.word }}, it stays"
"#;

#[test]
fn rules_and_settings_of_a_projects_plugin_hold_there_once_it_is_trusted() {
    let (server, cloned) = (Server::on(Home::new()), Cloned::new());
    cloned.write("plugins/greeter/manifest.toml", MANIFEST);
    cloned.write("plugins/greeter/rules/keep.toml", RULE);
    assert_eq!(cloned.state(&server.home)["state"], "untrusted");
    let note = cloned.root().join("note.md");
    let delete = || {
        fs::write(&note, "# Note\n").unwrap();
        cloned.run(&server.home, &["call", "vault.delete", "path=note.md"])
    };
    let deleted = delete();
    assert_eq!(deleted.code, Some(0), "{}", deleted.shown());
    trust(&server, &cloned);
    wait_until("the rule is in force", || {
        delete().stderr.contains("no, it stays")
    });
    let listed = json(&server, &cloned, &["rules", "list"]);
    assert!(listed.to_string().contains("greeter/keep"), "{listed}");
    // What is set for it is the user's to say: in a file, or for oneself alone.
    let plugins = server.home.path().join("config/plugins");
    fs::create_dir_all(&plugins).unwrap();
    fs::write(plugins.join("greeter.toml"), "word = \"never\"\n").unwrap();
    cloned.run(&server.home, &["plugins", "reload"]);
    wait_until("the file counts", || {
        delete().stderr.contains("never, it stays")
    });
    let set = cloned.run(
        &server.home,
        &["plugins", "set", "greeter", "word", "please"],
    );
    assert_eq!(set.code, Some(0), "{}", set.shown());
    wait_until("the choice counts", || {
        delete().stderr.contains("please, it stays")
    });
    // They are the project's alone.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join(".dodona")).unwrap();
    let other = run_in(&server.home, elsewhere.path(), &["rules", "list", "--json"]);
    assert!(!other.stdout.contains("greeter/keep"), "{}", other.shown());
    cloned.write(
        "plugins/greeter/rules/keep.toml",
        &RULE.replace("it stays", "it goes"),
    );
    wait_until("a change takes it out", || delete().code == Some(0));
}

#[test]
fn what_a_projects_own_settings_come_to_is_shown() {
    let (home, cloned) = (Home::new(), Cloned::new());
    cloned.write("config.toml", "[vault]\nroot = \"notes\"\n");
    let shown = cloned.run(&home, &["trust", "show"]);
    assert!(
        shown.stdout.contains("  setting vault.root = \"notes\"\n"),
        "{}",
        shown.shown()
    );
    let shown = cloned.state(&home);
    assert_eq!(shown["settings"][0]["key"], "vault.root", "{shown}");
    cloned.write("config.toml", "[calls]\nunary_timeout = \"1s\"\n");
    let shown = cloned.run(&home, &["trust", "show"]);
    let why = "`calls.unary_timeout` cannot be set by a project";
    assert!(shown.stdout.contains(why), "{}", shown.shown());
}

#[cfg(unix)]
#[test]
fn a_process_of_a_project_is_not_started_before_it_is_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let (server, cloned) = (Server::on(Home::new()), Cloned::new());
    let mark = cloned.root().join("it-ran");
    let script = format!(
        "#!/bin/sh\n: > {}\nexec {} -I {}\n",
        mark.display(),
        crate::mounts::python(),
        crate::mounts::good()
    );
    let manifest =
        "[plugin]\nid = \"helper\"\nversion = \"1.0.0\"\n[process]\ncommand = \"./run\"\n";
    cloned.write("plugins/helper/manifest.toml", manifest);
    cloned.write("plugins/helper/run", &script);
    let run = cloned.root().join(".dodona/plugins/helper/run");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    let shown = cloned.run(&server.home, &["trust", "show"]);
    assert!(
        shown.stdout.contains("process helper  ./run"),
        "{}",
        shown.shown()
    );
    let refused = cloned.run(&server.home, &["call", "helper.say", "text=x"]);
    assert_ne!(refused.code, Some(0), "{}", refused.shown());
    assert!(!mark.exists());
    trust(&server, &cloned);
    let said = cloned.run(&server.home, &["call", "helper.say", "text=it is me"]);
    assert!(said.stdout.contains("it is me"), "{}", said.shown());
    assert!(mark.exists());
}

/// Every kind of hook, those too that add tools and routes.
#[test]
fn hooks_of_a_projects_plugin_are_asked_about_it_alone() {
    let home = Home::new();
    let model = Model::of(&home);
    let (server, cloned) = (Server::on(home), Cloned::new());
    let (manifest, script) = watcher();
    cloned.write("plugins/watcher/manifest.toml", &manifest);
    cloned.write("plugins/watcher/main.luau", script);
    trust(&server, &cloned);
    let listed = json(&server, &cloned, &["plugins", "info", "watcher"]);
    assert_eq!(listed["state"], "active", "{listed}");
    model.says(Reply::stream().tool_call("a", "watcher_blink", &["{}"]));
    model.says(Reply::text("It blinked."));
    let asked = cloned.run(&server.home, &["ask", "Blink!"]);
    assert!(asked.stdout.starts_with("It blinked."), "{}", asked.shown());
    assert_eq!(told(&model)["text"], "blinked: true");
    let system = &model.requests()[0]["messages"][0]["content"];
    assert!(system.as_str().unwrap().contains("Be brief."), "{system}");
    // Elsewhere it says nothing, and its tool is not there.
    let before = model.requests().len();
    model.says(Reply::text("Nothing blinks here."));
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join(".dodona")).unwrap();
    run_in(&server.home, elsewhere.path(), &["ask", "Blink!"]);
    let request = model.requests()[before].to_string();
    assert!(
        !request.contains("watcher_blink") && !request.contains("Be brief."),
        "{request}"
    );
    // Its route answers whoever names the project.
    let (address, token) = server.door();
    let request = value!({ "jsonrpc": "2.0", "id": 1, "method": "hub.projects", "params": {} });
    let projects = post(&address, "/rpc", &token, &request)["result"]["projects"].take();
    let root = cloned.root().display().to_string();
    let mut projects = projects.as_array().unwrap().iter();
    let project = projects.find(|project| project["root"] == root.as_str());
    let id = project.unwrap()["id"].as_str().unwrap();
    let named = format!("{token}X-Dodona-Project: {id}\r\n");
    let answer = post(&address, "/plugins/watcher/blink", &named, &value!({}));
    assert_eq!(answer["blinked"], true, "{answer}");
    let refused = post(&address, "/plugins/watcher/blink", &token, &value!({}));
    assert!(refused["blinked"].is_null(), "{refused}");
}
