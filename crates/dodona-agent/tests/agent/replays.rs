//! Queries once more: the same requests from what was recorded, and where they part.

use std::sync::{Arc, Mutex};

use dodona_plugin::activation::Activating;
use dodona_plugin::hooks::{Hook, Reply as HookReply, point};
use dodona_plugin::{Contribution, Plugin, PluginContext};
use dodona_proto::hook::{ModelCallEdit, ModelResponseEdit, Verdict};
use dodona_proto::{DoneStatus, Message};
use dodona_store::{Durability, Store, StoreOptions};
use dodona_testkit::model_server::{Gate, Reply, SeenRequest};
use serde_json::{Value, json};

use crate::talk::{Setup, Talk};

/// Says something else to each question, now and then after a tool or two.
fn responder(request: &SeenRequest) -> Reply {
    let messages = request.body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    // Passages that were looked up come after the question.
    let asked = messages.iter().rev().find_map(|message| {
        let content = message["content"].as_str()?;
        (message["role"] == "user" && content.starts_with("Question")).then_some(content)
    });
    let asked = asked.unwrap();
    let number: usize = asked
        .split(|c: char| !c.is_ascii_digit())
        .find_map(|digits| digits.parse().ok())
        .unwrap_or_default();
    if last["role"] != "tool" && number.is_multiple_of(3) {
        let text = format!(r#"{{"text":"part {number}"}}"#);
        return Reply::stream()
            .tool_call("c1", "kit_echo", &[&text])
            .tool_call("c2", "kit_big", &[r#"{"entries":200}"#]);
    }
    let rest = "The rest of it is as it was before, and nothing else has changed. ";
    Reply::text(&format!(
        "Part {number} is in src/part{number}.rs. {}",
        rest.repeat(6)
    ))
}

async fn talk() -> Talk {
    let talk = Talk::with(|options| {
        options.token_budget = Some(4_000);
        options.keep_turns = 2;
    })
    .await;
    std::fs::write(
        talk.root().join("parts.md"),
        "# Parts\n\nThere are parts.\n",
    )
    .unwrap();
    talk.server.respond_with(responder);
    talk
}

async fn ask(talk: &Talk, number: usize) -> String {
    let answer = talk
        .ask(&format!("Question {number}: where is that part?"))
        .await;
    assert_eq!(answer.status(), DoneStatus::Complete, "{}", answer.error());
    answer.response()["query_id"].as_str().unwrap().to_owned()
}

async fn replay(talk: &Talk, query: &str) -> Value {
    let params = json!({ "query_id": query });
    talk.call("agent.replay", params).await.unwrap()
}

#[tokio::test]
async fn a_hundred_queries_are_replayed_without_a_difference_and_a_planted_one_is_found() {
    let talk = talk().await;
    let mut queries = Vec::new();
    for number in 1..=100 {
        queries.push(ask(&talk, number).await);
        match number {
            // What is decided later was not in an earlier prompt.
            20 => drop(
                talk.call(
                    "agent.remember",
                    json!({ "kind": "decision", "text": "We use JWT." }),
                )
                .await
                .unwrap(),
            ),
            40 => drop(
                talk.call("agent.pin", json!({ "text": "Mind part 7." }))
                    .await
                    .unwrap(),
            ),
            60 => drop(talk.call("agent.compact", json!({})).await.unwrap()),
            _ => {}
        }
    }
    let compactions = talk.events("context.compacted").await.len();
    assert!(compactions >= 5, "{compactions}");
    let asked = talk.server.requests().len();
    for query in &queries {
        let replayed = replay(&talk, query).await;
        assert_eq!(replayed["divergence"], Value::Null, "{replayed}");
        assert_eq!(replayed["replayed"], replayed["recorded"]);
        assert!(
            replayed["answer"].as_str().unwrap().starts_with("Part "),
            "{replayed}"
        );
    }
    assert_eq!(talk.server.requests().len(), asked, "no model was asked");

    // One message of one of them is not what it was: the answer of a tool in query 42.
    plant(&talk, &queries[41]).await;
    let mut diverged = Vec::new();
    for (query, number) in queries.iter().zip(1..) {
        let replayed = replay(&talk, query).await;
        if !replayed["divergence"].is_null() {
            diverged.push((number, replayed["divergence"].clone()));
        }
    }
    let (number, first) = &diverged[0];
    assert_eq!((*number, &first["turn"]), (42, &json!(2)), "{diverged:?}");
    let what = first["what"].as_str().unwrap();
    assert!(
        what.starts_with("message ") && what.contains("(tool) is another one"),
        "{what}"
    );
}

/// Changes what a tool answered, behind everybody's back.
async fn plant(talk: &Talk, query: &str) {
    let folder = talk.folder.path().join("data/plugins/agent");
    let store = Store::open(&folder, StoreOptions::default()).unwrap();
    let db = store.database("agent.db", Durability::Rebuildable);
    let query = query.to_owned();
    let changed = db
        .write(move |tx| {
            let sql = "update exchanges set json = replace(json, 'part 42', 'part 24')
                where query_id = ?1 and role = 'tool'";
            tx.execute(sql, (query.as_str(),))
        })
        .await
        .unwrap();
    assert!(changed > 0);
}

#[tokio::test]
async fn another_prompt_or_another_tool_is_named() {
    let talk = talk().await;
    let query = ask(&talk, 1).await;
    assert_eq!(replay(&talk, &query).await["divergence"], Value::Null);
    std::fs::create_dir(talk.prompts()).unwrap();
    let file = talk.prompts().join("oracle.md");
    std::fs::write(&file, "Be brief.").unwrap();
    let replayed = replay(&talk, &query).await;
    assert_eq!(
        replayed["divergence"]["what"],
        "the system prompt is another one"
    );
    assert_eq!(
        (&replayed["replayed"], &replayed["answer"]),
        (&json!(0), &Value::Null)
    );
    std::fs::remove_file(&file).unwrap();
    assert_eq!(replay(&talk, &query).await["divergence"], Value::Null);
    let unknown = talk
        .call("agent.replay", json!({ "query_id": "nowhere" }))
        .await;
    assert_eq!(unknown.unwrap_err().message, "there is no query `nowhere`");
}

#[tokio::test]
async fn a_query_without_tools_and_one_that_failed_are_replayed_too() {
    let talk = talk().await;
    let answer = talk
        .ask_with(json!({ "message": "Question 1, without tools?", "tools": false }))
        .await;
    let query = answer.response()["query_id"].as_str().unwrap().to_owned();
    let replayed = replay(&talk, &query).await;
    assert_eq!(
        (&replayed["divergence"], &replayed["replayed"]),
        (&Value::Null, &json!(1))
    );
    talk.server.respond_with(
        |request| match request.body["messages"].as_array().unwrap().last() {
            Some(last) if last["role"] == "tool" => Reply::status(400),
            _ => responder(request),
        },
    );
    talk.ask("Question 3: what is it?").await;
    let queries = talk.call("agent.queries", json!({})).await.unwrap();
    let failed = &queries["queries"][0];
    assert_eq!(failed["state"], "failed");
    let replayed = replay(&talk, failed["id"].as_str().unwrap()).await;
    assert_eq!(
        (&replayed["divergence"], &replayed["replayed"]),
        (&Value::Null, &json!(1))
    );
    assert_eq!(replayed["answer"], Value::Null);
}

#[tokio::test]
async fn a_trace_has_turns_tools_events_and_nothing_of_other_queries() {
    let talk = talk().await;
    ask(&talk, 1).await;
    let query = ask(&talk, 3).await;
    let params = json!({ "query_id": &query[query.len() - 8..] });
    let trace = talk.call("agent.trace", params).await.unwrap();
    assert_eq!(trace["query"]["id"], query);
    let turns = trace["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2);
    let calls = turns[0]["calls"].as_array().unwrap();
    let names: Vec<&Value> = calls.iter().map(|call| &call["name"]).collect();
    assert_eq!(names, ["kit_echo", "kit_big"]);
    assert_eq!(
        (&calls[0]["ending"], &calls[0]["path"]),
        (&json!("success"), &json!("agent.kit"))
    );
    assert!(calls[0]["duration_ms"].is_u64() && calls[1]["result_size"].as_u64().unwrap() > 100);
    assert!(turns[0]["usage"]["input_tokens"].as_u64().unwrap() > 0);
    assert!(trace["answer"].as_str().unwrap().starts_with("Part 3"));
    let kinds: Vec<&str> = trace["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "query.start").count(),
        1
    );
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| **kind == "agent.turn.start")
            .count(),
        2
    );
    assert!(kinds.contains(&"tool.call.success"), "{kinds:?}");
}

#[derive(Clone, Default)]
struct Moods {
    /// What is added to a request.
    adds: Arc<Mutex<String>>,
    /// What is made of an answer.
    says: Arc<Mutex<String>>,
    /// Which tool is refused.
    refuses: Arc<Mutex<String>>,
}

fn now(mood: &Arc<Mutex<String>>) -> String {
    mood.lock().unwrap().clone()
}

fn set(mood: &Arc<Mutex<String>>, to: &str) {
    *mood.lock().unwrap() = to.to_owned();
}

/// Changes requests, answers and what tools may do, as it is told.
struct Moody(Moods);

impl Plugin for Moody {
    fn name(&self) -> &'static str {
        "moody"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        let Moods {
            adds,
            says,
            refuses,
        } = self.0.clone();
        let adds = Hook::inline::<point::PreLlmCall>(move |_| {
            let content = now(&adds);
            Ok(HookReply::edit(ModelCallEdit {
                append: vec![Message::User { content }],
                ..ModelCallEdit::default()
            }))
        });
        let says = Hook::inline::<point::PostLlmResponse>(move |said| {
            Ok(HookReply::edit(ModelResponseEdit {
                text: Some(format!("{}{}", said.text, now(&says))),
                calls: None,
            }))
        });
        let refuses = Hook::inline::<point::PreToolExecute>(move |call| {
            Ok(match call.tool_name == now(&refuses) {
                true => HookReply::edit(Verdict::Deny("not in this mood".to_owned())),
                false => HookReply::none(),
            })
        });
        let hooks = [adds, says, refuses];
        Box::pin(async move {
            Ok(hooks
                .into_iter()
                .fold(Contribution::new(), Contribution::hook))
        })
    }
}

/// Asks for a tool once, where the question wants one; whatever plugins added.
fn once(request: &SeenRequest) -> Reply {
    let messages = request.body["messages"].as_array().unwrap();
    let wants = messages.iter().any(|message| {
        message["content"]
            .as_str()
            .unwrap_or_default()
            .starts_with("Question 3")
    });
    match wants && messages.iter().all(|message| message["role"] != "tool") {
        true => Reply::stream().tool_call("c1", "kit_echo", &[r#"{"text":"part 3"}"#]),
        false => Reply::text("It is there."),
    }
}

#[tokio::test]
async fn what_plugins_would_do_otherwise_is_named() {
    let moods = Moods::default();
    set(&moods.adds, "Be kind.");
    set(&moods.says, " So be it.");
    let setup = Setup {
        plugins: vec![Arc::new(Moody(moods.clone()))],
        ..Setup::default()
    };
    let talk = Talk::set_up(setup, |_| {}).await;
    talk.server.respond_with(once);
    let query = ask(&talk, 3).await;
    let asked = talk.server.requests().len();
    let named = async |what: &str| {
        let divergence = replay(&talk, &query).await["divergence"].clone();
        assert_eq!(
            (&divergence["turn"], &divergence["what"]),
            (&json!(1), &json!(what))
        );
    };
    assert_eq!(replay(&talk, &query).await["divergence"], Value::Null);
    set(&moods.adds, "Be brief.");
    named("plugins make another request: message 2 (user) is another one").await;
    set(&moods.adds, "Be kind.");
    set(&moods.says, " Amen.");
    named("plugins make something else of the model's answer").await;
    set(&moods.says, " So be it.");
    set(&moods.refuses, "kit_echo");
    named("the plugin `moody` refuses the tool `kit_echo`: not in this mood").await;
    set(&moods.refuses, "");
    assert_eq!(replay(&talk, &query).await["divergence"], Value::Null);
    assert_eq!(talk.server.requests().len(), asked, "no model was asked");
    // What they did in a replay is not what they did in the query.
    let trace = talk
        .call("agent.trace", json!({ "query_id": query }))
        .await
        .unwrap();
    let runs = trace["hooks"].as_array().unwrap();
    assert_eq!(runs.len(), 4, "two for each of two turns: {runs:#?}");
}

#[tokio::test]
async fn a_trace_has_the_hooks_of_its_own_query_only() {
    let moods = Moods::default();
    set(&moods.adds, "Be kind.");
    let setup = Setup {
        plugins: vec![Arc::new(Moody(moods))],
        ..Setup::default()
    };
    let talk = Talk::set_up(setup, |_| {}).await;
    for name in ["one", "two"] {
        talk.call("agent.create", json!({ "name": name }))
            .await
            .unwrap();
    }
    // Both are asked before either is answered.
    let gate = Gate::new();
    let waits = gate.clone();
    talk.server
        .respond_with(move |request| once(request).wait(&waits));
    let ask = |context: &str| {
        talk.ask_with(json!({ "message": "Question 1, is it so?", "context_id": context }))
    };
    let open = async {
        talk.server.until_requests(2).await;
        gate.open();
    };
    let (one, two, ()) = tokio::join!(ask("one"), ask("two"), open);
    for answer in [one, two] {
        let query = answer.response()["query_id"].clone();
        let trace = talk
            .call("agent.trace", json!({ "query_id": &query }))
            .await
            .unwrap();
        let runs = trace["hooks"].as_array().unwrap();
        assert_eq!(runs.len(), 2, "{runs:#?}");
        assert!(runs.iter().all(|run| run["query"] == query), "{runs:#?}");
    }
}
