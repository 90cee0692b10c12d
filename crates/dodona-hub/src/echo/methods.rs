//! The methods of the plugin `echo`.

use std::time::Duration;

use dodona_plugin::store::Db;
use dodona_plugin::{CallCtx, CallError, Emitter, Params, plugin};
use futures_util::future::try_join_all;
use serde_json::json;

use super::counter::{self, Counter};
use super::types::{
    CountParams, Counted, FailParams, Level, NestParams, Never, Said, SayParams, Slept, SlowParams,
    Stats, Tick,
};

pub(super) struct Echo {
    pub(super) db: Db,
    pub(super) counter: Counter,
}

#[plugin(name = "echo")]
impl Echo {
    /// Return the given text.
    #[method(scope = "echo:use", tool(category = "meta"))]
    async fn say(&self, _ctx: &CallCtx, p: SayParams) -> Result<Said, CallError> {
        self.counter.add("say");
        Ok(Said { text: p.text })
    }

    /// Count from 1 to `to`, one item per number.
    #[method(scope = "echo:use")]
    async fn count(
        &self,
        ctx: &CallCtx,
        p: CountParams,
        out: Emitter<Tick>,
    ) -> Result<(), CallError> {
        self.counter.add("count");
        ctx.progress(format!("counting to {}", p.to), Some(0.0))
            .await?;
        for n in 1..=p.to {
            if p.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(p.delay_ms)).await;
            }
            out.send(Tick { n }).await?;
        }
        Ok(())
    }

    /// Call itself recursively and report the plugin path of each nested call.
    #[method(scope = "echo:use")]
    async fn nest(
        &self,
        ctx: &CallCtx,
        p: NestParams,
        out: Emitter<Level>,
    ) -> Result<(), CallError> {
        self.counter.add("nest");
        let (path, user) = (ctx.path.to_string(), ctx.principal.user.to_string());
        out.send(Level {
            path,
            user,
            below: p.depth,
        })
        .await?;
        let Some(depth) = p.depth.checked_sub(1) else {
            tokio::time::sleep(Duration::from_millis(p.delay_ms)).await;
            return Ok(());
        };
        let below = json!({ "depth": depth, "width": p.width, "delay_ms": p.delay_ms });
        let calls = (0..p.width).map(|_| ctx.call_value("echo.nest", Params::code(below.clone())));
        try_join_all(calls).await.map(drop)
    }

    /// Fail with the given message.
    #[method(scope = "echo:use")]
    async fn fail(&self, _ctx: &CallCtx, p: FailParams) -> Result<Never, CallError> {
        self.counter.add("fail");
        Err(CallError::plugin("echo.failed", p.message).hint("call `echo.say` instead"))
    }

    /// Panic. Only this call fails.
    #[method(scope = "echo:use")]
    async fn panic(&self, _ctx: &CallCtx) -> Result<Never, CallError> {
        self.counter.add("panic");
        panic!("as asked")
    }

    /// Wait for the given time, then return.
    #[method(scope = "echo:use")]
    async fn slow(&self, _ctx: &CallCtx, p: SlowParams) -> Result<Slept, CallError> {
        self.counter.add("slow");
        tokio::time::sleep(Duration::from_millis(p.ms)).await;
        Ok(Slept { ms: p.ms })
    }

    /// Increment a counter and return it. The count is stored when the call returns.
    #[method(scope = "echo:use", mutates)]
    async fn tally(&self, _ctx: &CallCtx) -> Result<Counted, CallError> {
        let counted = self.db.write(|tx| counter::add(tx, "tally", 1)).await?;
        Ok(Counted { count: counted })
    }

    /// Show how often each method of `echo` was called, including earlier runs of the server.
    #[method(scope = "echo:use")]
    async fn stats(&self, _ctx: &CallCtx) -> Result<Stats, CallError> {
        Ok(Stats {
            calls: self.counter.flush(&self.db).await?,
        })
    }
}
