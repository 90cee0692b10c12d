//! How often each method was called.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use dodona_plugin::store::{Db, DbError, Tx};

/// Counts in memory and adds to the database when asked for the sums, so that a call which only
/// reads does not wait for the disk. A crash loses the counts since then.
#[derive(Default)]
pub(super) struct Counter {
    since: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counter {
    pub(super) fn add(&self, verb: &'static str) {
        *self
            .since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(verb)
            .or_default() += 1;
    }

    /// Stores what was counted since the last time and tells the sums.
    pub(super) async fn flush(&self, db: &Db) -> Result<BTreeMap<String, u64>, DbError> {
        let since = std::mem::take(&mut *self.since.lock().unwrap_or_else(PoisonError::into_inner));
        db.write(move |tx| {
            for (verb, more) in since {
                add(tx, verb, more)?;
            }
            let sums: Vec<(String, u64)> =
                tx.query("select verb, count from calls", (), |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            Ok(sums.into_iter().collect())
        })
        .await
    }
}

/// Adds to one method's count and tells the sum.
pub(super) fn add(tx: &Tx<'_>, verb: &str, more: u64) -> Result<u64, DbError> {
    let sql = "insert into calls (verb, count) values (?1, ?2)
        on conflict (verb) do update set count = count + excluded.count returning count";
    tx.query_one(sql, (verb, more), |row| row.get(0))
}
