//! What the journal forgets.

use std::time::Duration;

use jiff::Timestamp;

use super::schema;
use crate::{Db, DbError};

/// How many rows one transaction removes: short enough not to hold up the pump.
const STEP: u32 = 2_000;

/// What is kept. A stream or call that is still open is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Nothing older than this.
    pub max_age: Duration,
    /// Not more than about this many bytes; the oldest go first.
    pub max_bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(90 * 24 * 3600),
            max_bytes: 1 << 30,
        }
    }
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Streams, with all their items.
    pub streams: u64,
    /// Ended calls of mutating methods.
    pub calls: u64,
    /// Events, trigger inputs and decisions.
    pub records: u64,
}

/// How much the journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// About how many bytes, counted as [`Retention::max_bytes`] counts them.
    pub bytes: u64,
    /// When the oldest of what has ended was; nothing where there is nothing.
    pub oldest: Option<Timestamp>,
}

/// Measures by reading all rows: not for a hot path.
pub(super) async fn held(db: &Db) -> Result<Held, DbError> {
    let (bytes, oldest) = db.read(measure).await?;
    Ok(Held {
        bytes,
        oldest: oldest.and_then(|millis| Timestamp::from_millisecond(millis).ok()),
    })
}

fn measure(tx: &crate::Tx<'_>) -> Result<(u64, Option<i64>), DbError> {
    let bytes = tx.query_one(schema::BYTES, (), |row| row.get(0))?;
    let oldest = tx.query_one(schema::OLDEST, (), |row| row.get(0))?;
    Ok((bytes, oldest))
}

pub(super) async fn prune(db: &Db, retention: Retention) -> Result<Pruned, DbError> {
    let mut pruned = Pruned::default();
    let age = i64::try_from(retention.max_age.as_millis()).unwrap_or(i64::MAX);
    let mut cutoff = Timestamp::now().as_millisecond().saturating_sub(age);
    loop {
        drop_before(db, cutoff, &mut pruned).await?;
        let (bytes, oldest) = db.read(measure).await?;
        let Some(oldest) = oldest.filter(|_| bytes > retention.max_bytes) else {
            return Ok(pruned);
        };
        // Halve the time that is kept until the rest fits: few rounds, whatever the density.
        let now = Timestamp::now().as_millisecond();
        cutoff = oldest + ((now - oldest) / 2).max(1);
    }
}

async fn drop_before(db: &Db, cutoff: i64, pruned: &mut Pruned) -> Result<(), DbError> {
    loop {
        let (streams, more) = db.write(move |tx| drop_a_stream_step(tx, cutoff)).await?;
        pruned.streams += streams;
        if !more {
            break;
        }
    }
    for (sql, count) in [
        (schema::DROP_CALLS, &mut pruned.calls),
        (schema::DROP_RECORDS, &mut pruned.records),
    ] {
        loop {
            let dropped = db.write(move |tx| tx.execute(sql, (cutoff, STEP))).await?;
            *count += dropped;
            if dropped < u64::from(STEP) {
                break;
            }
        }
    }
    Ok(())
}

/// Removes whole streams, oldest first, until a step's worth of rows is gone. A stream longer
/// than a step loses its row last, so what is left of it is found again.
fn drop_a_stream_step(tx: &crate::Tx<'_>, cutoff: i64) -> Result<(u64, bool), DbError> {
    let ended: Vec<i64> = tx.query(schema::ENDED_BEFORE, (cutoff, STEP), |row| row.get(0))?;
    let (mut streams, mut rows) = (0, 0);
    for no in &ended {
        rows += tx.execute(schema::DROP_ITEMS, (*no, STEP))? + 1;
        if rows > u64::from(STEP) {
            return Ok((streams, true));
        }
        streams += tx.execute(schema::DROP_STREAM, (*no,))?;
    }
    Ok((streams, ended.len() == STEP as usize))
}
