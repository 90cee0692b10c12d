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

const MIGRATIONS: &[Migration] = &[Migration::new(
    1,
    "a counter for each method",
    "create table calls (verb text primary key, count integer not null) strict, without rowid",
)];

/// The plugin.
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

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let echo = Arc::new(Echo { db: ctx.db });
            Ok(Contribution::new()
                .methods(echo.plugin_methods()?)
                .migrations(MIGRATIONS))
        })
    }
}
