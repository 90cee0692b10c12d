//! What can be called, as the server tells it.

use std::collections::HashSet;

use dodona_schema::Validator;
use serde_json::{Value, json};

use crate::support::Server;

fn names(methods: &Value) -> Vec<String> {
    let name = |method: &Value| method["name"].as_str().unwrap().to_owned();
    methods.as_array().unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn the_document_is_openrpc_and_its_schemas_compile() {
    let server = Server::start().await;
    let document = server.owner().call("rpc.discover", json!({})).await;
    assert_eq!(document["openrpc"], "1.3.2");
    assert_eq!(document["info"]["title"], "Dodona");
    let all = names(&document["methods"]);
    assert_eq!(
        all.iter().collect::<HashSet<_>>().len(),
        all.len(),
        "each name once"
    );
    assert!(all.is_sorted());
    for method in document["methods"].as_array().unwrap() {
        let name = &method["name"];
        assert!(!method["summary"].as_str().unwrap().is_empty(), "{name}");
        assert!(
            !method["summary"].as_str().unwrap().contains('\n'),
            "{name}"
        );
        assert_eq!(method["paramStructure"], "by-name", "{name}");
        compile(name, &method["result"]["schema"]);
        assert!(method["result"]["name"].is_string(), "{name}");
        let params = method["params"].as_array().unwrap();
        let unique: HashSet<&str> = params
            .iter()
            .map(|param| param["name"].as_str().unwrap())
            .collect();
        assert_eq!(unique.len(), params.len(), "{name}");
        for param in params {
            assert!(param["required"].is_boolean(), "{name}");
            compile(name, &param["schema"]);
        }
    }
    server.stop().await;
}

#[track_caller]
fn compile(name: &Value, schema: &Value) {
    assert!(
        schema.is_object() || schema.is_boolean(),
        "{name}: {schema}"
    );
    if let Err(error) = Validator::new(schema) {
        panic!("{name}: {error}");
    }
}

#[tokio::test]
async fn all_lists_agree_on_every_transport() {
    let server = Server::start().await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    let document = owner.call("rpc.discover", json!({})).await;
    assert_eq!(socket.call("rpc.discover", json!({})).await, document);
    let methods = owner.call("hub.methods", json!({})).await;
    assert_eq!(names(&methods["methods"]), names(&document["methods"]));
    for (method, described) in methods["methods"]
        .as_array()
        .unwrap()
        .iter()
        .zip(document["methods"].as_array().unwrap())
    {
        assert_eq!(method["schema_hash"], described["x-schema-hash"]);
    }
    assert_eq!(
        socket.call("tools/list", json!({})).await,
        owner.call("tools/list", json!({})).await
    );
    server.stop().await;
}

#[tokio::test]
async fn tools_have_names_that_models_take() {
    let server = Server::start().await;
    let tools = server.owner().call("tools/list", json!({})).await;
    let tools = tools["tools"].as_array().unwrap();
    assert!(!tools.is_empty());
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(
            (1..=64).contains(&name.len()) && name.chars().all(fits),
            "{name}"
        );
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert!(!tool["description"].as_str().unwrap().is_empty());
        compile(&tool["name"], &tool["inputSchema"]);
        let method = tool["_meta"]["method"].as_str().unwrap();
        assert_eq!(method.replace('.', "_"), name);
    }
    server.stop().await;
}
