//! The tools a model is offered, and running the ones it wants.

use dodona_llm::ToolOffer;
use dodona_plugin::{CallCtx, CallError, ErrorCode, Params};
use dodona_proto::{MethodDescriptor, ToolCall};
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

/// The agent's name, by which tools say who is offered them.
const AGENT: &str = "oracle";

/// What a model may ask for, and which method each is.
pub(crate) struct Toolbox {
    methods: Vec<MethodDescriptor>,
}

impl Toolbox {
    /// Every method that is marked as a tool for this agent and that the user may call.
    pub(crate) async fn load(ctx: &CallCtx) -> Result<Self, CallError> {
        #[derive(Deserialize)]
        struct Methods {
            methods: Vec<MethodDescriptor>,
        }
        let Methods { mut methods } = ctx.call("hub.methods", json!({})).await?;
        methods.retain(|method| {
            method
                .tool
                .as_ref()
                .is_some_and(|tool| tool.agents.iter().any(|agent| agent == AGENT))
        });
        Ok(Self { methods })
    }

    pub(crate) fn offers(&self) -> Vec<ToolOffer> {
        let offer = |method: &MethodDescriptor| ToolOffer {
            name: tool_name(method),
            description: method.description.clone(),
            parameters: method.params.clone(),
        };
        self.methods.iter().map(offer).collect()
    }

    /// The method behind a tool's name.
    pub(crate) fn method(&self, tool: &str) -> Option<&str> {
        self.methods
            .iter()
            .find(|method| tool_name(method) == tool)
            .map(|method| method.name.as_str())
    }

    /// Runs tools side by side; the results are in the order of the calls. What the model sends
    /// is not to be trusted, so it is checked like anything from outside.
    pub(crate) async fn run(
        &self,
        ctx: &CallCtx,
        calls: &[ToolCall],
    ) -> Vec<Result<Value, CallError>> {
        join_all(calls.iter().map(|call| self.run_one(ctx, call))).await
    }

    async fn run_one(&self, ctx: &CallCtx, call: &ToolCall) -> Result<Value, CallError> {
        match self.method(&call.name) {
            Some(method) => {
                ctx.call_value(method, Params::foreign(call.arguments.clone()))
                    .await
            }
            None => Err(CallError::new(
                ErrorCode::MethodNotFound,
                format!("there is no tool `{}`", call.name),
            )),
        }
    }
}

/// A tool's name has no dot, because models do not allow one.
fn tool_name(method: &MethodDescriptor) -> String {
    method.name.as_str().replace('.', "_")
}
