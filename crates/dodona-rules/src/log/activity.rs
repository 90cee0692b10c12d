//! Firings per day.

use dodona_plugin::CallError;
use dodona_plugin::store::Tx;

use super::write::Log;

impl Log {
    /// Counts the firings of each rule for a user, by day, from `first` on: rule, day, count.
    pub(crate) async fn firings_by_day(
        &self,
        user: String,
        first: String,
    ) -> Result<Vec<(String, String, u64)>, CallError> {
        self.flush().await;
        let read = move |tx: &Tx<'_>| {
            let sql = "select rule_id, substr(created_at, 1, 10), count(*)
                from rule_execution_log
                where user_id = ?1 and created_at >= ?2 and condition_result = 1
                group by 1, 2";
            tx.query(sql, (&user, &first), |row| {
                let times = row.get::<i64>(2)?.unsigned_abs();
                Ok((row.get(0)?, row.get(1)?, times))
            })
        };
        Ok(self.db.read(read).await?)
    }
}
