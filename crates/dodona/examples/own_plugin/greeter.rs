//! The plugin `greeter`: one method, which is also a tool for agents.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct GreetParams {
    /// Who to greet.
    #[schemars(length(min = 1, max = 100))]
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    text: String,
}

struct Greeter;

#[plugin(name = "greeter")]
impl Greeter {
    /// Greet a person by name.
    #[method(scope = "greeter:use", tool(category = "meta"))]
    async fn greet(&self, _ctx: &CallCtx, p: GreetParams) -> Result<Greeting, CallError> {
        Ok(Greeting {
            text: format!("Hello, {}!", p.name),
        })
    }
}

/// What the program adds.
pub(crate) struct GreeterPlugin;

impl Plugin for GreeterPlugin {
    fn name(&self) -> &str {
        "greeter"
    }

    fn version(&self) -> &str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new().methods(Arc::new(Greeter).plugin_methods()?)) })
    }
}
