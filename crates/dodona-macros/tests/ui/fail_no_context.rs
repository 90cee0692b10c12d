use dodona_plugin::{CallCtx, CallError, NoParams, plugin};

struct Echo;

#[plugin(name = "echo")]
impl Echo {
    /// Says it back.
    #[method]
    async fn say(&self) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method]
    async fn by_value(&self, _ctx: CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method]
    async fn params_first(&self, p: NoParams, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(p)
    }
}

fn main() {}
