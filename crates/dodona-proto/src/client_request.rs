//! Questions to the program that made a call.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::MethodName;

/// Data of a call that needs something of its client before it goes on: words of a person, an
/// answer of the client's model, or its folders. Only an MCP client can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientRequest {
    /// What the answer names.
    pub id: String,
    /// The method that takes the answer, `{id, responses}`. It has a response for each request
    /// that the client was asked and did not refuse, in MCP's own form.
    pub answer_to: MethodName,
    /// The requests, each under the name that its response will have: `{method, params}` as MCP
    /// has them, with `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub requests: BTreeMap<String, Value>,
}

impl ClientRequest {
    /// The content type of its items.
    pub const CONTENT_TYPE: &'static str = "ClientRequest";
}
