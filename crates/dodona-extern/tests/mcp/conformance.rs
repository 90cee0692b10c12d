//! The official suite for clients. What it expects of a client and ours does not do is listed in
//! `conformance/expected-failures-*.yaml`, each with its reason; the suite fails if one of those passes.
//!
//! For each scenario the suite starts a server and runs a client with the server's address. That
//! client is this test in another process, which mounts the address and uses what it finds.

use std::path::Path;

use dodona_testkit::{Node, TestHub, principal};
use serde_json::{Map, Value, json};

use crate::support::{builder, mount};

/// Set by the suite for the client: the scenario, the protocol, and what the scenario wants called.
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";
const VERSION: &str = "MCP_CONFORMANCE_PROTOCOL_VERSION";
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

/// The scenario in which one tool is given the schema of the other.
const SCHEMAS: &str = "json-schema-2020-12-preservation";

async fn passes(name: &str, requirements: &str, scenarios: &[&str]) {
    if std::env::var_os(SCENARIO).is_some() {
        return be_the_client().await;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let peers = here.join("../dodona-testkit/mcp-peers");
    let node = Node::locked_on(&peers, 22).unwrap();
    let client = std::env::current_exe().unwrap();
    let client = format!(
        "{} --exact --nocapture --test-threads=1 conformance::{name}",
        client.display()
    );
    let results = tempfile::tempdir().unwrap();
    let expected = format!("tests/mcp/conformance/expected-failures-{requirements}.yaml");
    let mut suite = node.command();
    suite
        .arg("node_modules/@modelcontextprotocol/conformance/dist/index.js")
        .args([
            "client",
            "--requirements",
            requirements,
            "--command",
            &client,
        ])
        // For each scenario; the machine may be busy with other tests.
        .args(["--timeout", "120000", "--expected-failures"])
        .arg(here.join(expected))
        .arg("--output-dir")
        .arg(results.path());
    let output = suite.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    // It ran, and did not skip everything.
    for scenario in scenarios {
        assert!(told.contains(scenario), "{scenario}: {told}");
    }
}

#[tokio::test]
async fn our_client_meets_the_requirements_of_2025_11_25_but_for_those_listed() {
    let name = "our_client_meets_the_requirements_of_2025_11_25_but_for_those_listed";
    passes(
        name,
        "2025-11-25",
        &["initialize", "tools_call", "sse-retry"],
    )
    .await;
}

#[tokio::test]
async fn our_client_meets_the_requirements_of_2026_07_28_but_for_those_listed() {
    let name = "our_client_meets_the_requirements_of_2026_07_28_but_for_those_listed";
    let scenarios = [
        "tools_call",
        "http-custom-headers",
        "sep-2322-client-request-state",
    ];
    passes(name, "2026-07-28", &scenarios).await;
}

/// Mounts the address that stands last on the command line, and calls what there is.
async fn be_the_client() {
    let address = std::env::args().next_back().unwrap();
    let protocol = std::env::var(VERSION).unwrap();
    let settings = format!("[server]\nprotocol = \"{protocol}\"\nstart_timeout = \"60s\"\n");
    let hub = builder().start().await;
    mount(&hub, &[("peer", &address, &settings)]).await;
    for (method, params) in wanted(&hub) {
        if let Err(error) = hub.call("ada", &method, params).await {
            eprintln!("{method}: {error}");
        }
    }
    hub.stop().await;
}

/// What is to be called: what the scenario says, or every tool with parameters that fit.
fn wanted(hub: &TestHub) -> Vec<(String, Value)> {
    let methods = hub.methods(&principal("ada"));
    let tools = methods.iter().filter(|known| known.tool.is_some());
    let tools = tools.filter(|known| known.name.plugin() == "peer");
    let tools: Vec<_> = tools.collect();
    let context: Value = match std::env::var(CONTEXT) {
        Ok(context) => serde_json::from_str(&context).unwrap(),
        Err(_) => Value::Null,
    };
    if let Some(calls) = context["toolCalls"].as_array() {
        let call = |call: &Value| {
            let method = format!("peer.{}", call["name"].as_str().unwrap());
            (method, given(&call["arguments"]))
        };
        return calls.iter().map(call).collect();
    }
    let params = |schema: &Value| match std::env::var(SCENARIO).unwrap() == SCHEMAS {
        true => json!({ "schema": tools[0].params }),
        false => sample(schema),
    };
    let call = |tool: &&std::sync::Arc<dodona_proto::MethodDescriptor>| {
        (tool.name.to_string(), params(&tool.params))
    };
    tools.iter().map(call).collect()
}

/// Arguments as a caller of ours gives them: what is null is left out, for no schema has it.
fn given(arguments: &Value) -> Value {
    let given = arguments.as_object().unwrap().iter();
    let given = given.filter(|(_, value)| !value.is_null());
    Value::Object(
        given
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// Parameters that fit a simple schema.
fn sample(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().cloned();
    let values = properties
        .unwrap_or_default()
        .into_iter()
        .map(|(name, schema)| {
            let value = match schema["type"].as_str() {
                Some("number" | "integer") => json!(5),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => sample(&schema),
                _ => json!("text"),
            };
            (name, value)
        });
    Value::Object(values.collect::<Map<_, _>>())
}
