use dodona_plugin::{CallCtx, CallError, NoParams, plugin};

struct Echo;

#[plugin(name = "echo")]
impl Echo {
    /// Says it back.
    #[method]
    async fn borrowed(&self, _ctx: &CallCtx, p: &NoParams) -> Result<NoParams, CallError> {
        Ok(*p)
    }

    /// Says it back.
    #[method]
    async fn two(&self, _ctx: &CallCtx, text: String, times: u32) -> Result<NoParams, CallError> {
        let _ = (text, times);
        Ok(NoParams {})
    }

    /// Says it back.
    #[method]
    async fn generic<T>(&self, _ctx: &CallCtx, p: T) -> Result<NoParams, CallError> {
        let _ = p;
        Ok(NoParams {})
    }
}

fn main() {}
