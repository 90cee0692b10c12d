//! The turn loop: what the model saw, what the reader saw, how it ended.

use std::time::Duration;

use dodona_llm::Provider;
use dodona_proto::DoneStatus;
use dodona_testkit::model_server::{Gate, Reply};
use serde_json::{Value, json};

use crate::talk::Talk;

fn roles(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_first_word_is_shown_before_the_second_is_sent() {
    let talk = Talk::new().await;
    let gate = Gate::new();
    talk.server
        .reply(Reply::stream().add_text("Hel").wait(&gate).add_text("lo"));
    let mut stream = talk.open("agent.chat", json!({ "message": "Hi" })).await;
    'first: loop {
        for item in stream.next().await.unwrap().unwrap() {
            let item = serde_json::to_value(item.to_item().unwrap()).unwrap();
            if item["content_type"] == "TextDelta" {
                assert_eq!(item["data"]["text"], "Hel");
                break 'first;
            }
        }
    }
    gate.open();
    stream.collect().await.unwrap();
    assert_eq!(talk.last_query().await.0, "complete");
}

#[tokio::test]
async fn a_model_asks_for_tools_and_answers_with_what_they_said() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let talk = Talk::of(provider, |_| {}).await;
        talk.server.reply(
            Reply::stream()
                .add_text("Let me see.")
                .tool_call("c1", "kit_echo", &[r#"{"te"#, r#"xt":"one"}"#])
                .tool_call("c2", "kit_echo", &[r#"{"text":"two"}"#])
                .usage(100, 20, 10),
        );
        talk.server
            .reply(Reply::text("Both said so.").usage(150, 5, 100));
        let answer = talk.ask("What do they say?").await;
        assert_eq!(answer.status(), DoneStatus::Complete);
        assert_eq!(answer.text(), "Both said so.");
        assert_eq!(answer.endings(), ["success", "success"]);
        assert_eq!(answer.pieces().concat(), "Let me see.Both said so.");
        let response = answer.response();
        assert_eq!(response["turns"], 2);
        assert_eq!(response["usage"]["output_tokens"], 25);
        assert_eq!(response["uncited"], json!(["Both said so."]));
        assert!(response["cost_micros"].as_u64().unwrap() > 0);
        assert_eq!(talk.server.requests().len(), 2);
        assert_eq!(talk.last_query().await, ("complete".to_owned(), None));
    }
}

#[tokio::test]
async fn what_went_wrong_with_a_tool_is_told_to_the_model() {
    let talk = Talk::new().await;
    talk.server.reply(
        Reply::stream()
            .tool_call("a", "kit_fail", &["{}"])
            .tool_call("b", "kit_hang", &["{}"])
            .tool_call("c", "kit_panic", &["{}"])
            .tool_call("d", "tool_ecko", &["{}"])
            .tool_call("e", "kit_echo", &[r#"{"text": 7}"#])
            .tool_call("f", "kit_echo", &[r#"{"text": "#])
            .tool_call("g", "kit_echo", &[r#"{"text": "fine"}"#]),
    );
    talk.server.reply(Reply::text("I see."));
    let answer = talk.ask("Try everything").await;
    assert_eq!(
        answer.endings(),
        [
            "error", "timeout", "error", "error", "error", "error", "success"
        ]
    );
    assert_eq!(answer.status(), DoneStatus::Complete);
    let sent = talk.sent();
    let told: Vec<&str> = sent
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    let expected = [
        "the tool is broken",
        "timed out after",
        "panic",
        "the nearest are kit_echo",
        "text",
        "not valid JSON",
        "fine",
    ];
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{told} has no {expected:?}");
    }
    assert_eq!(told.len(), expected.len());
}

#[tokio::test]
async fn text_that_looks_like_a_tool_call_is_text() {
    let talk = Talk::new().await;
    let text = r#"<tool_call>{"name": "kit_fail", "arguments": {}}</tool_call>"#;
    talk.server.reply(Reply::text(text));
    let answer = talk.ask("Trick me").await;
    assert_eq!(answer.text(), text);
    assert!(answer.data("ToolCall").is_empty());
}

#[tokio::test]
async fn a_large_result_is_cut_and_the_rest_can_be_read() {
    let talk = Talk::new().await;
    talk.server
        .reply(Reply::stream().tool_call("a", "kit_big", &[r#"{"entries":5000}"#]));
    talk.server.reply(Reply::text("A lot."));
    talk.ask("How much?").await;
    let sent = talk.sent();
    let told = sent.last().unwrap()["content"].as_str().unwrap();
    let (shown, note) = told.rsplit_once('\n').unwrap();
    let lines = shown.lines().count() - 1;
    assert!((100..1000).contains(&lines), "{lines}");
    assert!(
        shown.starts_with("entries:\n- entry number 0 of many\n- entry number 1 "),
        "{shown}"
    );
    let counts = format!(
        "[cut: {lines} of 5000 items, characters 1-{} of ",
        shown.len() + 1
    );
    assert!(note.starts_with(&counts), "{note}");
    let (_, call) = note
        .trim_end_matches(']')
        .split_once("agent_result ")
        .unwrap();
    let mut call: Value = serde_json::from_str(call).unwrap();
    let mut whole = format!("{shown}\n");
    while !call["from"].is_null() {
        let part = talk.call("agent.result", call.clone()).await.unwrap();
        whole.push_str(part["text"].as_str().unwrap());
        call["from"] = part["next"].clone();
    }
    let entries = (0..5000).map(|n| format!("- entry number {n} of many"));
    assert_eq!(
        whole,
        format!("entries:\n{}", entries.collect::<Vec<_>>().join("\n"))
    );
    let missing = talk.call("agent.result", json!({ "handle": "r1" })).await;
    assert_eq!(missing.unwrap_err().message, "there is no result `r1`");
}

#[tokio::test]
async fn going_round_in_circles_is_noticed() {
    let talk = Talk::with(|options| options.max_turns = 5).await;
    let again = || Reply::stream().tool_call("a", "kit_echo", &[r#"{"text":"x"}"#]);
    talk.server.respond_with(move |_| again());
    let answer = talk.ask("Loop").await;
    assert_eq!(answer.data("Notification").len(), 3);
    assert_eq!(answer.status(), DoneStatus::Limited);
    assert!(
        answer.error().contains("within 5 turns"),
        "{}",
        answer.error()
    );
    let last = talk.server.last_request();
    assert_eq!(
        talk.server.requests().len(),
        6,
        "five turns and the last one"
    );
    assert!(
        last.body.get("tools").is_none(),
        "the last one has no tools"
    );
    assert_eq!(talk.last_query().await.0, "limited");
    // The conversation goes on.
    talk.server.respond_with(|_| Reply::text("Well."));
    assert_eq!(talk.ask("And now?").await.text(), "Well.");
}

#[tokio::test]
async fn the_beginning_of_every_request_is_the_same_over_ten_turns() {
    let talk = Talk::of(Provider::OpenAi, |options| {
        options.token_budget = Some(64_000)
    })
    .await;
    for turn in 0..10 {
        let arguments = format!(r#"{{"text":"{turn}"}}"#);
        talk.server
            .reply(Reply::stream().tool_call("c", "kit_echo", &[&arguments]));
        talk.server.reply(Reply::text(&format!("It said {turn}.")));
        talk.ask(&format!("What does {turn} say?")).await;
    }
    let requests = talk.server.requests();
    assert_eq!(requests.len(), 20);
    let beginnings: Vec<String> = requests
        .iter()
        .map(|request| String::from_utf8(request.bytes.to_vec()).unwrap())
        .collect();
    for (before, after) in beginnings.iter().zip(&beginnings[1..]) {
        let messages = |text: &str| -> Vec<String> {
            let body: Value = serde_json::from_str(text).unwrap();
            let all = body["messages"].as_array().unwrap();
            all.iter().map(Value::to_string).collect()
        };
        let (old, new) = (messages(before), messages(after));
        assert_eq!(new[..old.len()], old[..], "earlier messages were changed");
        let common = before
            .bytes()
            .zip(after.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let last = old.last().unwrap();
        let end = before.rfind(last.as_str()).unwrap() + last.len();
        assert!(
            common >= end,
            "the requests part at byte {common}, before {end}"
        );
    }
    let (first, last) = (&requests[0].body, &requests[19].body);
    assert_eq!(first["tools"].to_string(), last["tools"].to_string());
}

#[tokio::test]
async fn queries_of_a_conversation_wait_for_each_other() {
    let talk = Talk::new().await;
    let gate = Gate::new();
    talk.server
        .reply(Reply::stream().wait(&gate).add_text("First."));
    talk.server.reply(Reply::text("Second."));
    let first = talk.open("agent.chat", json!({ "message": "1" })).await;
    talk.server.until_requests(1).await;
    let second = talk.open("agent.chat", json!({ "message": "2" })).await;
    let both = async {
        let (first, second) = tokio::join!(first.collect(), second.collect());
        (first.unwrap(), second.unwrap())
    };
    tokio::pin!(both);
    let early = tokio::time::timeout(Duration::from_millis(50), &mut both).await;
    assert!(early.is_err());
    assert_eq!(talk.server.requests().len(), 1, "the second one waits");
    gate.open();
    both.await;
    let sent = talk.sent();
    assert_eq!(roles(&sent), ["system", "user", "assistant", "user"]);
    assert_eq!(sent[2]["content"], "First.");
}

#[tokio::test]
async fn what_is_said_meanwhile_is_seen_before_the_next_step() {
    let talk = Talk::new().await;
    let gate = Gate::new();
    talk.server
        .reply(Reply::stream().add_text("Looking.").wait(&gate).tool_call(
            "c",
            "kit_echo",
            &[r#"{"text":"x"}"#],
        ));
    talk.server.reply(Reply::text("In French then."));
    let stream = talk
        .open("agent.chat", json!({ "message": "Explain" }))
        .await;
    talk.server.until_requests(1).await;
    talk.call("agent.steer", json!({ "message": "In French, please" }))
        .await
        .unwrap();
    gate.open();
    stream.collect().await.unwrap();
    let sent = talk.sent();
    assert_eq!(
        roles(&sent),
        ["system", "user", "assistant", "tool", "user"],
        "the message comes after the step during which it was sent"
    );
    assert_eq!(sent[4]["content"], "In French, please");
    let none = talk
        .call("agent.steer", json!({ "message": "Too late" }))
        .await;
    assert!(
        none.unwrap_err()
            .message
            .starts_with("no query is running in the conversation `default`")
    );
}

#[tokio::test]
async fn an_answer_that_the_user_has_read_is_stored_before_the_answer_to_a_steering_message() {
    let talk = Talk::new().await;
    let gate = Gate::new();
    talk.server.reply(
        Reply::stream()
            .add_text("It is")
            .wait(&gate)
            .add_text(" so."),
    );
    talk.server.reply(Reply::text("C'est ça."));
    let stream = talk
        .open("agent.chat", json!({ "message": "Explain" }))
        .await;
    talk.server.until_requests(1).await;
    talk.call("agent.steer", json!({ "message": "In French, please" }))
        .await
        .unwrap();
    gate.open();
    let items = stream.collect().await.unwrap();
    let answer = crate::talk::Answer { items };
    assert_eq!(answer.text(), "C'est ça.");
    assert_eq!(talk.server.requests().len(), 2);
    let sent = talk.sent();
    assert_eq!(roles(&sent), ["system", "user", "assistant", "user"]);
    assert_eq!(sent[2]["content"], "It is so.");
    let shown = talk.call("agent.show", json!({})).await.unwrap();
    let exchanges = shown["context"]["recent_exchanges"].as_array().unwrap();
    let stored: Vec<&str> = exchanges
        .iter()
        .map(|exchange| exchange["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        stored,
        ["Explain", "It is so.", "In French, please", "C'est ça."]
    );
}

#[tokio::test]
async fn a_cancelled_query_is_recorded_and_its_beginning_is_no_answer() {
    let talk = Talk::new().await;
    talk.server
        .reply(Reply::stream().add_text("It begins").wait(&Gate::new()));
    let mut stream = talk
        .open("agent.chat", json!({ "message": "Tell me" }))
        .await;
    loop {
        let items = stream.next().await.unwrap().unwrap();
        let begun = |item: &Value| item["content_type"] == "TextDelta";
        let items: Vec<Value> = items
            .iter()
            .map(|item| serde_json::to_value(item.to_item().unwrap()).unwrap())
            .collect();
        if items.iter().any(begun) {
            break;
        }
    }
    let target = json!({ "stream_id": stream.stream() });
    talk.call("hub.cancel", target).await.unwrap();
    while stream.next().await.unwrap().is_some() {}
    talk.server.until_abandoned(1).await;
    assert_eq!(talk.last_query().await.0, "cancelled");
    talk.server.reply(Reply::text("Again, then."));
    assert_eq!(talk.ask("Once more").await.status(), DoneStatus::Complete);
    let sent = talk.sent();
    let said: Vec<&Value> = sent.iter().map(|message| &message["content"]).collect();
    assert_eq!(said[2], "(This was not answered: the user stopped it.)");
    assert!(!sent.iter().any(|message| message["content"] == "It begins"));
}

#[tokio::test]
async fn cancelling_reaches_the_tool_that_is_running() {
    let talk = Talk::new().await;
    talk.server
        .reply(Reply::stream().tool_call("c", "kit_wait", &["{}"]));
    let mut stream = talk.open("agent.chat", json!({ "message": "Wait" })).await;
    loop {
        let calls = talk.call("hub.calls", json!({})).await.unwrap();
        if calls.to_string().contains("kit.wait") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let target = json!({ "stream_id": stream.stream() });
    let stopped = talk.call("hub.cancel", target).await.unwrap();
    assert!(stopped.to_string().contains("kit"), "{stopped}");
    while stream.next().await.unwrap().is_some() {}
    assert_eq!(talk.last_query().await.0, "cancelled");
    let shown = talk.call("agent.export", json!({})).await.unwrap();
    assert!(
        shown.to_string().contains(r#""ending":"cancelled""#),
        "{shown}"
    );
}

#[tokio::test]
async fn what_is_no_answer_is_said_so() {
    let talk = Talk::new().await;
    for (reply, expected) in [
        (Reply::stream(), "returned an empty answer"),
        (
            Reply::stream().reasoning("Hmm."),
            "returned reasoning and no answer",
        ),
        (Reply::status(401), "did not answer"),
        (Reply::status(500), "did not answer"),
    ] {
        talk.server.reply(reply);
        let answer = talk.ask("Well?").await;
        assert_eq!(answer.status(), DoneStatus::Failed);
        assert!(answer.error().contains(expected), "{}", answer.error());
        assert_eq!(talk.last_query().await.0, "failed");
    }
    talk.server.reply(Reply::text("Here I am."));
    assert_eq!(talk.ask("Still there?").await.text(), "Here I am.");
}

#[tokio::test]
async fn a_conversation_survives_a_restart_and_another_model() {
    let talk = Talk::new().await;
    talk.server.reply(Reply::text("A day."));
    talk.ask("How long does a token last?").await;
    let talk = talk.restart().await;
    talk.server.reply(Reply::text("Because of risk."));
    talk.ask_with(json!({ "message": "Why?", "model": "other" }))
        .await;
    let request = talk.server.last_request();
    assert_eq!(request.body["model"], "other-1");
    assert_eq!(roles(&talk.sent()), ["system", "user", "assistant", "user"]);
    let unknown = talk
        .ask_with(json!({ "message": "?", "model": "nobody" }))
        .await;
    assert!(
        unknown.error().contains("there is no model `nobody`"),
        "{}",
        unknown.error()
    );
}

#[tokio::test]
async fn the_snapshot_is_exact_at_each_step() {
    let talk = Talk::with(|options| options.max_turns = 7).await;
    talk.server
        .reply(Reply::stream().tool_call("a", "kit_echo", &[r#"{"text":"x"}"#]));
    talk.server
        .reply(Reply::stream().tool_call("b", "kit_fail", &["{}"]));
    talk.server.reply(Reply::text("Done."));
    let answer = talk.ask("Count").await;
    let shown: Vec<(u64, u64, u64, u64)> = answer
        .data("Usage")
        .iter()
        .map(|usage| {
            let snapshot = &usage["snapshot"];
            let number = |value: &Value| value.as_u64().unwrap();
            assert_eq!(snapshot["turn"]["max_iterations"], 7);
            let share = snapshot["turn"]["token_usage"].as_f64().unwrap();
            let expected = number(&snapshot["tokens_used"]) as f64 / 16_000.0;
            assert!((share - expected).abs() < 1e-9);
            (
                number(&snapshot["turn"]["iteration_count"]),
                number(&snapshot["turn"]["number"]),
                number(&snapshot["history"]["total_tool_calls"]),
                number(&snapshot["history"]["total_failures"]),
            )
        })
        .collect();
    assert_eq!(shown, [(1, 1, 0, 0), (2, 2, 1, 0), (3, 3, 2, 1)]);
    talk.server.reply(Reply::text("Again."));
    let second = talk.ask("More").await;
    let snapshot = &second.data("Usage")[0]["snapshot"];
    assert_eq!(
        (
            &snapshot["turn"]["number"],
            &snapshot["turn"]["iteration_count"]
        ),
        (&json!(4), &json!(1))
    );
    let context = talk.call("agent.show", json!({})).await.unwrap();
    let stored = &context["context"]["tokens_used"];
    let used = snapshot["tokens_used"].as_u64().unwrap();
    assert!(stored.as_u64().unwrap() > used, "{stored} {used}");
}

#[tokio::test]
async fn the_prompt_is_a_file_that_can_be_replaced_and_is_read_again() {
    let talk = Talk::new().await;
    let shown = talk
        .call("agent.prompt", json!({ "message": "Why?" }))
        .await
        .unwrap();
    let system = shown["system"].as_str().unwrap();
    assert!(system.contains("the project `orchard`"), "{system}");
    assert_eq!(
        shown["messages"],
        json!([{ "role": "user", "content": "Why?" }])
    );
    std::fs::create_dir(talk.prompts()).unwrap();
    let file = talk.prompts().join("oracle.md");
    std::fs::write(&file, "You are a pirate in {{ project }}.").unwrap();
    talk.server.reply(Reply::text("Arr."));
    talk.ask("Who are you?").await;
    assert_eq!(talk.sent()[0]["content"], "You are a pirate in orchard.");
    std::fs::write(&file, "You are {{ project").unwrap();
    let answer = talk.ask("And now?").await;
    assert!(answer.error().contains("oracle.md"), "{}", answer.error());
    assert_eq!(talk.last_query().await.0, "failed");
}

#[tokio::test]
async fn what_is_shown_as_the_prompt_is_what_is_sent() {
    let talk = Talk::new().await;
    talk.server.reply(Reply::text("One."));
    talk.ask("First?").await;
    let params = json!({ "kind": "decision", "text": "We count from one." });
    talk.call("agent.remember", params).await.unwrap();
    let shown = talk
        .call("agent.prompt", json!({ "message": "Second?" }))
        .await
        .unwrap();
    talk.server.reply(Reply::text("Two."));
    talk.ask("Second?").await;
    let sent = talk.sent();
    assert_eq!(sent[0]["content"], shown["system"]);
    let last = sent.last().unwrap()["content"].as_str().unwrap();
    assert!(last.ends_with("- We count from one."), "{last}");
    let contents = |messages: &[Value]| -> Vec<Value> {
        messages
            .iter()
            .map(|message| message["content"].clone())
            .collect()
    };
    assert_eq!(
        contents(&sent[1..]),
        contents(shown["messages"].as_array().unwrap())
    );
    let names = |tools: &Value, path: &str| -> Vec<Value> {
        let tools = tools.as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool.pointer(path).unwrap().clone())
            .collect()
    };
    let request = talk.server.last_request();
    assert_eq!(
        names(&request.body["tools"], "/function/name"),
        names(&shown["tools"], "/name")
    );
}

#[tokio::test]
async fn citations_are_checked_and_numbered_for_the_reader() {
    let talk = Talk::new().await;
    let note = talk.folder.path().join("orchard/pears.md");
    std::fs::write(&note, "# Pears\n\nPears ripen in autumn.\n").unwrap();
    talk.server
        .reply(Reply::stream().tool_call("s", "vault_search", &[r#"{"query":"pears"}"#]));
    talk.server.reply(
        Reply::stream()
            .add_text("In autumn [")
            .add_text("1]. Not cited: [7]."),
    );
    let answer = talk.ask("When do pears ripen?").await;
    assert_eq!(answer.text(), "In autumn [1]. Not cited: .");
    assert_eq!(answer.response()["sources"][0]["path"], "pears.md");
    // A later query can cite what an earlier one found.
    talk.server.reply(Reply::text("As I said [1]."));
    let again = talk.ask("Really?").await;
    assert_eq!(again.response()["sources"][0]["path"], "pears.md");
    // And no longer when the lines are others.
    std::fs::write(&note, "# Pears\n\nPears ripen in spring.\n").unwrap();
    talk.server.reply(Reply::text("As I said [1]."));
    let stale = talk.ask("Sure?").await;
    assert_eq!(stale.text(), "As I said .");
    assert_eq!(stale.response()["sources"], json!([]));
}

#[tokio::test]
async fn without_tools_none_are_offered() {
    let talk = Talk::new().await;
    talk.server.reply(Reply::text("Four."));
    talk.ask_with(json!({ "message": "Two and two?", "tools": false }))
        .await;
    let request = talk.server.last_request();
    assert!(request.body.get("tools").is_none(), "{}", request.body);
}

#[tokio::test]
async fn a_question_that_is_larger_than_the_budget_is_cut_and_answered() {
    let talk = Talk::with(|options| options.token_budget = Some(4_000)).await;
    let long = "many words ".repeat(5_000);
    talk.server.reply(Reply::text("Many."));
    let answer = talk.ask(&long).await;
    assert_eq!(answer.text(), "Many.");
    let told = answer.data("Notification")[0]["message"].as_str().unwrap();
    assert!(
        told.starts_with("the message has 55000 characters;"),
        "{told}"
    );
    let sent = talk.sent();
    let sent = sent[1]["content"].as_str().unwrap();
    assert!(sent.starts_with("many words many words "));
    assert!(
        sent.contains(" of 55000 are shown. Read on with agent_result "),
        "{sent}"
    );
    talk.server.reply(Reply::text("Short."));
    assert_eq!(talk.ask("And this?").await.text(), "Short.");
}
