//! The methods about conversations, on a real hub.

use std::path::PathBuf;

use dodona_agent::AgentPlugin;
use dodona_hub::Request;
use dodona_proto::{CallError, ErrorCode, Project, ProjectId};
use dodona_testkit::{TestHub, principal};
use serde_json::{Value, json};

use crate::storage::{Disk, alice, ask};

/// A hub with a project of alice's and one of bob's.
struct Place {
    hub: TestHub,
    alices: ProjectId,
    bobs: ProjectId,
}

impl Place {
    async fn new() -> Self {
        let hub = TestHub::builder()
            .plugin(AgentPlugin::default)
            .start()
            .await;
        let alices = register(&hub, "alice").await;
        let bobs = register(&hub, "bob").await;
        Self { hub, alices, bobs }
    }

    async fn call_as(&self, user: &str, method: &str, params: Value) -> Result<Value, CallError> {
        let project = if user == "alice" {
            &self.alices
        } else {
            &self.bobs
        };
        let request = Request {
            project: Some(project.clone()),
            ..Request::new(principal(user), method, params)
        };
        dodona_hub::PluginHub::call(&self.hub, request).await
    }

    async fn ok(&self, method: &str, params: Value) -> Value {
        let answer = self.call_as("alice", method, params).await;
        answer.unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    async fn error(&self, method: &str, params: Value) -> CallError {
        self.call_as("alice", method, params).await.unwrap_err()
    }

    /// Takes a conversation of two queries in, and tells its id.
    async fn fill(&self) -> String {
        let disk = Disk::new().await;
        let conversations = disk.open();
        ask(&conversations, "How does login work?", "By tokens.").await;
        ask(&conversations, "Since when?", "Since March.").await;
        let document = conversations.export(&alice(), None).await.unwrap();
        let imported = self.ok(
            "agent.import",
            json!({ "document": document, "name": "login" }),
        );
        imported.await["context_id"].as_str().unwrap().to_owned()
    }
}

async fn register(hub: &TestHub, user: &str) -> ProjectId {
    let root: PathBuf = hub.home().join(user);
    std::fs::create_dir(&root).unwrap();
    let registered = hub.call(user, "hub.register_project", json!({ "root": root }));
    serde_json::from_value::<Project>(registered.await.unwrap())
        .unwrap()
        .id
}

#[tokio::test]
async fn a_conversation_is_listed_shown_forked_rewound_and_closed() {
    let place = Place::new().await;
    let id = place.fill().await;
    let listed = place.ok("agent.contexts", json!({})).await;
    let login = &listed["contexts"][0];
    assert_eq!(
        (&login["id"], &login["name"]),
        (&json!(id), &json!("login"))
    );
    assert_eq!(
        (&login["queries"], &login["status"]),
        (&json!(2), &json!("active"))
    );

    let shown = place
        .ok("agent.show", json!({ "context_id": "login" }))
        .await;
    let exchanges = shown["context"]["recent_exchanges"].as_array().unwrap();
    assert_eq!(exchanges.len(), 8);
    let since_when = exchanges[4]["id"].as_str().unwrap();
    assert_eq!(exchanges[4]["content"], "Since when?");

    let answer = exchanges[3]["id"].as_str().unwrap();
    let fork = json!({ "context_id": id, "exchange_id": answer, "name": "branch" });
    let forked = place.ok("agent.fork", fork).await;
    assert_eq!(forked["exchanges"], 4);

    // The end of an id stands for it.
    let end = &since_when[since_when.len() - 8..];
    let rewound = place.ok(
        "agent.rewind",
        json!({ "context_id": "login", "exchange_id": end }),
    );
    assert_eq!(rewound.await["exchanges"], 4);
    let shown = place
        .ok("agent.show", json!({ "context_id": "login" }))
        .await;
    assert_eq!(
        shown["context"]["recent_exchanges"]
            .as_array()
            .unwrap()
            .len(),
        4
    );

    let closed = place
        .ok("agent.close", json!({ "context_id": "login" }))
        .await;
    assert_eq!(closed["context_id"], json!(id));
    let open = place.ok("agent.contexts", json!({})).await;
    assert_eq!(open["contexts"].as_array().unwrap().len(), 1);
    let all = place.ok("agent.contexts", json!({ "all": true })).await;
    assert_eq!(all["contexts"].as_array().unwrap().len(), 2);
    let again = place
        .error("agent.close", json!({ "context_id": id }))
        .await;
    assert_eq!(again.code, ErrorCode::Plugin("agent.state".into()));
}

#[tokio::test]
async fn an_export_can_be_imported_through_the_hub() {
    let place = Place::new().await;
    place.fill().await;
    let document = place
        .ok("agent.export", json!({ "context_id": "login" }))
        .await;
    assert_eq!(document["format"], "dodona.conversation");
    let copy = place
        .ok("agent.import", json!({ "document": document }))
        .await;
    assert_eq!(copy["exchanges"], 8);
    let again = place
        .ok("agent.export", json!({ "context_id": copy["context_id"] }))
        .await;
    let texts = |document: &Value| -> Vec<Value> {
        let exchanges = document["exchanges"].as_array().unwrap();
        exchanges
            .iter()
            .map(|entry| entry["exchange"]["content"].clone())
            .collect()
    };
    assert_eq!(texts(&again), texts(&document));
    assert_eq!(again["context"]["name"], Value::Null, "the name is taken");
    let mut broken = document;
    broken["exchanges"][0]["exchange"]["token_count"] = json!(0);
    let error = place
        .error("agent.import", json!({ "document": broken }))
        .await;
    assert_eq!(error.code, ErrorCode::InvalidParams);
    assert_eq!(
        error.message,
        "`exchanges[0].exchange.token_count`: must be a positive integer"
    );
    broken["exchanges"][0]["exchange"]["role"] = json!("system");
    let error = place
        .error("agent.import", json!({ "document": broken }))
        .await;
    assert_eq!(error.code, ErrorCode::InvalidParams, "{error:?}");
}

#[tokio::test]
async fn what_is_remembered_outlives_the_process() {
    let mut place = Place::new().await;
    let params = json!({ "kind": "decision", "text": "Tokens last a day" });
    let first = place.ok("agent.remember", params.clone()).await;
    assert_eq!(first["added"], true);
    assert_eq!(place.ok("agent.remember", params).await["added"], false);
    let error = place
        .error("agent.remember", json!({ "kind": "rumour", "text": "x" }))
        .await;
    assert_eq!(error.code, ErrorCode::InvalidParams);
    place.hub = place.hub.restart().await;
    let shown = place.ok("agent.show", json!({})).await;
    assert_eq!(
        shown["context"]["key_decisions"],
        json!(["Tokens last a day"])
    );
    assert_eq!(shown["decisions"][0]["kind"], "decision");
    assert_eq!(shown["context"]["id"], first["context_id"]);
}

#[tokio::test]
async fn budgets_and_names_are_checked() {
    let place = Place::new().await;
    let created = place
        .ok(
            "agent.create",
            json!({ "name": "big", "token_budget": 128_000 }),
        )
        .await;
    assert_eq!(created["token_budget"], 128_000);
    for budget in [3_999, 128_001] {
        let error = place
            .error("agent.create", json!({ "token_budget": budget }))
            .await;
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.contains("token_budget"), "{}", error.message);
    }
    let taken = place.error("agent.create", json!({ "name": "big" })).await;
    assert_eq!(taken.code, ErrorCode::Plugin("agent.name_taken".into()));
    let reserved = place
        .error("agent.create", json!({ "name": "default" }))
        .await;
    assert_eq!(reserved.code, ErrorCode::InvalidParams);
}

#[tokio::test]
async fn somebody_elses_conversation_is_not_found_by_any_method() {
    let place = Place::new().await;
    let id = place.fill().await;
    let methods = [
        "agent.show",
        "agent.close",
        "agent.fork",
        "agent.rewind",
        "agent.export",
        "agent.queries",
        "agent.usage",
        "agent.remember",
    ];
    for method in methods {
        for asked in [id.as_str(), "login", &id[id.len() - 8..]] {
            let mut params = json!({ "context_id": asked });
            match method {
                "agent.rewind" => params["exchange_id"] = json!("any"),
                "agent.remember" => {
                    params["kind"] = json!("fact");
                    params["text"] = json!("x");
                }
                _ => {}
            }
            let error = place.call_as("bob", method, params).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::NotFound, "{method}");
            assert_eq!(error.message, format!("there is no conversation `{asked}`"));
        }
    }
    let listed = place
        .call_as("bob", "agent.contexts", json!({ "all": true }))
        .await
        .unwrap();
    assert_eq!(listed["contexts"], json!([]));
}

#[tokio::test]
async fn a_call_without_a_project_is_told_so() {
    let place = Place::new().await;
    let error = place
        .hub
        .call("alice", "agent.contexts", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidRequest);
    assert_eq!(error.message, "the call names no project");
}

#[tokio::test]
async fn queries_tell_how_they_ended_and_usage_is_summed_up() {
    let place = Place::new().await;
    place.fill().await;
    let listed = place
        .ok(
            "agent.queries",
            json!({ "context_id": "login", "limit": 1 }),
        )
        .await;
    assert_eq!(listed["queries"].as_array().unwrap().len(), 1);
    let query = &listed["queries"][0];
    assert_eq!(
        (&query["question"], &query["state"]),
        (&json!("Since when?"), &json!("complete"))
    );
    assert_eq!(
        (&query["turns"], &query["model"]),
        (&json!(2), &json!("tiny"))
    );
    let usage = place.ok("agent.usage", json!({ "by": "model" })).await;
    assert_eq!(usage["rows"], json!([]));
    assert_eq!(usage["total"]["requests"], 0);
    assert_eq!(usage["total"]["cost_micros"], Value::Null);
}

#[tokio::test]
async fn what_changes_something_says_so_and_what_a_model_may_use_is_a_tool() {
    let place = Place::new().await;
    let listed = place.ok("hub.methods", json!({ "plugin": "agent" })).await;
    let mutating: Vec<&str> = listed["methods"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|method| method["mutation"] == "mutates")
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    let changes = [
        "close",
        "compact",
        "create",
        "define",
        "delete",
        "fork",
        "import",
        "notify_self",
        "pin",
        "remember",
        "rename",
        "rewind",
        "set_model",
        "steer",
    ];
    assert_eq!(mutating, changes.map(|verb| format!("agent.{verb}")));
    let tools: Vec<&str> = listed["methods"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|method| !method["tool"].is_null())
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        tools,
        [
            "agent.delegate",
            "agent.notify_self",
            "agent.recall",
            "agent.remember",
            "agent.result",
            "agent.seek"
        ]
    );
}
