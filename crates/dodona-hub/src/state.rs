//! The state of plugins: the table `plugin_state`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_plugin::{BoxFuture, CallError, ErrorCode, StateBackend, StateOwner, StateSnapshot};
use dodona_proto::PluginName;
use dodona_store::{Db, DbError, Tx};
use serde_json::{Map, Value};

/// Maximum length of a key in bytes.
const KEY_BYTES: usize = 256;

/// Maximum size of a value in bytes of JSON.
const VALUE_BYTES: usize = 64 << 10;

/// Maximum number of keys per owner.
const MOST_KEYS: i64 = 10_000;

/// Maximum number of owners whose values are cached.
const MOST_HELD: usize = 1_000;

/// The state of all owners.
pub(crate) struct PluginStates {
    db: Db,
    held: Mutex<Held>,
}

/// Cached values. Rules read the state at every event.
#[derive(Default)]
struct Held {
    owners: HashMap<StateOwner, StateSnapshot>,
    /// Counts changes, so that a value read before a change is not cached after it.
    changes: u64,
}

impl PluginStates {
    pub(crate) fn new(db: Db) -> Self {
        let held = Mutex::default();
        Self { db, held }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes an owner from the cache.
    fn changed(&self, owner: &StateOwner) {
        let mut held = self.held();
        held.changes += 1;
        held.owners.remove(owner);
    }

    async fn load(&self, owner: &StateOwner) -> Result<StateSnapshot, CallError> {
        let row = Row::of(owner);
        let read = move |tx: &Tx<'_>| {
            let sql = "select key, value_json from plugin_state
                       where user_id = ?1 and project_id = ?2 and plugin_id = ?3 order by key";
            let params = (&row.user, &row.project, &row.plugin);
            let values = tx.query(sql, params, |row| {
                Ok((row.get::<String>(0)?, row.get::<String>(1)?))
            })?;
            Ok((values, row.version(tx)?))
        };
        let (found, version) = self.db.read(read).await?;
        let values = found
            .into_iter()
            .map(|(key, text)| Ok((key, stored(&text)?)))
            .collect::<Result<Map<_, _>, CallError>>()?;
        Ok(StateSnapshot {
            values: Arc::new(Value::Object(values)),
            version,
        })
    }
}

/// An owner as stored in the table.
struct Row {
    user: String,
    project: String,
    plugin: String,
}

impl Row {
    fn of(owner: &StateOwner) -> Self {
        let project = owner.project.as_ref();
        Self {
            user: owner.user.to_string(),
            // Calls without a project have their own values.
            project: project.map(ToString::to_string).unwrap_or_default(),
            plugin: owner.plugin.to_string(),
        }
    }

    fn has(&self, tx: &Tx<'_>, key: &str) -> Result<bool, DbError> {
        let sql = "select 1 from plugin_state
                   where user_id = ?1 and project_id = ?2 and plugin_id = ?3 and key = ?4";
        let params = (&self.user, &self.project, &self.plugin, key);
        Ok(tx.query_opt(sql, params, |_| Ok(()))?.is_some())
    }

    fn count(&self, tx: &Tx<'_>) -> Result<i64, DbError> {
        let sql = "select count(*) from plugin_state
                   where user_id = ?1 and project_id = ?2 and plugin_id = ?3";
        tx.query_one(sql, (&self.user, &self.project, &self.plugin), |row| {
            row.get(0)
        })
    }

    fn version(&self, tx: &Tx<'_>) -> Result<u64, DbError> {
        let sql = "select version from plugin_state_version
                   where user_id = ?1 and project_id = ?2 and plugin_id = ?3";
        let params = (&self.user, &self.project, &self.plugin);
        let version = tx.query_opt(sql, params, |row| row.get::<i64>(0))?;
        Ok(version.unwrap_or(0).unsigned_abs())
    }

    fn grow(&self, tx: &Tx<'_>) -> Result<i64, DbError> {
        let sql = "insert into plugin_state_version (user_id, project_id, plugin_id, version)
                   values (?1, ?2, ?3, 1)
                   on conflict do update set version = version + 1 returning version";
        tx.query_one(sql, (&self.user, &self.project, &self.plugin), |row| {
            row.get(0)
        })
    }
}

impl StateBackend for PluginStates {
    fn get<'a>(
        &'a self,
        owner: &'a StateOwner,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, CallError>> {
        let (row, key) = (Row::of(owner), key.to_owned());
        Box::pin(async move {
            let sql = "select value_json from plugin_state
                       where user_id = ?1 and project_id = ?2 and plugin_id = ?3 and key = ?4";
            let read = move |tx: &Tx<'_>| {
                let params = (&row.user, &row.project, &row.plugin, &key);
                tx.query_opt(sql, params, |row| row.get::<String>(0))
            };
            self.db
                .read(read)
                .await?
                .map(|text| stored(&text))
                .transpose()
        })
    }

    fn set<'a>(
        &'a self,
        owner: &'a StateOwner,
        key: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<u64, CallError>> {
        let (row, key) = (Row::of(owner), key.to_owned());
        Box::pin(async move {
            let text = fitting(&key, &value)?;
            let write = move |tx: &Tx<'_>| {
                if !row.has(tx, &key)? && row.count(tx)? >= MOST_KEYS {
                    return Ok(None);
                }
                tx.execute(
                    "insert into plugin_state (user_id, project_id, plugin_id, key, value_json)
                     values (?1, ?2, ?3, ?4, ?5)
                     on conflict (user_id, project_id, plugin_id, key) do update
                     set value_json = excluded.value_json, updated_at = datetime('now')",
                    (&row.user, &row.project, &row.plugin, &key, &text),
                )?;
                row.grow(tx).map(Some)
            };
            let written = self.db.write(write).await;
            self.changed(owner);
            match written? {
                Some(version) => Ok(version.unsigned_abs()),
                None => Err(limit(format!(
                    "plugin `{}` keeps {MOST_KEYS} values here already",
                    owner.plugin
                ))),
            }
        })
    }

    fn delete<'a>(
        &'a self,
        owner: &'a StateOwner,
        key: &'a str,
    ) -> BoxFuture<'a, Result<bool, CallError>> {
        let (row, key) = (Row::of(owner), key.to_owned());
        Box::pin(async move {
            let write = move |tx: &Tx<'_>| {
                let sql = "delete from plugin_state
                           where user_id = ?1 and project_id = ?2 and plugin_id = ?3 and key = ?4";
                let params = (&row.user, &row.project, &row.plugin, &key);
                let there = tx.execute(sql, params)? > 0;
                if there {
                    row.grow(tx)?;
                }
                Ok(there)
            };
            let written = self.db.write(write).await;
            self.changed(owner);
            Ok(written?)
        })
    }

    fn list<'a>(
        &'a self,
        owner: &'a StateOwner,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, Value)>, CallError>> {
        let (row, prefix) = (Row::of(owner), prefix.to_owned());
        Box::pin(async move {
            // Not `like`, because `_` and `%` are wildcards there.
            let sql = "select key, value_json from plugin_state
                       where user_id = ?1 and project_id = ?2 and plugin_id = ?3
                       and key >= ?4 and substr(key, 1, length(?4)) = ?4
                       order by key";
            let read = move |tx: &Tx<'_>| {
                let params = (&row.user, &row.project, &row.plugin, &prefix);
                tx.query(sql, params, |row| {
                    Ok((row.get::<String>(0)?, row.get::<String>(1)?))
                })
            };
            let found = self.db.read(read).await?;
            let values = found
                .into_iter()
                .map(|(key, text)| Ok((key, stored(&text)?)));
            values.collect()
        })
    }

    fn delete_all<'a>(&'a self, plugin: &'a PluginName) -> BoxFuture<'a, Result<u64, CallError>> {
        let row = plugin.to_string();
        Box::pin(async move {
            let deleted = self.db.write(move |tx| {
                // Versions never decrease, even if a plugin is removed and added again.
                let sql = "update plugin_state_version set version = version + 1
                           where plugin_id = ?1";
                tx.execute(sql, (&row,))?;
                tx.execute("delete from plugin_state where plugin_id = ?1", (&row,))
            });
            let deleted = deleted.await;
            let mut held = self.held();
            held.changes += 1;
            held.owners.retain(|owner, _| owner.plugin != *plugin);
            Ok(deleted?)
        })
    }

    fn version<'a>(&'a self, owner: &'a StateOwner) -> BoxFuture<'a, Result<u64, CallError>> {
        let row = Row::of(owner);
        Box::pin(async move { Ok(self.db.read(move |tx| row.version(tx)).await?) })
    }

    fn snapshot<'a>(
        &'a self,
        owner: &'a StateOwner,
    ) -> BoxFuture<'a, Result<StateSnapshot, CallError>> {
        Box::pin(async move {
            let before = {
                let held = self.held();
                if let Some(known) = held.owners.get(owner) {
                    return Ok(known.clone());
                }
                held.changes
            };
            let found = self.load(owner).await?;
            let mut held = self.held();
            if held.changes == before {
                if held.owners.len() >= MOST_HELD {
                    held.owners.clear();
                }
                held.owners.insert(owner.clone(), found.clone());
            }
            Ok(found)
        })
    }
}

/// Serialises the value. Fails if it or its key is too large.
fn fitting(key: &str, value: &Value) -> Result<String, CallError> {
    if key.is_empty() || key.len() > KEY_BYTES {
        return Err(limit(format!("a key must have 1 to {KEY_BYTES} bytes")));
    }
    let text = value.to_string();
    if text.len() > VALUE_BYTES {
        let size = text.len();
        return Err(limit(format!(
            "the value of `{key}` has {size} bytes; the maximum is {VALUE_BYTES}"
        )));
    }
    Ok(text)
}

fn limit(message: String) -> CallError {
    CallError::new(ErrorCode::TooLarge, message)
}

fn stored(text: &str) -> Result<Value, CallError> {
    serde_json::from_str(text).map_err(|error| {
        CallError::new(ErrorCode::Internal, "failed to parse a stored value").log(error)
    })
}
