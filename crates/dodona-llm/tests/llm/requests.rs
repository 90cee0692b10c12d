//! The exact requests that a provider sees.

use dodona_llm::{ModelConfig, ModelEvent, ModelOptions, ModelRequest, Provider, ReasoningEffort};
use dodona_proto::Message;
use dodona_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::rig::{
    BOTH, ask, assistant, build, call, config, error, model, question, result, text, tool, user,
};

/// A conversation of every kind of message.
fn conversation() -> ModelRequest {
    ModelRequest {
        system: "Be brief.".to_owned(),
        messages: vec![
            user("How does login work?"),
            assistant(
                "I look.",
                vec![
                    call("call_1", "code_search", json!({ "z": "login", "a": 1 })),
                    call("functions.read:2", "code_read", json!("{broken")),
                ],
            ),
            result("call_1", "{\"found\":1}"),
            result("functions.read:2", "{\"error\":\"no JSON\"}"),
            user("Go on."),
        ],
        tools: vec![tool("code_search"), tool("code_read")],
        options: ModelOptions::default(),
    }
}

#[tokio::test]
async fn chat_completions_see_this() {
    let server = ModelServer::strict().await;
    server.reply(Reply::text("ok"));
    let said = ask(&*model(&server, Provider::OpenAi), conversation()).await;
    assert_eq!(text(&said), "ok", "{said:?}");
    let seen = server.last_request();
    assert_eq!(seen.path, "/v1/chat/completions");
    assert_eq!(seen.header("content-type"), "application/json");
    let function = |name: &str| json!({ "type": "function", "function": { "name": name, "description": format!("Does {name}."), "parameters": tool(name).parameters } });
    let called = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let expected = json!({
        "model": "test-model",
        "tools": [function("code_search"), function("code_read")],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "How does login work?" },
            { "role": "assistant", "content": "I look.", "tool_calls": [
                called("call_1", "code_search", "{\"z\":\"login\",\"a\":1}"),
                called("functions.read:2", "code_read", "{\"not_an_object\":\"{broken\"}"),
            ] },
            { "role": "tool", "tool_call_id": "call_1", "content": "{\"found\":1}" },
            { "role": "tool", "tool_call_id": "functions.read:2", "content": "{\"error\":\"no JSON\"}" },
            { "role": "user", "content": "Go on." },
        ],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    assert_eq!(seen.bytes, expected.to_string());
}

#[tokio::test]
async fn messages_see_this() {
    let server = ModelServer::strict().await;
    server.reply(Reply::text("ok"));
    let said = ask(&*model(&server, Provider::Anthropic), conversation()).await;
    assert_eq!(text(&said), "ok", "{said:?}");
    let seen = server.last_request();
    assert_eq!(seen.path, "/v1/messages");
    assert_eq!(seen.header("anthropic-version"), "2023-06-01");
    let offered = |name: &str| json!({ "name": name, "description": format!("Does {name}."), "input_schema": tool(name).parameters });
    let foreign = seen.body["messages"][1]["content"][2]["id"].clone();
    assert!(
        foreign.as_str().unwrap().starts_with("functions_read_2-"),
        "{foreign}"
    );
    let expected = json!({
        "model": "test-model",
        "max_tokens": 8192,
        "tools": [offered("code_search"), offered("code_read")],
        "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "How does login work?" }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "call_1", "name": "code_search", "input": { "z": "login", "a": 1 } },
                { "type": "tool_use", "id": foreign, "name": "code_read", "input": { "not_an_object": "{broken" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "call_1", "content": "{\"found\":1}" },
                { "type": "tool_result", "tool_use_id": foreign, "content": "{\"error\":\"no JSON\"}" },
                { "type": "text", "text": "Go on." },
            ] },
        ],
        "cache_control": { "type": "ephemeral" },
        "stream": true,
    });
    assert_eq!(seen.bytes, expected.to_string());
}

#[tokio::test]
async fn options_of_the_request_come_before_those_of_the_configuration() {
    let asked = ModelRequest {
        options: ModelOptions {
            max_output_tokens: Some(50),
            ..ModelOptions::default()
        },
        ..question("?")
    };
    for provider in BOTH {
        let server = ModelServer::start().await;
        let model = build(ModelConfig {
            max_output_tokens: Some(9000),
            temperature: Some(0.5),
            reasoning: Some(ReasoningEffort::Low),
            ..config(&server, provider)
        });
        for request in [question("?"), asked.clone()] {
            server.reply(Reply::text("ok"));
            ask(&*model, request).await;
        }
        let requests = server.requests();
        let limits = requests.iter().map(|seen| seen.body["max_tokens"].as_u64());
        assert_eq!(limits.collect::<Vec<_>>(), [Some(9000), Some(50)]);
        let body = &requests[0].body;
        assert_eq!(body["temperature"], 0.5);
        match provider {
            Provider::Anthropic => {
                assert_eq!(body["thinking"], json!({ "type": "adaptive" }));
                assert_eq!(body["output_config"], json!({ "effort": "low" }));
            }
            _ => assert_eq!(body["reasoning_effort"], "low"),
        }
    }
}

/// The part of a request that a cache must recognise: tools, system and the first messages.
fn prefix(body: &Value, messages: usize) -> String {
    let all = body["messages"].as_array().unwrap();
    json!([
        body["model"],
        body["tools"],
        body["system"],
        all[..messages]
    ])
    .to_string()
}

#[tokio::test]
async fn what_was_sent_is_sent_the_same_way_again_over_ten_turns() {
    for provider in BOTH {
        let server = ModelServer::strict().await;
        let model = model(&server, provider);
        let mut request = ModelRequest {
            messages: vec![user("Begin.")],
            ..conversation()
        };
        let mut earlier: Vec<Value> = Vec::new();
        for turn in 0..10 {
            let id = format!("call_{turn}");
            server.reply(
                Reply::stream()
                    .reasoning("Hm, ")
                    .add_text(&format!("turn {turn}"))
                    .tool_call(&id, "code_search", &["{\"z\":\"x\",\"a\":2}"]),
            );
            let said = ask(&*model, request.clone()).await;
            request.messages.push(answer(&said));
            request.messages.push(result(&id, "{}"));
            let body = server.last_request().body;
            for before in &earlier {
                let sent = before["messages"].as_array().unwrap().len();
                assert_eq!(prefix(before, sent), prefix(&body, sent), "{provider:?}");
            }
            earlier.push(body);
        }
    }
}

/// What an agent keeps of an answer.
fn answer(said: &crate::rig::Said) -> Message {
    let (mut tool_calls, mut opaque) = (Vec::new(), None);
    for event in said {
        match event.as_ref().unwrap() {
            ModelEvent::ToolCall(call) => tool_calls.push(call.clone()),
            ModelEvent::Opaque(value) => opaque = Some(value.clone()),
            _ => {}
        }
    }
    Message::Assistant {
        content: text(said),
        tool_calls,
        opaque,
    }
}

#[tokio::test]
async fn signed_reasoning_goes_back_where_it_was() {
    let server = ModelServer::strict().await;
    server.reply(
        Reply::stream()
            .reasoning("first")
            .add_text("one")
            .reasoning("second")
            .tool_call("a", "code_search", &["{}"]),
    );
    server.reply(Reply::text("done"));
    server.reply(Reply::text("done"));
    let model = model(&server, Provider::Anthropic);
    let mut request = question("?");
    let said = ask(&*model, request.clone()).await;
    request.messages.push(answer(&said));
    request.messages.push(result("a", "{}"));
    ask(&*model, request.clone()).await;
    let expected = json!([
        { "type": "thinking", "thinking": "first", "signature": "signature-0" },
        { "type": "text", "text": "one" },
        { "type": "thinking", "thinking": "second", "signature": "signature-2" },
        { "type": "tool_use", "id": "a", "name": "code_search", "input": {} },
    ]);
    assert_eq!(
        server.last_request().body["messages"][1]["content"],
        expected
    );

    // Another model gets what was said, and not what was thought.
    let other = build(ModelConfig {
        model: Some("other-model".to_owned()),
        ..config(&server, Provider::Anthropic)
    });
    ask(&*other, request).await;
    let sent = &server.last_request().body["messages"][1]["content"];
    assert_eq!(*sent, json!([expected[1], expected[3]]));
}

#[tokio::test]
async fn reasoning_goes_back_with_tool_calls_to_the_model_that_had_it() {
    let server = ModelServer::strict().await;
    server.reply(
        Reply::stream()
            .reasoning("Let me ")
            .reasoning("see.")
            .tool_call("a", "code_search", &["{}"]),
    );
    server.reply(Reply::text("done"));
    let model = model(&server, Provider::OpenAi);
    let mut request = question("?");
    let said = ask(&*model, request.clone()).await;
    request.messages.push(answer(&said));
    request.messages.push(result("a", "{}"));
    ask(&*model, request).await;
    let sent = &server.last_request().body["messages"][1];
    assert_eq!(sent["reasoning_content"], "Let me see.");
    assert_eq!(sent["content"], Value::Null);
}

#[tokio::test]
async fn empty_answers_and_foreign_ids_do_not_make_a_conversation_unusable() {
    for provider in BOTH {
        let server = ModelServer::strict().await;
        server.reply(Reply::text("ok"));
        let request = ModelRequest {
            messages: vec![
                user("one"),
                assistant("", Vec::new()),
                user("two"),
                assistant("", vec![call("a", "code_search", Value::Null)]),
                result("a", ""),
            ],
            ..ModelRequest::default()
        };
        let said = ask(&*model(&server, provider), request).await;
        assert_eq!(text(&said), "ok", "{said:?}");
    }
}

#[tokio::test]
async fn a_conversation_that_no_provider_takes_is_refused_with_its_words() {
    for provider in BOTH {
        let server = ModelServer::strict().await;
        let request = ModelRequest {
            messages: vec![
                user("one"),
                assistant("", vec![call("a", "code_search", json!({}))]),
                user("two"),
            ],
            ..ModelRequest::default()
        };
        let said = ask(&*model(&server, provider), request).await;
        let message = error(&said).to_string();
        assert!(message.contains("\"a\""), "{message}");
        assert_eq!(server.requests().len(), 1);
    }
}
