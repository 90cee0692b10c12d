//! Who may see and do what.

use dodona_hub::{CancelTarget, Request};
use dodona_plugin::{MethodSpec, Params};
use dodona_proto::{ErrorCode, StreamId};
use serde_json::json;

use crate::support::{Object, Rig, alice, bob, object, root, soon, spec, unary, until, user};

#[tokio::test(flavor = "multi_thread")]
async fn another_users_stream_is_not_found_and_an_administrator_sees_it() {
    let rig = Rig::new().await;
    let stream = rig.open("echo.slow", json!({"ms": 60_000})).await;
    let id = stream.stream();
    let call = CancelTarget::Call(id.root_call());
    let path = CancelTarget::Path {
        prefix: "echo".parse().unwrap(),
        within: None,
    };
    let code = |result: Result<_, dodona_proto::CallError>| result.unwrap_err().code;
    assert_eq!(
        code(rig.hub.attach(&bob(), id, 0).await.map(drop)),
        ErrorCode::NotFound
    );
    for target in [&CancelTarget::Stream(id), &call] {
        assert_eq!(
            code(rig.hub.cancel(&bob(), target).await.map(drop)),
            ErrorCode::NotFound
        );
    }
    assert!(rig.hub.cancel(&bob(), &path).await.unwrap().is_empty());
    assert!(rig.hub.calls(&bob()).is_empty());
    let page = Request::new(bob(), "hub.stream", json!({"stream_id": id}));
    let not_mine = rig.hub.call(page).await.unwrap_err();
    assert_eq!(not_mine.code, ErrorCode::NotFound);
    // Nothing tells somebody else's stream from one that never was.
    let nowhere = StreamId::random();
    let page = Request::new(bob(), "hub.stream", json!({"stream_id": nowhere}));
    let missing = rig.hub.call(page).await.unwrap_err();
    assert_eq!(
        not_mine.message.replace(&id.to_string(), ""),
        missing.message.replace(&nowhere.to_string(), "")
    );
    assert_eq!(not_mine.hint_text(), missing.hint_text());
    let by_id = json!({"call_id": id.to_string()});
    let cancel = rig
        .hub
        .call(Request::new(bob(), "hub.cancel", by_id))
        .await
        .unwrap_err();
    assert_eq!(cancel.code, ErrorCode::NotFound);
    // The administrator's view.
    assert_eq!(rig.hub.calls(&root()).len(), 1);
    soon(rig.hub.attach(&root(), id, 0)).await.unwrap();
    let page = Request::new(root(), "hub.stream", json!({"stream_id": id}));
    rig.hub.call(page).await.unwrap();
    assert_eq!(rig.hub.cancel(&root(), &path).await.unwrap().len(), 1);
    soon(stream.collect()).await.unwrap();
    // It is nobody else's after its end either.
    assert_eq!(
        code(rig.hub.attach(&bob(), id, 0).await.map(drop)),
        ErrorCode::NotFound
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_calls_lists_ones_own_and_not_itself() {
    let rig = Rig::new().await;
    let _stream = rig.open("echo.slow", json!({"ms": 60_000})).await;
    until(|| rig.hub.calls(&alice()).len() == 1).await;
    let listed = rig.call("hub.calls", json!({})).await.unwrap();
    assert_eq!(listed["calls"].as_array().unwrap().len(), 1);
    assert_eq!(listed["calls"][0]["method"], "echo.slow");
    assert_eq!(listed["calls"][0]["user"], "alice");
    let listed = rig
        .hub
        .call(Request::new(bob(), "hub.calls", json!({})))
        .await
        .unwrap();
    assert_eq!(listed, json!({"calls": []}));
}

fn hidden() -> Vec<dodona_plugin::Method> {
    let inner = MethodSpec {
        scope: None,
        ..spec("probe.inner")
    };
    let admin = MethodSpec {
        scope: Some("probe:admin"),
        ..spec("probe.admin")
    };
    vec![
        unary(inner, |_, _| async { Ok(object(json!({"inner": true}))) }),
        unary(admin, |_, _| async { Ok(object(json!({"admin": true}))) }),
        unary(spec("probe.through"), |ctx, p: Object| async move {
            let method = p["method"].as_str().unwrap();
            Ok(object(
                ctx.call_value(method, Params::code(json!({}))).await?,
            ))
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_is_asked_for_from_outside_and_by_nested_calls() {
    let rig = Rig::probe(hidden()).await;
    let user = user("carol", &["probe:use"]);
    let call = |method: &str, params| rig.hub.call(Request::new(user.clone(), method, params));
    let error = call("probe.admin", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Forbidden);
    assert!(error.message.contains("`carol`") && error.message.contains("`probe:admin`"));
    let opened = rig
        .hub
        .open(Request::new(user.clone(), "echo.count", json!({"to": 1})))
        .await;
    assert_eq!(opened.map(drop).unwrap_err().code, ErrorCode::Forbidden);
    // Rights do not grow on the way down.
    let error = call("probe.through", json!({"method": "probe.admin"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Forbidden);
    let allowed = rig
        .call("probe.through", json!({"method": "probe.admin"}))
        .await
        .unwrap();
    assert_eq!(allowed, json!({"admin": true}));
    let nobody = crate::support::user("dave", &[]);
    let error = rig
        .hub
        .call(Request::new(nobody, "echo.say", json!({"text": ""})))
        .await;
    assert_eq!(error.unwrap_err().code, ErrorCode::Forbidden);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_without_a_scope_is_for_other_plugins_only() {
    let rig = Rig::probe(hidden()).await;
    for who in [alice(), root()] {
        let request = Request::new(who.clone(), "probe.inner", json!({}));
        let error = rig.hub.call(request.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::MethodNotFound);
        assert_eq!(error.message, "method `probe.inner` not found");
        let opened = rig.hub.open(request).await.map(drop).unwrap_err();
        assert_eq!(opened.code, ErrorCode::MethodNotFound);
        let names: Vec<String> = rig
            .hub
            .methods(&who)
            .iter()
            .map(|method| method.name.to_string())
            .collect();
        assert!(!names.contains(&"probe.inner".to_owned()));
        // Not even a hint gives it away.
        let near = rig
            .hub
            .call(Request::new(who, "probe.iner", json!({})))
            .await
            .unwrap_err();
        assert!(!near.hint_text().unwrap().contains("inner"), "{near:?}");
    }
    let inner = rig
        .call("probe.through", json!({"method": "probe.inner"}))
        .await
        .unwrap();
    assert_eq!(inner, json!({"inner": true}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_found_by_its_members_only() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::new().await;
    let known = rig
        .call("hub.register_project", json!({"root": folder.path()}))
        .await
        .unwrap();
    let id: dodona_proto::ProjectId = serde_json::from_value(known["id"].clone()).unwrap();
    let ask = |who, project| {
        let mut request = Request::new(who, "echo.say", json!({"text": ""}));
        request.project = Some(project);
        rig.hub.call(request)
    };
    ask(alice(), id.clone()).await.unwrap();
    let not_mine = ask(bob(), id.clone()).await.unwrap_err();
    let missing = ask(bob(), "nowhere".parse().unwrap()).await.unwrap_err();
    assert_eq!(
        (&not_mine.code, &missing.code),
        (&ErrorCode::NotFound, &ErrorCode::NotFound)
    );
    assert_eq!(not_mine.message, format!("project `{id}` not found"));
    let listed = rig
        .hub
        .call(Request::new(bob(), "hub.projects", json!({})))
        .await
        .unwrap();
    assert_eq!(listed, json!({"projects": []}));
}
