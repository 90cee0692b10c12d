use dodona_plugin::{CallCtx, CallError, NoParams, method};

struct Echo;

impl Echo {
    /// Says it back.
    #[method(scope = "echo:use")]
    async fn say(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }
}

fn main() {}
