//! What can be called, as an OpenRPC document and as a list of tools.

use std::sync::Arc;

use dodona_proto::{MethodDescriptor, MethodKind, Mutation};
use serde_json::{Map, Value, json};

/// The OpenRPC document of a set of methods. Parameters are given by name; what OpenRPC has no
/// word for is in `x-` members.
pub fn document(methods: &[Arc<MethodDescriptor>]) -> Value {
    json!({
        "openrpc": "1.3.2",
        "info": { "title": "Dodona", "version": env!("CARGO_PKG_VERSION") },
        "methods": methods.iter().map(|method| describe(method)).collect::<Vec<_>>(),
    })
}

fn describe(method: &MethodDescriptor) -> Value {
    let (summary, _) = method
        .description
        .split_once("\n\n")
        .unwrap_or((&method.description, ""));
    json!({
        "name": method.name,
        "summary": summary.replace('\n', " "),
        "description": method.description,
        "paramStructure": "by-name",
        "params": params(&method.params),
        "result": { "name": method.result["title"].as_str().unwrap_or("result"), "schema": method.result },
        "x-kind": method.kind,
        "x-mutation": method.mutation,
        "x-scope": method.scope,
        "x-tool": method.tool,
        "x-schema-hash": method.schema_hash,
    })
}

/// One entry for each property. Definitions that a property refers to go along with it.
fn params(schema: &Value) -> Vec<Value> {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| {
            let mut property = property.clone();
            if let (Some(definitions), Some(fields)) = (schema.get("$defs"), property.as_object_mut()) {
                fields.insert("$defs".to_owned(), definitions.clone());
            }
            json!({ "name": name, "required": required.contains(&name.as_str()), "schema": property })
        })
        .collect()
}

/// The methods that agents may use, in the form of MCP's `tools/list`. A tool's name has no
/// dot, because models do not allow one.
pub(crate) fn tools(methods: &[Arc<MethodDescriptor>]) -> Value {
    let tools: Vec<Value> = methods.iter().filter_map(|method| tool(method)).collect();
    json!({ "tools": tools })
}

fn tool(method: &MethodDescriptor) -> Option<Value> {
    let mark = method.tool.as_ref()?;
    let mut tool = Map::new();
    tool.insert(
        "name".to_owned(),
        json!(method.name.as_str().replace('.', "_")),
    );
    tool.insert("description".to_owned(), json!(method.description));
    tool.insert("inputSchema".to_owned(), method.params.clone());
    if method.kind == MethodKind::Unary {
        tool.insert("outputSchema".to_owned(), method.result.clone());
    }
    tool.insert(
        "annotations".to_owned(),
        json!({ "readOnlyHint": method.mutation == Mutation::Reads }),
    );
    let meta = json!({ "method": method.name, "category": mark.category, "agents": mark.agents, "approval": mark.approval });
    tool.insert("_meta".to_owned(), meta);
    Some(Value::Object(tool))
}
