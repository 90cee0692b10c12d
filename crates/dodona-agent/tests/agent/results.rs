//! What a model is shown: tool results as text, cut where they must be, within its window.

use dodona_llm::{Provider, TokenCounter, ToolOffer};
use dodona_proto::DoneStatus;
use dodona_testkit::model_server::{Reply, SeenRequest};
use serde_json::{Value, json};

use crate::talk::{Setup, Talk};

const PROVIDERS: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

/// The texts of the tool results in a request, in order, in either protocol.
fn results(request: &SeenRequest) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    let mut results = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            results.push(message["content"].as_str().unwrap().to_owned());
        }
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                results.push(text_of(&block["content"]));
            }
        }
    }
    results
}

fn text_of(content: &Value) -> String {
    match content.as_array() {
        None => content.as_str().unwrap().to_owned(),
        Some(blocks) => {
            let texts = blocks.iter().map(|block| block["text"].as_str().unwrap());
            texts.collect::<Vec<_>>().join("")
        }
    }
}

/// The text of the system prompt, in either protocol.
fn system(request: &SeenRequest) -> String {
    match &request.body["system"] {
        Value::Null => text_of(&request.body["messages"][0]["content"]),
        system => text_of(system),
    }
}

fn write(talk: &Talk, path: &str, text: &str) {
    let file = talk.root().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// Has the model make one call, and returns what it was shown of the result.
async fn shown(talk: &Talk, tool: &str, arguments: Value) -> String {
    talk.server
        .reply(Reply::stream().tool_call("c1", tool, &[&arguments.to_string()]));
    talk.server.reply(Reply::text("Seen."));
    let answer = talk.ask("Show it.").await;
    assert_eq!(answer.status(), DoneStatus::Complete, "{}", answer.error());
    results(&talk.server.last_request()).pop().unwrap()
}

#[tokio::test]
async fn results_are_text_in_both_protocols() {
    for provider in PROVIDERS {
        let talk = Talk::of(provider, |options| options.preload = 0).await;
        write(
            &talk,
            "src/login.rs",
            "/// Logs in.\nfn login() {\n\tlet a = \"x\";\n}\n",
        );
        write(&talk, "notes/login.md", "# Login\n\nA token lasts a day.\n");
        write(&talk, "notes/b.md", "# How we deploy\n\nBy hand.\n");
        let read = shown(
            &talk,
            "code_read",
            json!({ "path": "src/login.rs", "from": 2 }),
        )
        .await;
        assert_eq!(
            read,
            "[1] src/login.rs:2-4\n2\tfn login() {\n3\t\tlet a = \"x\";\n4\t}"
        );
        let grep = shown(&talk, "code_grep", json!({ "pattern": "[Ll]og" })).await;
        assert_eq!(
            grep,
            "3 matching lines\nnotes/login.md\n[2] 1: # Login\nsrc/login.rs\n[3] 1: /// Logs in.\n[4] 2: fn login() {"
        );
        let list = shown(&talk, "vault_list", json!({})).await;
        assert_eq!(list, "2 notes\nnotes/b.md: How we deploy\nnotes/login.md");
        let found = shown(
            &talk,
            "search_query",
            json!({ "query": "how long does a token last", "limit": 1 }),
        )
        .await;
        assert_eq!(
            found,
            "[5] notes/login.md:1-3\n1\t# Login\n2\t\n3\tA token lasts a day.\n"
        );
        let missing = shown(&talk, "code_read", json!({ "path": "nothing.rs" })).await;
        assert!(missing.starts_with("error ("), "{missing}");
    }
}

/// What the structured result takes in JSON, and what the model is shown.
#[tokio::test]
async fn text_takes_a_part_of_what_json_took() {
    let talk = Talk::with(|options| options.preload = 0).await;
    for n in 0..24 {
        write(
            &talk,
            &format!("src/module_{}.rs", n % 6),
            &"fn work() {}\nlet budget = 1;\n".repeat(2),
        );
        write(
            &talk,
            &format!("notes/n{n}.md"),
            &format!("# Note {n}\n\nThe budget of part {n} is {n} euros.\n"),
        );
    }
    let calls = [
        ("code_grep", json!({ "pattern": "budget", "limit": 24 })),
        ("code_read", json!({ "path": "src/module_1.rs" })),
        ("vault_list", json!({})),
        (
            "search_query",
            json!({ "query": "budget of part 7", "limit": 5 }),
        ),
    ];
    println!("\n{:<14} {:>8} {:>8}", "", "JSON", "text");
    for (tool, arguments) in calls {
        let method = tool.replacen('_', ".", 1);
        let structured = talk.call(&method, arguments.clone()).await.unwrap();
        let json = structured.to_string().len();
        let text = shown(&talk, tool, arguments).await.len();
        println!("{tool:<14} {json:>8} {text:>8}");
        assert!(text * 10 < json * 9, "{tool}: {text} of {json}");
    }
}

/// With the window of a model that takes 128,000 tokens.
async fn large() -> Talk {
    let setup = Setup {
        model: |_, config| config.context_window = Some(128_000),
        ..Setup::default()
    };
    Talk::set_up(setup, |options| options.preload = 0).await
}

fn source_file(bytes: usize) -> String {
    let line = |n: usize| format!("    let value_{n} = compute(\"part {n}\", {n}); // step {n}\n");
    let mut text = String::new();
    for n in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&line(n));
    }
    text
}

#[tokio::test]
async fn a_source_file_of_60_kb_fits_a_model_with_128k() {
    let talk = large().await;
    let text = source_file(60_000);
    write(&talk, "src/big.rs", &text);
    let read = shown(&talk, "code_read", json!({ "path": "src/big.rs" })).await;
    let lines: Vec<&str> = read.lines().skip(1).collect();
    assert_eq!(lines.len(), text.lines().count());
    let last = text.lines().last().unwrap();
    assert_eq!(*lines.last().unwrap(), format!("{}\t{last}", lines.len()));
}

/// Whoever makes the call that each note names has read the file exactly.
#[tokio::test]
async fn the_notes_of_cut_files_lead_to_their_end() {
    for provider in PROVIDERS {
        let setup = Setup {
            provider,
            model: |_, config| config.context_window = Some(128_000),
            ..Setup::default()
        };
        let talk = Talk::set_up(setup, |options| options.preload = 0).await;
        let text = source_file(80_000);
        write(&talk, "src/huge.rs", &text);
        talk.server.respond_with(|request| {
            let results = results(request);
            let call = match results
                .last()
                .map(|last| last.split_once("Read on with code_read "))
            {
                None => json!({ "path": "src/huge.rs" }).to_string(),
                Some(Some((_, rest))) => rest.split_once("]\n").unwrap().0.to_owned(),
                Some(None) => return Reply::text("Read."),
            };
            Reply::stream().tool_call(&format!("c{}", results.len()), "code_read", &[&call])
        });
        let answer = talk.ask("Read all of it.").await;
        assert_eq!(answer.status(), DoneStatus::Complete, "{}", answer.error());
        let mut read = String::new();
        let parts = results(&talk.server.last_request());
        assert!((2..12).contains(&parts.len()), "{}", parts.len());
        for part in &parts {
            for line in part.lines() {
                if let Some((number, line)) = line.split_once('\t') {
                    assert_eq!(number.parse::<usize>().unwrap(), read.lines().count() + 1);
                    read.push_str(line);
                    read.push('\n');
                }
            }
        }
        assert!(read == text);
    }
}

#[tokio::test]
async fn a_citation_covers_the_lines_that_were_shown() {
    let talk = Talk::with(|options| options.preload = 0).await;
    write(&talk, "src/huge.rs", &source_file(150_000));
    write(&talk, "src/empty.rs", "");
    talk.server.reply(
        Reply::stream()
            .tool_call("c1", "code_read", &[r#"{"path":"src/huge.rs"}"#])
            .tool_call("c2", "code_read", &[r#"{"path":"src/empty.rs"}"#]),
    );
    talk.server
        .reply(Reply::text("It computes [1], and nothing else [2]."));
    let answer = talk.ask("What does it do?").await;
    assert_eq!(answer.text(), "It computes [1], and nothing else .");
    let shown = results(&talk.server.last_request());
    let last_line = shown[0].lines().last().unwrap().split_once('\t').unwrap().0;
    let source = &answer.response()["sources"][0];
    assert_eq!(source["line_end"].to_string(), last_line);
    assert!(!shown[1].contains('['), "{}", shown[1]);
}

/// A number whose passage was cut off is as good as invented, until the model has read it.
#[tokio::test]
async fn what_was_cut_off_cannot_be_cited_before_it_is_read() {
    let talk = Talk::with(|options| options.preload = 0).await;
    for n in 0..150 {
        write(
            &talk,
            &format!("notes/n{n:03}.md"),
            &format!("# Note {n}\n\nmarker {} {n}\n", "x".repeat(250)),
        );
    }
    talk.server.reply(Reply::stream().tool_call(
        "c1",
        "code_grep",
        &[r#"{"pattern":"marker","limit":150}"#],
    ));
    talk.server.reply(Reply::text("First [1], last [150]."));
    let answer = talk.ask("Where are markers?").await;
    assert_eq!(answer.text(), "First [1], last .");
    let cut = results(&talk.server.last_request()).pop().unwrap();
    let (_, call) = cut.rsplit_once("agent_result ").unwrap();
    let mut call: Value = serde_json::from_str(call.trim_end_matches(']')).unwrap();
    while !talk.call("agent.result", call.clone()).await.unwrap()["text"]
        .as_str()
        .unwrap()
        .contains("[150] ")
    {
        call["from"] = talk.call("agent.result", call.clone()).await.unwrap()["next"].clone();
    }
    let part = shown(&talk, "agent_result", call).await;
    assert!(part.contains("\n[150] 3: marker "), "{part}");
    talk.server.reply(Reply::text("The last is [150]."));
    let answer = talk.ask("Which is the last?").await;
    assert_eq!(answer.text(), "The last is [1].");
    assert_eq!(answer.response()["sources"][0]["path"], "notes/n149.md");
}

/// What earlier queries were shown can be cited in later ones, also in a copy of the conversation.
#[tokio::test]
async fn sources_last_as_long_as_the_conversation() {
    let talk = Talk::with(|options| options.preload = 0).await;
    write(&talk, "a.md", "The answer is 42.\n");
    shown(&talk, "code_read", json!({ "path": "a.md" })).await;
    let talk = talk.restart().await;
    talk.server.reply(Reply::text("It is 42 [1]."));
    assert_eq!(talk.ask("What is it?").await.text(), "It is 42 [1].");
    let exported = talk.call("agent.export", json!({})).await.unwrap();
    let fork = talk
        .call("agent.fork", json!({ "name": "copy" }))
        .await
        .unwrap();
    let import = json!({ "document": exported, "name": "imported" });
    let imported = talk.call("agent.import", import).await.unwrap();
    for copy in [fork, imported] {
        talk.server.reply(Reply::text("Still 42 [1]."));
        let params = json!({ "message": "And now?", "context_id": copy["context_id"] });
        let answer = talk.ask_with(params).await;
        assert_eq!(answer.text(), "Still 42 [1].");
    }
}

fn tokens(value: &Value) -> usize {
    let counter = TokenCounter::for_model("gpt-4o");
    let tools = value["tools"].as_array().into_iter().flatten().map(|tool| {
        let tool = &tool["function"];
        counter.count_tool(&ToolOffer {
            name: tool["name"].as_str().unwrap().to_owned(),
            description: tool["description"].as_str().unwrap().to_owned(),
            parameters: tool["parameters"].clone(),
        })
    });
    tools.sum()
}

#[tokio::test]
async fn the_tools_of_a_trivial_question_take_at_most_1500_tokens() {
    let talk = Talk::with(|options| options.preload = 0).await;
    talk.server.reply(Reply::text("Hello."));
    talk.ask("Hello").await;
    let request = talk.server.last_request();
    let tools = request.body["tools"].as_array().unwrap();
    let counter = TokenCounter::for_model("gpt-4o");
    for tool in tools {
        println!(
            "{:>5} {}",
            counter.count(&tool.to_string()),
            tool["function"]["name"]
        );
        let text = tool.to_string();
        assert!(
            !text.contains("$schema") && !text.contains("\"format\":"),
            "{text}"
        );
    }
    println!(
        "{:>5} tools, {} system",
        tokens(&request.body),
        counter.count(&system(&request))
    );
    assert!(tokens(&request.body) <= 1_500, "{}", tokens(&request.body));
    assert!(
        tools
            .iter()
            .all(|tool| tool["function"]["name"] != "echo_say")
    );
}

fn request_tokens(request: &SeenRequest) -> usize {
    let counter = TokenCounter::for_model("gpt-4o");
    let messages = request.body["messages"].as_array().unwrap();
    let text: usize = messages
        .iter()
        .map(|message| counter.count(message["content"].as_str().unwrap_or_default()) + 4)
        .sum();
    text + tokens(&request.body)
}

#[tokio::test]
async fn a_request_never_exceeds_a_small_window() {
    let setup = Setup {
        model: |_, config| config.context_window = Some(4_096),
        ..Setup::default()
    };
    let talk = Talk::set_up(setup, |_| {}).await;
    for n in 0..20 {
        write(
            &talk,
            &format!("notes/n{n}.md"),
            &format!(
                "# Part {n}\n\n{}\n",
                "The budget of the part is fixed. ".repeat(40)
            ),
        );
    }
    talk.server
        .respond_with(|_| Reply::text(&"The budget is fixed. ".repeat(20)));
    for n in 0..12 {
        let question = format!("What is the budget of part {n}? {}", "Tell me. ".repeat(20));
        let answer = talk.ask(&question).await;
        assert_eq!(answer.status(), DoneStatus::Complete, "{}", answer.error());
        let tokens = request_tokens(&talk.server.last_request());
        assert!(tokens < 4_096, "{tokens}");
    }
    // What cannot fit is said to the user, and nothing is sent.
    let sent = talk.server.requests().len();
    let answer = talk.ask(&"word ".repeat(3_000)).await;
    assert_eq!(talk.server.requests().len(), sent);
    assert!(answer.error().contains("4096"), "{}", answer.error());
}

#[tokio::test]
async fn without_a_known_window_no_share_of_it_is_claimed() {
    let talk = Talk::with(|options| options.token_budget = Some(4_000)).await;
    talk.server
        .respond_with(|_| Reply::text(&"word ".repeat(400)));
    for _ in 0..8 {
        talk.ask("Say something.").await;
    }
    for event in talk.events("agent.turn.start").await {
        assert_eq!(event.payload["snapshot"]["turn"]["context_usage"], 0.0);
    }
}

#[tokio::test]
async fn the_prompt_has_the_date_the_top_level_and_trusted_instructions() {
    let talk = Talk::with(|options| options.preload = 0).await;
    write(&talk, "src/a.rs", "");
    write(&talk, "target/x", "");
    write(&talk, "README.md", "");
    write(&talk, "AGENTS.md", "Answer in French.\n");
    talk.server.respond_with(|_| Reply::text("Oui."));
    talk.ask("Hello?").await;
    let prompt = system(&talk.server.last_request());
    let today = jiff::Zoned::now().date().to_string();
    assert!(prompt.contains(&format!("Today is {today}.")), "{prompt}");
    assert!(
        prompt.contains("Its top level has: src/, AGENTS.md, README.md."),
        "{prompt}"
    );
    assert!(!prompt.contains("French"), "nobody trusts the project");
    let trust = talk.call("hub.trust", json!({})).await.unwrap();
    talk.call("hub.trust_accept", json!({ "hash": trust["hash"] }))
        .await
        .unwrap();
    talk.ask("Hello?").await;
    let prompt = system(&talk.server.last_request());
    assert!(
        prompt.contains("Instructions of the project, from AGENTS.md."),
        "{prompt}"
    );
    assert!(prompt.contains("\nAnswer in French."), "{prompt}");
    let shown = talk.call("agent.prompt", json!({})).await.unwrap();
    assert_eq!(shown["system"], prompt);
}

#[tokio::test]
async fn passages_with_a_question_have_numbers_and_lines() {
    let talk = Talk::new().await;
    write(&talk, "notes/login.md", "# Login\n\nA token lasts a day.\n");
    talk.server.reply(Reply::text("A day [1]."));
    let answer = talk.ask("How long does a token last?").await;
    assert_eq!(answer.text(), "A day [1].");
    let sent = talk.sent();
    let asked = sent.last().unwrap()["content"].as_str().unwrap();
    assert!(asked.contains("\n\n[1] notes/login.md:1-3"), "{asked}");
    assert!(asked.contains("\n3\tA token lasts a day."), "{asked}");
}

/// A long argument is visible while the model writes it, and the call follows whole.
#[tokio::test]
async fn arguments_are_shown_while_they_are_written() {
    for provider in PROVIDERS {
        let talk = Talk::of(provider, |options| options.preload = 0).await;
        let arguments = json!({ "text": "word ".repeat(60) }).to_string();
        let pieces: Vec<&str> = arguments.split_inclusive(' ').collect();
        talk.server
            .reply(Reply::stream().tool_call("c1", "kit_echo", &pieces));
        talk.server.reply(Reply::text("Said."));
        let answer = talk.ask("Say it.").await;
        let deltas = answer.data("ToolCallDelta");
        assert!(deltas.len() > 2 && deltas.len() < pieces.len());
        let written: String = deltas
            .iter()
            .map(|delta| delta["arguments"].as_str().unwrap())
            .collect();
        assert_eq!(written, arguments);
        assert!(
            deltas
                .iter()
                .all(|delta| delta["name"] == "kit_echo" && delta["id"] == "c1")
        );
        let call = answer.data("ToolCall")[0];
        assert_eq!(call["arguments"].to_string(), arguments);
    }
}

/// `git diff | dodona ask` with a large diff: the model gets what fits, the user is told, and the
/// rest can be read.
#[tokio::test]
async fn a_message_of_a_megabyte_is_taken_and_cut_to_the_room() {
    let talk = large().await;
    let line = |n: usize| format!("+    let value_{n} = compute({n});\n");
    let diff: String = (0..40_000).map(line).collect();
    assert!(diff.len() > 1 << 20);
    talk.server.reply(Reply::text("A lot of values."));
    let answer = talk.ask(&diff).await;
    assert_eq!(answer.status(), DoneStatus::Complete, "{}", answer.error());
    let sent = talk.sent();
    let sent = sent.last().unwrap()["content"].as_str().unwrap();
    let (shown, note) = sent.rsplit_once('\n').unwrap();
    assert!(diff.starts_with(shown));
    assert!(shown.len() > 60_000, "{}", shown.len());
    let told = answer.data("Notification")[0]["message"].as_str().unwrap();
    let size = format!("the message has {} characters;", diff.len());
    assert!(told.starts_with(&size), "{told}");
    let (_, call) = note.split_once("agent_result ").unwrap();
    let call: Value = serde_json::from_str(call.trim_end_matches(']')).unwrap();
    let rest = talk.call("agent.result", call).await.unwrap();
    let from = usize::try_from(rest["from"].as_u64().unwrap()).unwrap();
    assert!(diff[from..].starts_with(rest["text"].as_str().unwrap()));
}
