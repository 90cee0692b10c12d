//! What the methods answer is what their published schemas say.

use std::collections::BTreeSet;
use std::path::Path;

use dodona_schema::Validator;
use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::backtest::backtest;
use crate::rig::{Rig, calls_echo, calls_fail, notice, rule};

/// The methods of rules, as they are published.
fn published() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openrpc.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut methods = document["methods"].as_array().unwrap().clone();
    methods.retain(|method| method["name"].as_str().unwrap().starts_with("rules."));
    methods
}

/// A server on which rules fired, failed, were kept from it and set something.
async fn busy() -> (Rig, String) {
    let once =
        notice("once", "on_turn_start", "True", "Hello.") + "[limits]\nonce_per = \"query\"\n";
    let set = "type = \"set_state\"\nkey = \"n\"\nvalue = \"{{ context.turn.number }}\"";
    let rules = [
        ("once.toml", once),
        ("set.toml", rule("set", "on_turn_end", "True", set)),
        (
            "fails.toml",
            notice("fails", "on_turn_start", "1 // 0 > 1", "No."),
        ),
        ("broken.toml", "[rule]\nid = \"broken\"\n".to_owned()),
    ];
    let rules: Vec<(&str, &str)> = rules
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let rig = Rig::with(&rules).await;
    let answer = rig
        .ask([calls_echo("a", "x"), calls_fail("b"), Reply::text("Done.")])
        .await;
    let query = answer.data("AgentResponse")[0]["query_id"]
        .as_str()
        .unwrap();
    let query = query.to_owned();
    (rig, query)
}

#[tokio::test]
async fn every_result_is_as_its_schema_says() {
    let (rig, query) = busy().await;
    let new = notice("new", "on_turn_start", "True", "New.");
    let one = json!({ "rule": "once" });
    let calls = [
        ("rules.activity", json!({})),
        ("rules.again", json!({ "query_id": query })),
        ("rules.backtest", json!({})),
        ("rules.check", json!({})),
        ("rules.disable", one.clone()),
        ("rules.enable", one.clone()),
        ("rules.doctor", json!({})),
        ("rules.explain", json!({ "rule": "once", "limit": 10 })),
        ("rules.explain", json!({ "rule": "fails" })),
        ("rules.explain", json!({ "rule": "set", "limit": 3 })),
        (
            "rules.explain",
            json!({ "rule": "repeated-failure-warning" }),
        ),
        (
            "rules.explain",
            json!({ "rule": "once", "query": "no-such-query" }),
        ),
        ("rules.list", json!({})),
        ("rules.log", json!({})),
        ("rules.log_lines", json!({})),
        ("rules.reload", json!({})),
        ("rules.schema", json!({})),
        ("rules.settings", json!({})),
        ("rules.show", one.clone()),
        ("rules.source", one),
        (
            "rules.template",
            json!({ "id": "x", "trigger": "on_tool_call" }),
        ),
        ("rules.test", json!({})),
        (
            "rules.write",
            json!({ "scope": "user", "file": "new.toml", "text": new }),
        ),
        (
            "rules.rename",
            json!({ "scope": "user", "file": "new.toml", "id": "newer" }),
        ),
        (
            "rules.delete",
            json!({ "scope": "user", "file": "newer.toml" }),
        ),
    ];
    let methods = published();
    let names: BTreeSet<&str> = methods
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    let called: BTreeSet<&str> = calls.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, called);
    let mut version = Value::Null;
    for (name, mut params) in calls {
        if ["rules.rename", "rules.delete"].contains(&name) {
            params["if_version"] = version.clone();
        }
        let result = match name {
            "rules.backtest" => backtest(&rig).await,
            _ => rig.call(name, params.clone()).await.unwrap(),
        };
        version = result["version"].clone();
        let method = methods
            .iter()
            .find(|method| method["name"] == name)
            .unwrap();
        let validator = Validator::new(&method["result"]["schema"]).unwrap();
        let faults: Vec<String> = validator
            .violations(&result, 20)
            .iter()
            .map(|fault| format!("{}: {fault}", fault.path))
            .collect();
        assert!(
            faults.is_empty(),
            "{name} {params}: {faults:#?}\n{result:#}"
        );
    }
}
