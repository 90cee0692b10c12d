use dodona_plugin::{CallCtx, CallError, NoParams, plugin};

struct Echo;

#[plugin(name = "echo")]
impl Echo {
    /// Says it back.
    #[method(scopes = "echo:use")]
    async fn unknown(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method(mutates, mutates)]
    async fn twice(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method(timeout_ms = "soon")]
    async fn timeout(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method(tool(category = "email"))]
    async fn category(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method(tool(approval))]
    async fn no_category(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method(tool(category = "meta", colour = "red"))]
    async fn tool_option(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }
}

fn main() {}
