use dodona_plugin::{CallCtx, CallError, NoParams, plugin};

struct Echo;

#[plugin(name = "echo")]
impl Echo {
    /// Says it back.
    #[method]
    fn say(&self, _ctx: &CallCtx) -> Result<NoParams, CallError> {
        Ok(NoParams {})
    }
}

fn main() {}
