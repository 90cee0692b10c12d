//! The plugin `steward`: one hook of every kind, a method, a setting and a table.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::store::{Db, Migration};
use dodona_plugin::{CallCtx, CallError, Contribution, NoParams, Plugin, PluginContext, plugin};
use dodona_plugin::{Setting, SettingKind, Settings};
use schemars::JsonSchema;
use serde::Serialize;

use super::hooks;

const MIGRATIONS: &[Migration] = &[Migration::new(
    1,
    "turns",
    "CREATE TABLE turn (query TEXT NOT NULL, number INTEGER NOT NULL, tools INTEGER NOT NULL,
        PRIMARY KEY (query, number)) STRICT",
)];

/// What the method and the async hook work on.
pub(crate) struct Steward {
    db: Db,
}

#[derive(Serialize, JsonSchema)]
struct Diary {
    /// The turns of all queries.
    turns: u64,
    /// The tools that ran in them.
    tools: u64,
}

#[plugin(name = "steward")]
impl Steward {
    /// Tells how many turns the agent took, and how many tools ran in them.
    #[method(scope = "steward:read", tool(category = "meta", agents = ["steward"]))]
    async fn diary(&self, _ctx: &CallCtx, _p: NoParams) -> Result<Diary, CallError> {
        let sum = "SELECT count(*), coalesce(sum(tools), 0) FROM turn";
        let read = |tx: &dodona_plugin::store::Tx<'_>| {
            tx.query_one(sum, (), |row| Ok((row.get(0)?, row.get(1)?)))
        };
        let (turns, tools) = self.db.read(read).await?;
        Ok(Diary { turns, tools })
    }
}

impl Steward {
    /// Notes a turn. One that is told of twice is noted once.
    pub(crate) async fn note(&self, query: String, turn: u64, tools: u64) -> Result<(), CallError> {
        let insert = "INSERT OR IGNORE INTO turn (query, number, tools) VALUES (?1, ?2, ?3)";
        let noted = self
            .db
            .write(move |tx| tx.execute(insert, (query, turn, tools)));
        noted.await?;
        Ok(())
    }
}

/// What the hub activates.
pub(crate) struct StewardPlugin;

impl Plugin for StewardPlugin {
    fn name(&self) -> &'static str {
        "steward"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn settings(&self) -> Settings {
        let about = "The folder that no tool may touch.";
        let folder = Setting::new(SettingKind::String, "archive", about);
        Settings::from([(hooks::CLOSED_FOLDER.to_owned(), folder)])
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async move {
            let steward = Arc::new(Steward { db: ctx.db });
            Ok(Contribution::new()
                .methods(Arc::clone(&steward).plugin_methods()?)
                .hook(hooks::house_rules())
                .hook(hooks::offer_diary())
                .hook(hooks::close_folder(ctx.settings))
                .hook(hooks::hide_addresses())
                .hook(hooks::write_diary(steward))
                .hook(hooks::serve_diary())
                .migrations(MIGRATIONS))
        })
    }
}
