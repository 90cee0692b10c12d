use dodona_plugin::{CallCtx, CallError, Emitter, NoParams, plugin};

struct Echo;

#[plugin(name = "echo")]
impl Echo {
    /// Emits.
    #[method]
    async fn untyped(&self, _ctx: &CallCtx, out: Emitter) -> Result<(), CallError> {
        let _ = out;
        Ok(())
    }

    /// Emits.
    #[method]
    async fn first(
        &self,
        _ctx: &CallCtx,
        out: Emitter<NoParams>,
        p: NoParams,
    ) -> Result<(), CallError> {
        out.send(p).await
    }

    /// Emits.
    #[method]
    async fn both(
        &self,
        _ctx: &CallCtx,
        out: Emitter<NoParams>,
    ) -> impl futures_util::Stream<Item = Result<NoParams, CallError>> {
        let _ = out;
        futures_util::stream::empty()
    }

    /// Returns nothing.
    #[method]
    async fn nothing(&self, _ctx: &CallCtx) {}

    /// Returns a stream of something.
    #[method]
    fn bare_stream(&self, _ctx: &CallCtx) -> impl futures_util::Stream<Item = NoParams> {
        futures_util::stream::empty()
    }
}

fn main() {}
