//! What a caller gets wrong is told so that it can be mended.

use dodona_hub::Request;
use dodona_plugin::{Method, Params};
use dodona_proto::{CallError, ErrorCode, StreamId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Object, Rig, alice, object, spec, unary};

async fn refused(rig: &Rig, method: &str, params: Value) -> CallError {
    // The same before a stream exists as for a plain call.
    let request = Request::new(alice(), method, params.clone());
    let opened = rig.hub.open(request).await.map(drop).unwrap_err();
    let called = rig.call(method, params).await.unwrap_err();
    assert_eq!(opened, called);
    called
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_method_comes_with_the_one_that_was_meant() {
    let rig = Rig::new().await;
    let cases = [
        ("echo.sya", "did you mean `echo.say`?"),
        ("ecko.count", "did you mean `echo.count`?"),
        ("hub.method", "did you mean `hub.methods`?"),
        (
            "nothing.like_it",
            "run `dodona methods` to list all methods",
        ),
    ];
    for (method, hint) in cases {
        let error = refused(&rig, method, json!({})).await;
        assert_eq!(error.code, ErrorCode::MethodNotFound);
        assert_eq!(error.message, format!("method `{method}` not found"));
        assert_eq!(error.hint_text(), Some(hint));
    }
    let long = "x".repeat(1 << 20);
    for method in [
        "",
        "echo",
        "echo.",
        ".say",
        "Echo.Say",
        "echo.say.more",
        "../etc",
        &long,
    ] {
        let error = refused(&rig, method, json!({})).await;
        assert_eq!(error.code, ErrorCode::MethodNotFound, "{method:.20}");
        assert!(error.message.len() < 300);
        assert!(error.hint_text().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_parameters_name_the_field_and_what_was_expected() {
    let rig = Rig::new().await;
    let error = refused(&rig, "echo.count", json!({"to": "five", "delay_ms": -1})).await;
    assert_eq!(error.code, ErrorCode::InvalidParams);
    assert!(!error.retryable);
    let problems = error.data_value().unwrap()["problems"]
        .as_array()
        .unwrap()
        .clone();
    let fields: Vec<&str> = problems
        .iter()
        .map(|one| one["field"].as_str().unwrap())
        .collect();
    assert!(
        fields.contains(&"to") && fields.contains(&"delay_ms"),
        "{error:?}"
    );
    assert!(
        error
            .message
            .contains("`to`: \"five\" is not of type \"integer\""),
        "{error}"
    );
    assert_eq!(
        error.hint_text(),
        Some("the method takes to*, delay_ms (* required)")
    );
    let error = refused(&rig, "echo.count", json!({"to": 20_000_000})).await;
    assert!(
        error.message.contains("`to`") && error.message.contains("10000000"),
        "{error}"
    );
    let error = refused(&rig, "echo.say", json!({})).await;
    assert!(
        error.message.contains("\"text\" is a required property"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_parameter_comes_with_the_one_that_was_meant() {
    let rig = Rig::new().await;
    let error = refused(&rig, "echo.count", json!({"to": 3, "delay_mss": 5})).await;
    assert_eq!(error.code, ErrorCode::InvalidParams);
    assert!(error.message.contains("delay_mss"), "{error}");
    assert_eq!(
        error.hint_text(),
        Some("did you mean `delay_ms` instead of `delay_mss`?")
    );
    let error = refused(&rig, "hub.health", json!({"x": 1})).await;
    assert_eq!(error.hint_text(), Some("the method takes no parameters"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_parameters_are_an_empty_object_and_anything_else_is_none() {
    let rig = Rig::new().await;
    rig.call("hub.health", Value::Null).await.unwrap();
    rig.call("echo.stats", json!({})).await.unwrap();
    for params in [json!([]), json!([1]), json!("text"), json!(7), json!(true)] {
        let error = refused(&rig, "echo.say", params.clone()).await;
        assert_eq!(error.code, ErrorCode::InvalidParams, "{params}");
        assert!(
            error.message.contains("is not of type \"object\""),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_and_large_parameters_are_refused_before_they_are_looked_at() {
    let any = unary(spec("probe.any"), |_, p: Object| async { Ok(p) });
    let rig = Rig::probe(vec![any]).await;
    let deep = |levels: usize| {
        let leaf = json!(1);
        json!({"v": (0..levels).fold(leaf, |value, _| Value::Array(vec![value]))})
    };
    rig.call("probe.any", deep(62)).await.unwrap();
    for params in [deep(63), deep(1_000)] {
        let error = refused(&rig, "probe.any", params).await;
        assert_eq!(error.code, ErrorCode::TooDeep);
    }
    for params in [
        json!({"v": "x".repeat(5 << 20)}),
        json!({"v": vec![0; 1 << 20]}),
        json!({"x".repeat(5 << 20): 1}),
    ] {
        let error = refused(&rig, "probe.any", params).await;
        assert_eq!(error.code, ErrorCode::TooLarge);
        assert!(error.message.contains("4194304"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_does_not_repeat_a_large_value() {
    let rig = Rig::new().await;
    let error = refused(&rig, "echo.count", json!({"to": "x".repeat(1 << 20)})).await;
    assert!(error.message.len() < 1_000, "{} bytes", error.message.len());
    assert!(
        error.message.contains("`to`") && error.message.contains("integer"),
        "{error}"
    );
    let many: Object = (0..10_000)
        .map(|n| (format!("field_{n}"), json!(n)))
        .collect();
    let error = refused(&rig, "echo.say", Value::Object(many)).await;
    assert!(error.message.len() < 3_000, "{} bytes", error.message.len());
    assert!(error.data_value().unwrap().to_string().len() < 5_000);
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Inner {
    count: u8,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Outer {
    list: Vec<Inner>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_inside_others_is_named_with_its_way() {
    let typed = Method::unary(&spec("probe.typed"), |_, p: Outer| async {
        Ok::<_, CallError>(p)
    });
    let rig = Rig::probe(vec![typed.unwrap()]).await;
    let params = json!({"list": [{"count": 1}, {"count": "two"}]});
    let error = refused(&rig, "probe.typed", params).await;
    assert!(error.message.contains("`list.1.count`"), "{error}");
    let error = refused(&rig, "probe.typed", json!({"list": [{"count": 256}]})).await;
    assert!(error.message.contains("`list.0.count`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_of_a_script_are_checked_and_those_of_code_decoded() {
    let through = unary(spec("probe.through"), |ctx, p: Object| async move {
        let params = json!({"to": "five"});
        let params = match p["origin"].as_str().unwrap() {
            "code" => Params::code(params),
            _ => Params::foreign(params),
        };
        let error = ctx.call_value("echo.count", params).await.unwrap_err();
        Ok(object(
            json!({ "code": error.code, "problems": error.data_value() }),
        ))
    });
    let rig = Rig::probe(vec![through]).await;
    let foreign = rig
        .call("probe.through", json!({"origin": "foreign"}))
        .await
        .unwrap();
    assert_eq!(foreign["code"], "rpc.invalid_params");
    assert_eq!(foreign["problems"]["problems"][0]["field"], "to");
    let code = rig
        .call("probe.through", json!({"origin": "code"}))
        .await
        .unwrap();
    assert_eq!(code["code"], "rpc.invalid_params");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_hub_cancel_and_hub_stream_are_told_is_checked() {
    let rig = Rig::new().await;
    let (id, id2) = (StreamId::random(), StreamId::random());
    for params in [
        json!({}),
        json!({"call_id": id, "stream_id": id2}),
        json!({"call_id": id, "path": "echo"}),
        json!({"call_id": "nonsense"}),
        json!({"stream_id": "nonsense"}),
        json!({"path": "No Path"}),
    ] {
        let error = rig.call("hub.cancel", params.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams, "{params}");
    }
    let stopped = rig
        .call("hub.cancel", json!({"path": "nobody.there"}))
        .await
        .unwrap();
    assert_eq!(stopped, json!({"stopped": []}));
    for params in [
        json!({}),
        json!({"stream_id": "x"}),
        json!({"stream_id": id, "limit": 0}),
        json!({"stream_id": id, "limit": 1001}),
        json!({"stream_id": id, "after": -1}),
    ] {
        let error = rig.call("hub.stream", params.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams, "{params}");
    }
    let stream = rig.open("echo.say", json!({"text": "hi"})).await;
    let id = stream.stream();
    stream.collect().await.unwrap();
    let beyond = json!({"stream_id": id, "after": u64::MAX});
    let page = rig.call("hub.stream", beyond).await.unwrap();
    assert_eq!(page["items"], json!([]));
}
