//! The Responses protocol of OpenAI.

use dodona_llm::{
    Finish, ModelConfig, ModelError, ModelEvent, ModelOptions, ModelRequest, Provider,
    ReasoningEffort,
};
use dodona_proto::{Message, Usage};
use dodona_testkit::model_server::{ModelServer, Reply, Step};
use serde_json::{Value, json};

use crate::rig::{ask, assistant, build, config, error, model, question, text, tool, user};

const RESPONSES: Provider = Provider::OpenAiResponses;

#[tokio::test]
async fn text_reasoning_and_usage_arrive_as_events() {
    let server = ModelServer::strict().await;
    server.reply(
        Reply::stream()
            .reasoning("Let me ")
            .reasoning("think.")
            .add_text("Hel")
            .add_text("lo")
            .usage(100, 7, 60)
            .step(Step::ByteByByte),
    );
    let said = ask(&*model(&server, RESPONSES), question("Hi")).await;
    let said: Vec<ModelEvent> = said.into_iter().map(Result::unwrap).collect();
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 7,
        cached_input_tokens: 60,
        ..Usage::default()
    };
    assert_eq!(
        said,
        [
            ModelEvent::Reasoning("Let me ".to_owned()),
            ModelEvent::Reasoning("think.".to_owned()),
            ModelEvent::Text("Hel".to_owned()),
            ModelEvent::Text("lo".to_owned()),
            ModelEvent::Usage(usage),
            ModelEvent::Finished(Finish::Stop),
        ]
    );
    assert_eq!(server.last_request().path, "/v1/responses");
    assert_eq!(
        server.last_request().header("authorization"),
        "Bearer sk-very-secret"
    );
}

#[tokio::test]
async fn tool_calls_go_out_and_back_with_their_reasoning() {
    let server = ModelServer::strict().await;
    server.reply(
        Reply::stream()
            .reasoning("A file.")
            .add_text("Looking.")
            .tool_call("c1", "read", &[r#"{"pa"#, r#"th":"a.rs"}"#])
            .tool_call("c2", "read", &[r#"{"path":"b.rs"}"#]),
    );
    let tested = build(ModelConfig {
        max_output_tokens: Some(900),
        reasoning: Some(ReasoningEffort::High),
        ..config(&server, RESPONSES)
    });
    let first = ModelRequest {
        system: "Be brief.".to_owned(),
        tools: vec![tool("read")],
        ..question("What is in a.rs?")
    };
    let said = ask(&*tested, first.clone()).await;
    let mut calls = Vec::new();
    let mut opaque = None;
    for event in &said {
        match event.as_ref().unwrap() {
            ModelEvent::ToolCall(call) => calls.push(call.clone()),
            ModelEvent::Opaque(value) => opaque = Some(value.clone()),
            ModelEvent::Finished(finish) => assert_eq!(*finish, Finish::ToolCalls),
            _ => {}
        }
    }
    let arguments: Vec<&Value> = calls.iter().map(|call| &call.arguments).collect();
    assert_eq!(
        arguments,
        [&json!({ "path": "a.rs" }), &json!({ "path": "b.rs" })]
    );
    server.reply(Reply::text("Two files."));
    let Message::Assistant {
        content,
        tool_calls,
        ..
    } = assistant("Looking.", calls)
    else {
        unreachable!()
    };
    let result = |id: &str| Message::Tool {
        tool_call_id: id.to_owned(),
        content: "fn main() {}".to_owned(),
    };
    let second = ModelRequest {
        messages: vec![
            user("What is in a.rs?"),
            Message::Assistant {
                content,
                tool_calls,
                opaque,
            },
            result("c1"),
            result("c2"),
        ],
        ..first
    };
    assert_eq!(text(&ask(&*tested, second).await), "Two files.");
    let body = server.last_request().body;
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(body["max_output_tokens"], 900);
    assert_eq!(body["reasoning"]["effort"], "high");
    assert_eq!(
        (&body["store"], &body["stream"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(body["tools"][0]["name"], "read");
    let input = body["input"].as_array().unwrap();
    let kinds: Vec<&str> = input
        .iter()
        .map(|item| item["type"].as_str().or(item["role"].as_str()).unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "user",
            "reasoning",
            "assistant",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output"
        ]
    );
    assert_eq!(input[1]["encrypted_content"], "c2VjcmV0");
    // What was sent first is sent again, byte for byte.
    let requests = server.requests();
    let end = requests[0]
        .bytes
        .windows(9)
        .position(|part| part == b"],\"stream")
        .unwrap();
    assert_eq!(requests[0].bytes[..end], requests[1].bytes[..end]);
}

#[tokio::test]
async fn a_request_without_tools_keeps_them_and_forbids_their_use() {
    let server = ModelServer::strict().await;
    server.reply(Reply::text("Fine."));
    let request = ModelRequest {
        tools: vec![tool("read")],
        options: ModelOptions {
            without_tools: true,
            ..ModelOptions::default()
        },
        ..question("?")
    };
    ask(&*model(&server, RESPONSES), request).await;
    assert_eq!(server.last_request().body["tool_choice"], "none");
}

#[tokio::test]
async fn ends_and_errors_are_told_apart() {
    let server = ModelServer::strict().await;
    let tested = model(&server, RESPONSES);
    for (reason, expected) in [
        ("max_output_tokens", Finish::Length),
        ("content_filter", Finish::Refused),
    ] {
        server.reply(Reply::text("As far").step(Step::StopReason(reason.to_owned())));
        let said = ask(&*tested, question("?")).await;
        assert_eq!(said.last(), Some(&Ok(ModelEvent::Finished(expected))));
    }
    server.reply(Reply::stream().error("invalid_request_error", "the input is wrong"));
    let said = ask(&*tested, question("?")).await;
    assert!(
        error(&said).to_string().contains("the input is wrong"),
        "{said:?}"
    );
    server.reply(Reply::text("It breaks").step(Step::End));
    let said = ask(&*tested, question("?")).await;
    assert!(
        matches!(error(&said), ModelError::BrokenOff { .. }),
        "{said:?}"
    );
    server.reply(Reply::status(401));
    let said = ask(&*tested, question("?")).await;
    assert!(matches!(error(&said), ModelError::Key { .. }), "{said:?}");
}

/// One answer in each protocol, as a server sends it that does not stream.
fn whole(provider: Provider) -> Value {
    match provider {
        Provider::Anthropic => json!({
            "type": "message", "role": "assistant", "stop_reason": "tool_use",
            "content": [
                { "type": "text", "text": "Whole." },
                { "type": "tool_use", "id": "c1", "name": "read", "input": { "n": 1 } },
            ],
            "usage": { "input_tokens": 10, "output_tokens": 3 },
        }),
        Provider::OpenAi => json!({
            "id": "x", "choices": [
                { "index": 0, "finish_reason": "tool_calls", "message": {
                    "role": "assistant", "content": "Whole.", "tool_calls": [
                        { "id": "c1", "type": "function",
                          "function": { "name": "read", "arguments": "{\"n\":1}" } }] } },
                { "index": 1, "finish_reason": "stop",
                  "message": { "role": "assistant", "content": "OTHER" } },
            ],
            "usage": { "prompt_tokens": 10, "completion_tokens": 3 },
        }),
        _ => json!({
            "id": "x", "object": "response", "status": "completed", "error": null, "output": [
                { "type": "message", "id": "m", "role": "assistant",
                  "content": [{ "type": "output_text", "text": "Whole." }] },
                { "type": "function_call", "id": "f", "call_id": "c1", "name": "read",
                  "arguments": "{\"n\":1}" },
            ],
            "usage": { "input_tokens": 10, "output_tokens": 3 },
        }),
    }
}

#[tokio::test]
async fn an_answer_that_is_sent_whole_is_read() {
    for provider in [Provider::OpenAi, Provider::Anthropic, RESPONSES] {
        let server = ModelServer::start().await;
        server.reply(Reply::status(200).json(&whole(provider)));
        let said = ask(&*model(&server, provider), question("?")).await;
        assert_eq!(text(&said), "Whole.", "{provider:?}");
        let called = said.iter().any(|event| {
            matches!(event, Ok(ModelEvent::ToolCall(call)) if call.arguments == json!({ "n": 1 }))
        });
        assert!(called, "{provider:?}: {said:?}");
        let counted = said.iter().find_map(|event| match event {
            Ok(ModelEvent::Usage(usage)) => Some((usage.input_tokens, usage.output_tokens)),
            _ => None,
        });
        assert_eq!(counted, Some((10, 3)), "{provider:?}");
        assert_eq!(
            said.last(),
            Some(&Ok(ModelEvent::Finished(Finish::ToolCalls)))
        );
    }
}

#[tokio::test]
async fn an_html_page_is_refused_at_once() {
    for provider in [Provider::OpenAi, Provider::Anthropic, RESPONSES] {
        let server = ModelServer::start().await;
        let page = Reply::stream()
            .header("content-type", "text/html; charset=utf-8")
            .raw("<!doctype html><title>Sign in</title>");
        server.reply(page);
        let said = ask(&*model(&server, provider), question("?")).await;
        let message = error(&said).to_string();
        assert!(
            message.contains("an HTML page instead of an answer"),
            "{message}"
        );
        assert_eq!(server.requests().len(), 1, "{provider:?} does not retry");
        assert_eq!(said.len(), 1, "{said:?}");
    }
}
