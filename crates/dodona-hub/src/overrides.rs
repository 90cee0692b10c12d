//! Settings of users: the table `user_settings`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use dodona_plugin::{CallError, Overrides};
use dodona_proto::{PluginName, UserId};
use dodona_store::{Db, DbError};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

type Chosen = BTreeMap<PluginName, Arc<Map<String, Value>>>;

/// The settings of all users, held in memory because every call may read them.
pub(crate) struct UserOverrides {
    db: Db,
    /// Held while a user's settings are read, changed and stored.
    writing: Mutex<()>,
    chosen: RwLock<HashMap<UserId, Chosen>>,
    /// The rules that users disabled.
    disabled: RwLock<HashMap<UserId, Arc<BTreeSet<String>>>>,
}

impl UserOverrides {
    pub(crate) async fn load(db: Db) -> Result<Self, DbError> {
        let sql = "select user_id, plugin_settings_json, disabled_rules_json from user_settings";
        let rows = db
            .read(move |tx| {
                tx.query(sql, (), |row| {
                    let user: String = row.get(0)?;
                    Ok((user, row.get::<String>(1)?, row.get::<String>(2)?))
                })
            })
            .await?;
        let (mut chosen, mut disabled) = (HashMap::new(), HashMap::new());
        for (user, settings, rules) in rows {
            let Ok(user) = UserId::new(&user) else {
                continue;
            };
            if let Some(rules) = readable(&user, &rules) {
                disabled.insert(user.clone(), Arc::new(rules));
            }
            if let Some(settings) = readable(&user, &settings) {
                chosen.insert(user, settings);
            }
        }
        Ok(Self {
            db,
            writing: Mutex::default(),
            chosen: RwLock::new(chosen),
            disabled: RwLock::new(disabled),
        })
    }

    /// Sets a user's setting, or removes it with `None`. The value must be validated before.
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
        if mine.is_empty() {
            chosen.remove(plugin)
        } else {
            chosen.insert(plugin.clone(), Arc::new(mine))
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

    /// The rules that a user disabled.
    pub(crate) fn disabled(&self, user: &UserId) -> Arc<BTreeSet<String>> {
        let all = self.disabled.read().unwrap_or_else(PoisonError::into_inner);
        all.get(user).cloned().unwrap_or_default()
    }

    /// Disables or enables a rule for a user.
    pub(crate) async fn disable(
        &self,
        user: &UserId,
        rule: &str,
        disabled: bool,
    ) -> Result<(), CallError> {
        let _writing = self.writing.lock().await;
        let mut rules = BTreeSet::clone(&self.disabled(user));
        let changed = if disabled {
            rules.insert(rule.to_owned())
        } else {
            rules.remove(rule)
        };
        if !changed {
            return Ok(());
        }
        let (row, text) = (user.to_string(), json!(rules).to_string());
        let sql = "insert into user_settings (user_id, disabled_rules_json) values (?1, ?2)
                   on conflict (user_id) do update
                   set disabled_rules_json = excluded.disabled_rules_json";
        self.db
            .write(move |tx| tx.execute(sql, (&row, &text)))
            .await?;
        let mut all = self
            .disabled
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        all.insert(user.clone(), Arc::new(rules));
        Ok(())
    }

    /// All settings of a user, by plugin.
    pub(crate) fn choices(&self, user: &UserId) -> Map<String, Value> {
        let all = self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        let mine = all.get(user).into_iter().flatten();
        mine.map(|(plugin, chosen)| (plugin.to_string(), Value::Object(Map::clone(chosen))))
            .collect()
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

/// The stored settings of a user, if they can be parsed.
fn readable<T: serde::de::DeserializeOwned>(user: &UserId, text: &str) -> Option<T> {
    serde_json::from_str(text)
        .inspect_err(|error| tracing::warn!(%user, %error, "failed to read the settings of a user"))
        .ok()
}
