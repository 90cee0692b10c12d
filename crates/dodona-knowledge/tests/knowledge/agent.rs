//! A plugin in the place of the agent: it uses tools in a query, as itself or as a subagent.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, Contribution, Params, Plugin, PluginContext, ToolRequest, plugin};
use dodona_proto::{CallError, QuerySnapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

struct Agent;

#[derive(Deserialize, JsonSchema)]
struct UseParams {
    method: String,
    params: Value,
    query: String,
    /// The subagent that does it.
    subagent: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Used {
    result: Value,
}

#[plugin(name = "agent")]
impl Agent {
    /// Uses a tool.
    #[method(scope = "agent:use")]
    async fn r#use(&self, ctx: &CallCtx, p: UseParams) -> Result<Used, CallError> {
        let snapshot: QuerySnapshot = serde_json::from_value(json!({
            "query_id": p.query,
            "context_id": "c-1",
            "user": "alice",
            "project": null,
            "turn": { "number": 1, "iteration_count": 1, "max_iterations": 30, "token_usage": 0.1, "context_usage": 0.1 },
            "tokens_used": 1,
            "token_budget": 4000,
            "history": { "total_tool_calls": 0, "total_failures": 0, "message_count": 1 },
        }))
        .unwrap();
        let request = ToolRequest {
            on_start: None,
            params: Params::foreign(p.params),
            timeout: None,
            snapshot: Some(Arc::new(snapshot)),
        };
        let method = p.method;
        let result = match p.subagent {
            None => ctx.call_tool(&method, request).await.outcome?,
            Some(name) => {
                let name: &'static str = name.leak();
                ctx.scope(name, move |ctx| async move {
                    ctx.call_tool(&method, request).await.outcome
                })
                .await?
            }
        };
        Ok(Used { result })
    }
}

struct AgentPlugin;

impl Plugin for AgentPlugin {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new().methods(Arc::new(Agent).plugin_methods()?)) })
    }
}

pub(crate) fn plugins() -> Vec<Arc<dyn Plugin>> {
    vec![Arc::new(AgentPlugin)]
}

impl crate::TestProject {
    /// What a tool answers that is used in a query.
    pub(crate) async fn tool(
        &self,
        query: &str,
        subagent: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, CallError> {
        let params =
            json!({ "method": method, "params": params, "query": query, "subagent": subagent });
        let mut used = self.call("agent.use", params).await?;
        Ok(used["result"].take())
    }
}
