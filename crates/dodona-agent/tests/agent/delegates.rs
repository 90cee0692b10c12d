//! Tasks for other agents: their path, their tools, what they cannot reach.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dodona_hub::HubConfig;
use dodona_proto::{ItemBody, MethodName};
use dodona_testkit::model_server::{Reply, SeenRequest};
use serde_json::{Value, json};

use crate::talk::{Answer, Setup, Talk};

/// An agent of the user's, with these tools.
pub(crate) fn define(talk: &Talk, name: &str, tools: &[&str], more: &str) {
    let dir = talk.folder.path().join("agents");
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!(
        "name = \"{name}\"\ndescription = \"Does {name} things.\"\n\
         system_prompt_path = \"{name}.md\"\nallowed_tools = {tools:?}\n{more}"
    );
    std::fs::write(dir.join(format!("{name}.toml")), text).unwrap();
    let prompt = "You are {{ agent }} of {{ project }}.";
    std::fs::write(dir.join(format!("{name}.md")), prompt).unwrap();
}

pub(crate) async fn talk() -> Talk {
    set_up(Setup::default()).await
}

async fn set_up(setup: Setup) -> Talk {
    Talk::set_up_in(setup, |folder, options| {
        options.preload = 0;
        options.agents = Some(folder.join("agents"));
    })
    .await
}

pub(crate) fn delegates(id: &str, name: &str, task: &str) -> (String, String) {
    (
        id.to_owned(),
        json!({ "name": name, "task": task }).to_string(),
    )
}

pub(crate) fn asks_for(tasks: &[(String, String)]) -> Reply {
    tasks
        .iter()
        .fold(Reply::stream(), |reply, (id, arguments)| {
            reply.tool_call(id, "agent_delegate", &[arguments])
        })
}

pub(crate) fn system(request: &SeenRequest) -> &str {
    request.body["messages"][0]["content"].as_str().unwrap()
}

/// The names of the tools that a request offers.
fn offered(request: &SeenRequest) -> Vec<&str> {
    let tools = request.body["tools"].as_array().map(Vec::as_slice);
    let tools = tools.unwrap_or_default().iter();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

pub(crate) fn last(request: &SeenRequest) -> &Value {
    request.body["messages"].as_array().unwrap().last().unwrap()
}

fn paths(answer: &Answer) -> BTreeSet<String> {
    answer
        .items
        .iter()
        .map(|item| item.plugin_path.to_string())
        .collect()
}

/// How the tools ended that were called below the root, by name.
fn endings_below(answer: &Answer) -> Vec<(String, String)> {
    let below = answer.items.iter().filter(|item| item.call_id.depth() > 0);
    below
        .filter_map(|item| match &item.body {
            ItemBody::Data { content_type, data } if content_type == "ToolResult" => {
                let text = |field: &str| data[field].as_str().unwrap().to_owned();
                Some((text("name"), text("ending")))
            }
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_task_is_done_by_another_agent_on_a_path_of_its_own() {
    let talk = talk().await;
    define(&talk, "scout", &["kit.echo"], "model_override = \"other\"");
    talk.server
        .reply(asks_for(&[delegates("d1", "scout", "Find it.")]));
    talk.server
        .reply(Reply::stream().tool_call("c1", "kit_echo", &[r#"{"text":"here"}"#]));
    talk.server.reply(Reply::text("It is here."));
    talk.server
        .reply(Reply::text("The scout says that it is here."));
    let answer = talk.ask("Where is it?").await;
    assert_eq!(
        answer.text(),
        "The scout says that it is here.",
        "{}",
        answer.error()
    );
    assert_eq!(answer.endings(), ["success"]);
    let expected = ["agent", "agent.agent", "agent.scout", "agent.scout.kit"];
    assert_eq!(paths(&answer), expected.map(str::to_owned).into());

    let requests = talk.server.requests();
    assert!(system(&requests[0]).contains("`scout` (Does scout things.)"));
    assert_eq!(system(&requests[1]), "You are scout of orchard.");
    assert_eq!(
        (&requests[1].body["model"], offered(&requests[1])),
        (&json!("other-1"), vec!["agent_result", "kit_echo"])
    );
    assert_eq!(
        requests[1].body["messages"].as_array().unwrap().len(),
        2,
        "it sees nothing else"
    );
    let told = last(&requests[3])["content"].as_str().unwrap();
    let query = query_of(told);
    assert_eq!(told, format!("Report (query {query}):\nIt is here."));

    let usage = talk
        .call("agent.usage", json!({ "by": "path" }))
        .await
        .unwrap();
    assert!(usage.to_string().contains("agent.scout"), "{usage}");
    let open = talk.call("agent.contexts", json!({})).await.unwrap();
    assert_eq!(open["contexts"].as_array().unwrap().len(), 1, "{open}");
    let all = talk
        .call("agent.contexts", json!({ "all": true }))
        .await
        .unwrap();
    assert_eq!(all["contexts"].as_array().unwrap().len(), 2);
    let replayed = json!({ "query_id": query });
    let replayed = talk.call("agent.replay", replayed).await.unwrap();
    assert_eq!(
        (&replayed["divergence"], &replayed["replayed"]),
        (&Value::Null, &json!(2))
    );
}

#[tokio::test]
async fn an_agent_that_tries_to_leave_its_scope_is_kept_in_it() {
    let talk = talk().await;
    define(&talk, "scout", &["kit_echo", "agent_delegate"], "");
    // It would have more than the one that delegates to it.
    define(&talk, "wide", &["kit_echo", "kit_big", "kit_fail"], "");
    talk.server
        .reply(asks_for(&[delegates("d1", "scout", "Look around.")]));
    talk.server.reply(
        Reply::stream()
            .tool_call("c1", "kit_big", &[r#"{"entries":3}"#])
            .tool_call("c2", "tools_nothing", &["{}"])
            .tool_call(
                "c3",
                "agent_delegate",
                &[&delegates("", "wide", "Look further.").1],
            ),
    );
    talk.server.reply(
        Reply::stream()
            .tool_call("c1", "kit_big", &[r#"{"entries":3}"#])
            .tool_call("c2", "kit_echo", &[r#"{"text":"this is allowed"}"#]),
    );
    talk.server.reply(Reply::text("There is nothing."));
    talk.server.reply(Reply::text("I could not."));
    talk.server.reply(Reply::text("No."));
    let answer = talk.ask("What is there?").await;
    assert_eq!(answer.text(), "No.", "{}", answer.error());
    let requests = talk.server.requests();
    let expected = ["agent_delegate", "agent_result", "kit_echo"];
    assert_eq!(offered(&requests[1]), expected);
    assert_eq!(
        offered(&requests[2]),
        ["agent_result", "kit_echo"],
        "no more than the one above it has"
    );
    let mut endings = endings_below(&answer);
    endings.sort();
    let expected = [
        ("agent_delegate", "success"),
        ("kit_big", "denied"),
        ("kit_big", "denied"),
        ("kit_echo", "success"),
        ("tools_nothing", "error"),
    ];
    assert_eq!(
        endings,
        expected.map(|(name, end)| (name.to_owned(), end.to_owned()))
    );
    let told = requests[4].body["messages"].to_string();
    assert!(
        told.contains("the agent `scout` may not use `kit_big`"),
        "{told}"
    );
    assert!(
        paths(&answer).contains("agent.scout.wide.kit"),
        "{:?}",
        paths(&answer)
    );
    assert!(
        !paths(&answer).contains("agent.scout.kit"),
        "nothing ran there"
    );
}

#[tokio::test]
async fn what_cannot_be_delegated_is_told_to_the_model() {
    let talk = talk().await;
    define(&talk, "scout", &[], "max_turns = 2");
    define(&talk, "broken", &[], "colour = 1");
    for (name, expected) in [
        ("nobody", "defined agents: oracle, librarian, scout"),
        ("broken", "unknown key `colour`"),
    ] {
        talk.server
            .reply(asks_for(&[delegates("d1", name, "Do it.")]));
        talk.server.reply(Reply::text("No."));
        let answer = talk.ask("Do it").await;
        assert_eq!(answer.endings(), ["error"]);
        let told = talk.sent().last().unwrap()["content"].to_string();
        assert!(told.contains(expected), "{told}");
    }
    // One that comes to no end within its own turns.
    talk.server
        .reply(asks_for(&[delegates("d1", "scout", "Go round.")]));
    // Its two turns, and the last request, in which it has no tools.
    for _ in 0..3 {
        talk.server
            .reply(Reply::stream().tool_call("c1", "kit_echo", &["{}"]));
    }
    talk.server.reply(Reply::text("It did not manage."));
    let answer = talk.ask("Go").await;
    assert_eq!(answer.text(), "It did not manage.");
    let told = talk.sent().last().unwrap()["content"].to_string();
    assert!(told.contains("did not answer within 2 turns"), "{told}");
    let listed = talk.call("agent.list", json!({})).await.unwrap();
    assert_eq!(listed["agents"][2]["max_turns"], 2);
    let problems = listed["problems"].to_string();
    assert!(problems.contains("colour"), "{listed}");
}

/// Five hundred notes that link to each other by name and by path.
fn write_vault(root: &Path) {
    for n in 0..500 {
        let folder = root.join(format!("inbox/box{}", n % 7));
        std::fs::create_dir_all(&folder).unwrap();
        let (a, b, c) = ((n * 7 + 1) % 500, (n * 13 + 5) % 500, (n + 1) % 500);
        let text = format!(
            "---\nkind: note\nnumber: {n}\n---\n# Note {n}\n\nSee [[n{a}]], [[inbox/box{}/n{b}]] \
             and [the next](../box{}/n{c}.md).\n",
            b % 7,
            c % 7,
        );
        std::fs::write(folder.join(format!("n{n}.md")), text).unwrap();
    }
}

fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// The query that a report names.
fn query_of(report: &str) -> String {
    let (_, rest) = report.split_once("(query ").unwrap();
    rest.split_once(')').unwrap().0.to_owned()
}

/// A librarian that moves forty notes, eight at a time, and then writes an index.
fn librarian(request: &SeenRequest) -> Reply {
    let messages = request.body["messages"].as_array().unwrap();
    if !system(request).starts_with("You are librarian") {
        let task =
            json!({ "name": "librarian", "task": "Gather the first forty.", "folder": "inbox" });
        return match last(request)["role"] == "tool" {
            true => Reply::text("It is in order."),
            false => Reply::stream().tool_call("d1", "agent_delegate", &[&task.to_string()]),
        };
    }
    let asked = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .count();
    match asked {
        0 => Reply::stream().tool_call("l", "vault_list", &[r#"{"folder":"inbox/box0"}"#]),
        1..=5 => (0..8).fold(Reply::stream(), |reply, k| {
            let n = (asked - 1) * 8 + k;
            let arguments = json!({
                "old_path": format!("inbox/box{}/n{n}.md", n % 7),
                "new_path": format!("gathered/n{n}.md"),
            });
            reply.tool_call(&format!("m{n}"), "vault_move", &[&arguments.to_string()])
        }),
        6 => Reply::stream().tool_call("i", "vault_create_index", &[r#"{"folder":"gathered"}"#]),
        _ => Reply::text("Moved forty notes to `gathered` and wrote its index."),
    }
}

#[tokio::test]
async fn the_librarian_organises_five_hundred_notes_and_every_link_holds() {
    let mut config = HubConfig::default();
    config.approvals.unattended = ["vault.move", "vault.create_index"]
        .map(|name| MethodName::new(name).unwrap())
        .into();
    let setup = Setup {
        config,
        ..Setup::default()
    };
    let talk = set_up(setup).await;
    write_vault(&talk.root());
    let before = files(&talk.root());
    talk.call("search.index", json!({})).await.unwrap();
    let graph = talk.call("vault.graph", json!({})).await.unwrap();
    assert_eq!(graph["unresolved"], json!([]));
    let edges = graph["edges"].as_array().unwrap().len();
    talk.server.respond_with(librarian);
    let answer = talk.ask("Put the notes in order.").await;
    assert_eq!(answer.text(), "It is in order.", "{}", answer.error());
    let moves = endings_below(&answer);
    let good = moves
        .iter()
        .filter(|(_, ending)| ending == "success")
        .count();
    assert_eq!((moves.len(), good), (42, 42), "{moves:?}");

    let after = files(&talk.root());
    assert_eq!(after.len(), 501, "and the index");
    assert!(after["gathered/n39.md"].starts_with("---\nkind: note\nnumber: 39\n---\n# Note 39"));
    let graph = talk.call("vault.graph", json!({})).await.unwrap();
    assert_eq!(graph["unresolved"], json!([]), "every link leads somewhere");
    assert_eq!(
        graph["edges"].as_array().unwrap().len(),
        edges + 40,
        "those of the index are new"
    );

    // All that it did is undone as one step.
    let told = last(&talk.server.last_request())["content"]
        .as_str()
        .unwrap()
        .to_owned();
    talk.call("vault.undo", json!({ "query": query_of(&told) }))
        .await
        .unwrap();
    assert!(
        files(&talk.root()) == before,
        "the notes are as they were, byte for byte"
    );
}
