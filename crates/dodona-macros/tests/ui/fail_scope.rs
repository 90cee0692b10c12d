use dodona_plugin::{CallCtx, CallError, NoParams, plugin};

struct Echo;

#[plugin(name = "echo")]
impl Echo {
    /// Says it back.
    #[method(scope = "everything")]
    async fn one_word(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method(scope = "Echo:Use")]
    async fn upper_case(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method(scope = "echo:*")]
    async fn star(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }
}

fn main() {}
