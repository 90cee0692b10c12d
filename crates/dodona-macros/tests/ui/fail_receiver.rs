use dodona_plugin::{CallCtx, CallError, NoParams, plugin};

struct Echo;

#[plugin(name = "echo")]
impl Echo {
    /// Says it back.
    #[method]
    async fn say(&mut self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method]
    async fn own(self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }

    /// Says it back.
    #[method]
    async fn none() -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }
}

fn main() {}
