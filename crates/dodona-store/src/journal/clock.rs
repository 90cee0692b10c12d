//! The clock by which the journal's age counts.
//!
//! A start with a wrong clock must not erase history. So the time of the last run is stored, and a
//! clock that is far ahead of it is not believed at once.

use std::time::Duration;

use jiff::Timestamp;

use super::schema;
use crate::{Db, DbError, Tx};

const DAY_MS: i64 = 24 * 3600 * 1000;

/// How far ahead of the last run the system's clock may be. Longer than a holiday week without
/// Dodona, shorter than any age that is usual for `journal.max_age`.
const TOLERANCE_MS: i64 = 7 * DAY_MS;

/// On how many different days something must have been journaled under a clock that is ahead
/// before it counts as right.
const DAYS_OF_USE: u64 = 7;

/// What the system's clock is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// The time that retention may use, in milliseconds since 1970.
    pub(super) trusted_ms: i64,
    /// How many days the system's clock is ahead of that, where it is not believed.
    pub(super) days_ahead: Option<i64>,
}

/// Stores the time of the newest entry as the first trusted one. Called before anything is written
/// at a start, so that a wrong clock is not among the entries yet.
pub(super) async fn start(db: &Db) -> Result<i64, DbError> {
    db.write(|tx| {
        let newest: Option<i64> = tx.query_one(schema::NEWEST, (), |row| row.get(0))?;
        let now = Timestamp::now().as_millisecond();
        tx.execute(schema::START_CLOCK, (newest.unwrap_or(now).min(now),))?;
        tx.query_one(schema::READ_CLOCK, (), |row| row.get(0))
    })
    .await
}

/// Reads the system's clock, `elapsed` after the reading before it in this process or the start.
pub(super) async fn read(db: &Db, elapsed: Duration) -> Result<ClockReading, DbError> {
    let now = Timestamp::now().as_millisecond();
    db.write(move |tx| advance(tx, now, elapsed)).await
}

fn advance(tx: &Tx<'_>, now: i64, elapsed: Duration) -> Result<ClockReading, DbError> {
    let elapsed = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    let (trusted, credit) = tx.query_one(schema::READ_CLOCK, (), |row| {
        Ok((row.get::<i64>(0)?, row.get::<i64>(1)?))
    })?;
    // Time that passed while this process ran is real, whatever the system's clock shows.
    let (mut trusted, mut credit) = (trusted.saturating_add(elapsed), credit + elapsed);
    if now.saturating_sub(trusted) > TOLERANCE_MS && credit >= DAY_MS {
        // One step for each real day of uptime, so that a clock that is right is reached in the end.
        (trusted, credit) = (trusted + DAY_MS, credit - DAY_MS);
    }
    let is_ahead = now.saturating_sub(trusted) > TOLERANCE_MS
        && tx.query_one(schema::DAYS_SINCE, (trusted,), |row| row.get::<u64>(0))? < DAYS_OF_USE;
    if !is_ahead {
        (trusted, credit) = (now, 0);
    }
    tx.execute(schema::SET_CLOCK, (trusted, credit))?;
    Ok(ClockReading {
        trusted_ms: trusted.min(now),
        days_ahead: is_ahead.then_some((now - trusted) / DAY_MS),
    })
}
