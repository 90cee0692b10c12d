//! The reference plugin `echo`: one small method for each thing a method can do.

mod counter;
mod methods;
mod types;

use std::sync::{Arc, OnceLock};

use dodona_plugin::activation::Activating;
use dodona_plugin::store::Migration;
use dodona_plugin::{BoxFuture, Contribution, Plugin, PluginContext};

use counter::Counter;
use methods::Echo;

pub(crate) const MIGRATIONS: &[Migration] = &[Migration::new(
    1,
    "a counter for each method",
    "create table calls (verb text primary key, count integer not null) strict, without rowid",
)];

#[derive(Default)]
pub struct EchoPlugin {
    active: OnceLock<Arc<Echo>>,
}

impl Plugin for EchoPlugin {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn description(&self) -> &'static str {
        "Test methods that count, wait, nest and fail."
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let new = || {
                Arc::new(Echo {
                    db: ctx.db,
                    counter: Counter::default(),
                })
            };
            let echo = self.active.get_or_init(new);
            Ok(Contribution::new()
                .methods(echo.plugin_methods()?)
                .migrations(MIGRATIONS))
        })
    }

    fn deactivate(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(echo) = self.active.get()
                && let Err(error) = echo.counter.flush(&echo.db).await
            {
                tracing::warn!(%error, "failed to store the counts since the last `echo.stats`");
            }
        })
    }
}
