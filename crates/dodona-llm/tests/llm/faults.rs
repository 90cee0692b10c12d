//! Every fault that a provider is known for: a clear end, and what was said before it.

use std::time::Duration;

use dodona_llm::{Finish, ModelConfig, ModelError, ModelEvent, Provider};
use dodona_testkit::model_server::{ModelServer, Reply, Step};
use serde_json::json;

use crate::rig::{BOTH, ask, build, call, config, error, model, question, retries, text};

/// Short enough that a test which waits for it ends soon.
const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    for provider in BOTH {
        for status in [429, 500, 502, 503, 529] {
            let server = ModelServer::start().await;
            server.reply(Reply::status(status).message("try later"));
            server.reply(Reply::text("here"));
            let said = ask(&*model(&server, provider), question("?")).await;
            assert_eq!(text(&said), "here", "{provider:?} {status}");
            let tried = retries(&said);
            assert_eq!(tried.len(), 1, "{status}");
            assert_eq!(tried[0].0, 2);
            assert!(tried[0].2.contains("try later"), "{}", tried[0].2);
        }
    }
}

#[tokio::test]
async fn what_the_provider_asks_to_wait_is_waited() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(Reply::status(429).header("retry-after", "0.03"));
        server.reply(Reply::status(503).header("retry-after-ms", "20"));
        server.reply(Reply::text("here"));
        let said = ask(&*model(&server, provider), question("?")).await;
        let waits: Vec<Duration> = retries(&said)
            .into_iter()
            .map(|(_, wait, _)| wait)
            .collect();
        assert_eq!(
            waits,
            [Duration::from_millis(30), Duration::from_millis(20)]
        );
        assert_eq!(text(&said), "here");
    }
}

#[tokio::test]
async fn nobody_waits_an_hour_and_the_tries_end() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(Reply::status(429).header("retry-after", "3600"));
        let said = ask(&*model(&server, provider), question("?")).await;
        let hour = Some(Duration::from_secs(3600));
        let gave_up = |error: &ModelError| matches!(error, ModelError::Unavailable { retry_after, .. } if *retry_after == hour);
        assert!(gave_up(error(&said)), "{said:?}");

        for _ in 0..3 {
            server.reply(Reply::status(500));
        }
        let said = ask(&*model(&server, provider), question("?")).await;
        assert!(error(&said).is_passing());
        assert_eq!(retries(&said).len(), 2);
        assert_eq!(server.requests().len(), 4);
    }
}

#[tokio::test]
async fn what_no_second_try_would_mend_is_not_tried_again() {
    type Is = fn(&ModelError) -> bool;
    let too_long: Is = |error| matches!(error, ModelError::TooLong { .. });
    let key: Is = |error| matches!(error, ModelError::Key { .. });
    let not_found: Is = |error| matches!(error, ModelError::NotFound { .. });
    let rejected: Is = |error| matches!(error, ModelError::Rejected { .. });
    let overlong = [
        "This model's maximum context length is 8192 tokens.",
        "prompt is too long: 250000 tokens > 200000 maximum",
        "the request exceeds the available context size",
    ];
    let mut cases: Vec<(u16, &str, Is)> = vec![
        (401, "no such key", key),
        (403, "not for you", key),
        (404, "no such model", not_found),
        (413, "too much", too_long),
        (400, "bad temperature", rejected),
        (402, "no credit", rejected),
        (429, "insufficient_quota", rejected),
    ];
    cases.extend(overlong.map(|message| (400, message, too_long)));
    for provider in BOTH {
        for (status, message, is) in &cases {
            let server = ModelServer::start().await;
            server.reply(Reply::status(*status).message(message));
            let said = ask(&*model(&server, provider), question("?")).await;
            assert_eq!(said.len(), 1, "{status} {message}: {said:?}");
            let error = error(&said);
            assert!(is(error), "{status} {message}: {error:?}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_said_to_be() {
    let address = {
        let server = ModelServer::start().await;
        server.url()
    };
    for provider in BOTH {
        let config = ModelConfig {
            base_url: Some(address.clone()),
            retry_delay: Duration::from_millis(1),
            ..ModelConfig::new(provider, "test-model")
        };
        let said = ask(&*build(config), question("?")).await;
        let message = error(&said).to_string();
        assert!(
            message.contains("no connection to `127.0.0.1:"),
            "{message}"
        );
        assert_eq!(retries(&said).len(), 3);
    }
}

#[tokio::test]
async fn a_provider_that_never_begins_is_given_up() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        for reply in [
            Reply::hang(),
            Reply::stream().step(Step::Hang),
            Reply::hang(),
        ] {
            server.reply(reply);
        }
        let model = build(ModelConfig {
            first_token_timeout: SHORT,
            ..config(&server, provider)
        });
        let said = ask(&*model, question("?")).await;
        let message = error(&said).to_string();
        assert!(message.contains("has not begun to answer"), "{message}");
        assert!(error(&said).is_passing());
        assert_eq!(server.requests().len(), 3);
    }
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up_and_not_asked_again() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(
            Reply::stream()
                .usage(7, 1, 0)
                .add_text("begun")
                .step(Step::Hang),
        );
        let model = build(ModelConfig {
            idle_timeout: SHORT,
            ..config(&server, provider)
        });
        let said = ask(&*model, question("?")).await;
        assert_eq!(text(&said), "begun");
        let message = error(&said).to_string();
        assert!(message.contains("silent"), "{message}");
        assert!(matches!(error(&said), ModelError::BrokenOff { .. }));
        assert_eq!(server.requests().len(), 1);
        // What it took so far is known with one of the two protocols.
        let counted = said
            .iter()
            .any(|event| matches!(event, Ok(ModelEvent::Usage(usage)) if usage.input_tokens == 7));
        assert_eq!(counted, provider == Provider::Anthropic);
    }
}

#[tokio::test]
async fn a_provider_that_only_keeps_the_connection_open_is_silent() {
    for (provider, alive) in [
        (Provider::OpenAi, ": processing\n\n"),
        (Provider::Anthropic, ": processing\n\n"),
        (
            Provider::Anthropic,
            "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        ),
    ] {
        let server = ModelServer::start().await;
        let mut reply = Reply::text("begun");
        for _ in 0..20 {
            reply = reply
                .step(Step::Delay(SHORT / 2))
                .step(Step::Raw(alive.as_bytes().to_vec()));
        }
        // Long after anybody should have waited.
        server.reply(reply.add_text(" and ended"));
        let model = build(ModelConfig {
            idle_timeout: SHORT,
            ..config(&server, provider)
        });
        let said = ask(&*model, question("?")).await;
        assert_eq!(text(&said), "begun", "{alive:?}");
        let message = error(&said).to_string();
        assert!(message.contains("silent"), "{message}");
    }
}

#[tokio::test]
async fn a_truncated_answer_is_never_taken_for_a_whole_one() {
    for provider in BOTH {
        for end in [Step::Cut, Step::End] {
            let server = ModelServer::start().await;
            server.reply(Reply::text("half of").step(end.clone()));
            let said = ask(&*model(&server, provider), question("?")).await;
            assert_eq!(text(&said), "half of");
            let is_broken = matches!(error(&said), ModelError::BrokenOff { .. });
            assert!(is_broken, "{provider:?} {end:?}: {said:?}");
            assert_eq!(server.requests().len(), 1);

            // Before anything was said there is no harm in another try.
            server.reply(Reply::stream().step(end.clone()));
            server.reply(Reply::text("whole"));
            let said = ask(&*model(&server, provider), question("?")).await;
            assert_eq!(text(&said), "whole", "{provider:?} {end:?}");
        }
    }
}

#[tokio::test]
async fn a_tool_call_that_was_cut_off_is_not_passed_on() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        let begun = match provider {
            Provider::Anthropic => {
                let start = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "a", "name": "vault_delete", "input": {} } });
                let delta = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "{}" } });
                format!("data: {start}\n\ndata: {delta}\n\n")
            }
            _ => {
                let call = json!({ "index": 0, "id": "a", "function": { "name": "vault_delete", "arguments": "{}" } });
                let chunk = json!({ "choices": [{ "delta": { "tool_calls": [call] } }] });
                format!("data: {chunk}\n\n")
            }
        };
        for _ in 0..3 {
            server.reply(Reply::stream().raw(begun.clone()).step(Step::Cut));
        }
        let said = ask(&*model(&server, provider), question("?")).await;
        let called = said
            .iter()
            .any(|event| matches!(event, Ok(ModelEvent::ToolCall(_))));
        assert!(!called, "{said:?}");
        assert!(error(&said).is_passing());
    }
}

#[tokio::test]
async fn what_cannot_be_read_ends_the_answer() {
    let garbage: [&[u8]; 3] = [
        b"data: {\"choices\": [\n\n",
        b"data: \xff\xfe\n\n",
        b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}, \"choices\": 3}\n\n",
    ];
    for provider in BOTH {
        for bytes in garbage {
            let server = ModelServer::start().await;
            server.reply(Reply::text("so far").raw(bytes));
            let said = ask(&*model(&server, provider), question("?")).await;
            assert_eq!(text(&said), "so far");
            let message = error(&said).to_string();
            assert!(message.contains("cannot be read"), "{message}");
            assert_eq!(server.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn an_error_within_a_stream_is_what_it_says() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(Reply::stream().error("overloaded_error", "Overloaded"));
        server.reply(Reply::text("begun").error("overloaded_error", "Overloaded"));
        let model = model(&server, provider);
        let said = ask(&*model, question("?")).await;
        assert!(retries(&said)[0].2.contains("Overloaded"));
        assert_eq!(text(&said), "begun");
        assert!(matches!(error(&said), ModelError::BrokenOff { .. }));
        assert_eq!(server.requests().len(), 2);

        server.reply(Reply::stream().error("authentication_error", "no"));
        let said = ask(&*model, question("?")).await;
        assert!(matches!(error(&said), ModelError::Key { .. }), "{said:?}");
    }
}

/// The protocol with numbered blocks shows that something came twice; the other cannot.
#[tokio::test]
async fn repeated_events_do_no_harm_where_they_can_be_seen() {
    let server = ModelServer::start().await;
    server.reply(
        Reply::stream()
            .tool_call("a", "code_search", &["{}"])
            .step(Step::Repeat),
    );
    let said = ask(&*model(&server, Provider::Anthropic), question("?")).await;
    assert!(matches!(error(&said), ModelError::BrokenOff { .. }));

    let start =
        json!({ "index": 0, "id": "a", "function": { "name": "code_search", "arguments": "" } });
    let chunk = json!({ "choices": [{ "delta": { "tool_calls": [start] } }] });
    let twice = format!("data: {chunk}\n\ndata: {chunk}\n\n");
    let last = json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] });
    let last = format!("data: {last}\n\ndata: {last}\n\ndata: [DONE]\n\ndata: [DONE]\n\n");
    server.reply(Reply::stream().raw(twice + &last).step(Step::End));
    let said = ask(&*model(&server, Provider::OpenAi), question("?")).await;
    let expected = [
        Ok(ModelEvent::ToolCall(call("a", "code_search", json!({})))),
        Ok(ModelEvent::Finished(Finish::ToolCalls)),
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn broken_arguments_are_passed_on_as_they_came() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(Reply::stream().tool_call("a", "code_search", &["{\"query\": ", "oops"]));
        let said = ask(&*model(&server, provider), question("?")).await;
        let broken = call("a", "code_search", json!("{\"query\": oops"));
        assert!(said.contains(&Ok(ModelEvent::ToolCall(broken))), "{said:?}");
        let finished = Ok(ModelEvent::Finished(Finish::ToolCalls));
        assert_eq!(said.last(), Some(&finished));
    }
}

#[tokio::test]
async fn a_second_choice_is_ignored() {
    let server = ModelServer::start().await;
    let first = json!({ "choices": [
        { "index": 1, "delta": { "content": "OTHER" } },
        { "index": 0, "delta": { "content": "Hello " } },
    ] });
    let call =
        json!({ "index": 0, "id": "a", "function": { "name": "vault_delete", "arguments": "{}" } });
    let second = json!({ "choices": [{ "index": 1, "delta": { "tool_calls": [call] } }] });
    let ended = json!({ "choices": [{ "index": 1, "delta": {}, "finish_reason": "length" }] });
    // A server that sends no index has one answer.
    let third = json!({ "choices": [{ "delta": { "content": "world" } }] });
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let chunks = [first, second, ended, third, last].map(|chunk| format!("data: {chunk}\n\n"));
    let all = chunks.concat() + "data: [DONE]\n\n";
    server.reply(Reply::stream().raw(all).step(Step::End));
    let said = ask(&*model(&server, Provider::OpenAi), question("?")).await;
    assert_eq!(text(&said), "Hello world");
    assert_eq!(said.last(), Some(&Ok(ModelEvent::Finished(Finish::Stop))));
    let called = |event: &Result<ModelEvent, _>| matches!(event, Ok(ModelEvent::ToolCall(_)));
    assert!(!said.iter().any(called), "{said:?}");
}

#[tokio::test]
async fn invalid_usage_does_not_fail_an_answer() {
    let wrong = [
        json!({ "prompt_tokens": -5, "completion_tokens": 7, "input_tokens": -5, "output_tokens": 7 }),
        json!({ "prompt_tokens": 1e300, "completion_tokens": 7, "input_tokens": "x", "output_tokens": 7 }),
        json!({
            "prompt_tokens": u64::MAX, "completion_tokens": 7, "prompt_tokens_details": { "cached_tokens": -1 },
            "input_tokens": null, "output_tokens": 7, "cache_read_input_tokens": -1,
        }),
        json!("many"),
        json!([1, 2]),
    ];
    for provider in BOTH {
        for usage in &wrong {
            let server = ModelServer::start().await;
            let chunk = match provider {
                Provider::Anthropic => {
                    json!({ "type": "message_delta", "delta": {}, "usage": usage })
                }
                _ => json!({ "choices": [], "usage": usage }),
            };
            server.reply(Reply::text("whole").raw(format!("data: {chunk}\n\n")));
            let said = ask(&*model(&server, provider), question("?")).await;
            assert_eq!(text(&said), "whole", "{provider:?} {usage}");
            let finished = Ok(ModelEvent::Finished(Finish::Stop));
            assert_eq!(said.last(), Some(&finished), "{provider:?} {usage}");
        }
    }
    // The valid numbers count.
    let server = ModelServer::start().await;
    let answer = json!({ "choices": [{ "delta": { "content": "x" }, "finish_reason": "stop" }] });
    let counted = json!({ "choices": [], "usage": wrong[0] });
    let all = format!("data: {answer}\n\ndata: {counted}\n\ndata: [DONE]\n\n");
    server.reply(Reply::stream().raw(all).step(Step::End));
    let said = ask(&*model(&server, Provider::OpenAi), question("?")).await;
    let counted = said.iter().find_map(|event| match event {
        Ok(ModelEvent::Usage(usage)) => Some((usage.input_tokens, usage.output_tokens)),
        _ => None,
    });
    assert_eq!(counted, Some((0, 7)), "{said:?}");
}

#[tokio::test]
async fn a_bomb_is_not_unpacked() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(Reply::gzip_bomb(256 << 20));
        let said = ask(&*model(&server, provider), question("?")).await;
        let message = error(&said).to_string();
        assert!(message.contains("compressed"), "{message}");
        assert_eq!(server.last_request().header("accept-encoding"), "");
    }
}

#[tokio::test]
async fn answers_are_bounded() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        let mut reply = Reply::stream();
        for _ in 0..11 {
            reply = reply.add_text(&"a".repeat(1 << 20));
        }
        server.reply(reply);
        let said = ask(&*model(&server, provider), question("?")).await;
        let limit = 10 << 20;
        assert_eq!(error(&said), &ModelError::TooLarge { limit });
        assert!(text(&said).len() as u64 <= limit);

        // One event that never ends is bounded too, and so is an error.
        let endless = Reply::stream().raw(vec![b'a'; 11 << 20]);
        server.reply(endless);
        let said = ask(&*model(&server, provider), question("?")).await;
        assert_eq!(error(&said), &ModelError::TooLarge { limit });
        server.reply(Reply::status(400).message(&"b".repeat(11 << 20)));
        let said = ask(&*model(&server, provider), question("?")).await;
        assert!(error(&said).to_string().len() < 2000);
    }
}

#[tokio::test]
async fn json_that_is_not_an_answer_is_refused() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(Reply::status(200).json(&json!({ "choices": [] })));
        let said = ask(&*model(&server, provider), question("?")).await;
        assert!(
            error(&said)
                .to_string()
                .contains("JSON that is not an answer")
        );
        server
            .reply(Reply::status(200).json(&json!({ "error": { "code": 401, "message": "no" } })));
        let said = ask(&*model(&server, provider), question("?")).await;
        assert!(matches!(error(&said), ModelError::Key { .. }), "{said:?}");
    }
}
