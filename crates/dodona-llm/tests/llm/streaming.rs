//! What a provider streams, and when it is passed on.

use dodona_llm::{Finish, ModelEvent, Provider};
use dodona_proto::Usage;
use dodona_testkit::model_server::{Gate, ModelServer, Reply, Step};
use futures_util::StreamExt;
use serde_json::json;

use crate::rig::{BOTH, ask, call, model, question, text};

#[tokio::test]
async fn the_first_piece_is_passed_on_before_the_second_is_sent() {
    for provider in BOTH {
        let (server, gate) = (ModelServer::start().await, Gate::new());
        server.reply(
            Reply::stream()
                .add_text("first")
                .wait(&gate)
                .add_text("second"),
        );
        let mut events = model(&server, provider).stream(question("?"));
        let first = events.next().await.unwrap().unwrap();
        assert_eq!(first, ModelEvent::Text("first".into()));
        gate.open();
        let second = events.next().await.unwrap().unwrap();
        assert_eq!(second, ModelEvent::Text("second".into()));
    }
}

#[tokio::test]
async fn text_reasoning_tools_and_usage_come_whole_and_in_order() {
    for provider in BOTH {
        let server = ModelServer::strict().await;
        server.reply(
            Reply::stream()
                .reasoning("Let me ")
                .reasoning("see.")
                .add_text("I look.")
                .tool_call("call_1", "code_search", &["{\"que", "ry\":\"ä", "\"}"])
                .tool_call("call_2", "vault_list", &[])
                .usage(120, 34, 100),
        );
        let said = ask(&*model(&server, provider), question("?")).await;
        let said = said.into_iter().map(Result::unwrap);
        let (written, said): (Vec<ModelEvent>, Vec<ModelEvent>) =
            said.partition(|event| matches!(event, ModelEvent::ToolArguments { .. }));
        // The arguments are passed on as they are written, too.
        let pieces = ["{\"que", "ry\":\"ä", "\"}"].map(|text| ModelEvent::ToolArguments {
            id: "call_1".into(),
            name: "code_search".into(),
            text: text.into(),
        });
        assert_eq!(written, pieces, "{provider:?}");
        let usage = Usage {
            input_tokens: 120,
            output_tokens: 34,
            cached_input_tokens: 100,
            ..Usage::default()
        };
        let expected = [
            ModelEvent::Reasoning("Let me ".into()),
            ModelEvent::Reasoning("see.".into()),
            ModelEvent::Text("I look.".into()),
            ModelEvent::ToolCall(call("call_1", "code_search", json!({ "query": "ä" }))),
            ModelEvent::ToolCall(call("call_2", "vault_list", json!({}))),
        ];
        assert_eq!(said[..5], expected, "{provider:?}");
        assert!(matches!(said[5], ModelEvent::Opaque(_)), "{provider:?}");
        let end = [
            ModelEvent::Usage(usage),
            ModelEvent::Finished(Finish::ToolCalls),
        ];
        assert_eq!(said[6..], end, "{provider:?}");
    }
}

#[tokio::test]
async fn letters_split_between_pieces_arrive_whole() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        let letters = "Zeiträume, 漢字, 🦀🦀";
        server.reply(Reply::stream().step(Step::ByteByByte).add_text(letters));
        let said = ask(&*model(&server, provider), question("?")).await;
        assert_eq!(text(&said), letters, "{provider:?}");
        assert_eq!(
            said.last(),
            Some(&Ok(ModelEvent::Finished(Finish::Stop))),
            "{provider:?}"
        );
    }
}

#[tokio::test]
async fn every_ending_has_its_name() {
    let cases = [
        (Provider::OpenAi, "stop", Finish::Stop),
        (Provider::OpenAi, "length", Finish::Length),
        (Provider::OpenAi, "content_filter", Finish::Refused),
        (Provider::Anthropic, "end_turn", Finish::Stop),
        (Provider::Anthropic, "max_tokens", Finish::Length),
        (Provider::Anthropic, "refusal", Finish::Refused),
    ];
    for (provider, reason, finish) in cases {
        let server = ModelServer::start().await;
        let stop = Step::StopReason(reason.to_owned());
        server.reply(Reply::text("…").step(stop));
        let said = ask(&*model(&server, provider), question("?")).await;
        assert_eq!(
            said.last(),
            Some(&Ok(ModelEvent::Finished(finish))),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn an_empty_answer_and_one_of_reasoning_alone_are_answers() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(Reply::stream());
        server.reply(Reply::stream().reasoning("Hm."));
        let model = model(&server, provider);
        let finished = Ok(ModelEvent::Finished(Finish::Stop));
        for _ in 0..2 {
            let said = ask(&*model, question("?")).await;
            assert_eq!(text(&said), "");
            assert_eq!(said.last(), Some(&finished), "{provider:?}");
        }
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.reply(Reply::text("begun").step(Step::Hang));
        server.reply(Reply::hang());
        let model = model(&server, provider);
        let mut events = model.stream(question("?"));
        events.next().await.unwrap().unwrap();
        drop(events);
        server.until_abandoned(1).await;
        let mut events = model.stream(question("?"));
        tokio::select! {
            event = events.next() => panic!("no answer was sent, but {event:?} came"),
            () = server.until_requests(2) => {}
        }
        drop(events);
        server.until_abandoned(2).await;
    }
}

#[tokio::test]
async fn a_server_without_the_last_mark_is_understood_where_the_answer_is_complete() {
    let server = ModelServer::start().await;
    let chunk = json!({ "choices": [{ "delta": { "content": "All." }, "finish_reason": "stop" }] });
    server.reply(
        Reply::stream()
            .raw(format!("data: {chunk}\n\n"))
            .step(Step::End),
    );
    let said = ask(&*model(&server, Provider::OpenAi), question("?")).await;
    assert_eq!(text(&said), "All.");
    assert_eq!(said.last(), Some(&Ok(ModelEvent::Finished(Finish::Stop))));
}
