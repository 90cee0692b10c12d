//! What users set for themselves: the column `plugin_settings_json` of `user_settings`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use dodona_plugin::{CallError, Overrides};
use dodona_proto::{PluginName, UserId};
use dodona_store::{Db, DbError};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

type Chosen = BTreeMap<PluginName, Arc<Map<String, Value>>>;

/// Every user's choices, held in memory because every call may ask.
pub(crate) struct UserOverrides {
    db: Db,
    /// Held from reading a user's choices to having stored them.
    writing: Mutex<()>,
    chosen: RwLock<HashMap<UserId, Chosen>>,
}

impl UserOverrides {
    pub(crate) async fn load(db: Db) -> Result<Self, DbError> {
        let sql = "select user_id, plugin_settings_json from user_settings";
        let rows = db
            .read(move |tx| {
                tx.query(sql, (), |row| {
                    Ok((row.get::<String>(0)?, row.get::<String>(1)?))
                })
            })
            .await?;
        let users = rows.into_iter().filter_map(|(user, text)| {
            let user = UserId::new(&user).ok()?;
            let chosen = serde_json::from_str::<Chosen>(&text);
            let chosen = chosen.inspect_err(
                |error| tracing::warn!(%user, %error, "a user's settings cannot be read"),
            );
            Some((user, chosen.ok()?))
        });
        let chosen = RwLock::new(users.collect());
        let writing = Mutex::default();
        Ok(Self {
            db,
            writing,
            chosen,
        })
    }

    /// Sets or, with `None`, unsets a user's choice. The value was checked.
    pub(crate) async fn put(
        &self,
        user: &UserId,
        plugin: &PluginName,
        name: &str,
        value: Option<Value>,
    ) -> Result<(), CallError> {
        let _writing = self.writing.lock().await;
        let mut chosen = self.of_user(user);
        let mut mine = chosen
            .get(plugin)
            .map(|mine| Map::clone(mine))
            .unwrap_or_default();
        match value {
            Some(value) => mine.insert(name.to_owned(), value),
            None => mine.shift_remove(name),
        };
        match mine.is_empty() {
            true => chosen.remove(plugin),
            false => chosen.insert(plugin.clone(), Arc::new(mine)),
        };
        let (row, text) = (user.to_string(), json!(chosen).to_string());
        let sql = "insert into user_settings (user_id, plugin_settings_json) values (?1, ?2)
                   on conflict (user_id) do update
                   set plugin_settings_json = excluded.plugin_settings_json";
        self.db
            .write(move |tx| tx.execute(sql, (&row, &text)))
            .await?;
        let mut all = self.chosen.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(user.clone(), chosen);
        Ok(())
    }

    fn of_user(&self, user: &UserId) -> Chosen {
        let all = self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        all.get(user).cloned().unwrap_or_default()
    }
}

impl Overrides for UserOverrides {
    fn of(&self, plugin: &PluginName, user: &UserId) -> Option<Arc<Map<String, Value>>> {
        let all = self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        all.get(user)?.get(plugin).cloned()
    }
}
