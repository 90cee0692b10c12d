//! Deleting old entries.

use std::time::Duration;

use jiff::Timestamp;

use super::schema;
use crate::{Db, DbError};

/// Rows deleted per transaction. Small, so that writing is not delayed.
const STEP: u32 = 2_000;

/// Limits of the journal. Open streams and calls are never deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub max_age: Duration,
    /// Approximate maximum size in bytes. The oldest entries are deleted first.
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

/// Number of deleted entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Streams, with all their items.
    pub streams: u64,
    /// Ended calls of mutating methods.
    pub calls: u64,
    /// Events, trigger inputs and decisions.
    pub records: u64,
}

/// Size of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalSize {
    /// About how many bytes, counted as [`Retention::max_bytes`] counts them.
    pub bytes: u64,
    /// When the oldest of what has ended was; nothing where there is nothing.
    pub oldest: Option<Timestamp>,
}

/// Measures by reading all rows: not for a hot path.
pub(super) async fn held(db: &Db) -> Result<JournalSize, DbError> {
    let (bytes, oldest) = db.read(measure).await?;
    Ok(JournalSize {
        bytes,
        oldest: oldest.and_then(|millis| Timestamp::from_millisecond(millis).ok()),
    })
}

fn measure(tx: &crate::Tx<'_>) -> Result<(u64, Option<i64>), DbError> {
    let bytes = tx.query_one(schema::BYTES, (), |row| row.get(0))?;
    let oldest = tx.query_one(schema::OLDEST, (), |row| row.get(0))?;
    Ok((bytes, oldest))
}

pub(super) async fn prune(
    db: &Db,
    retention: Retention,
    trusted_ms: i64,
) -> Result<Pruned, DbError> {
    let mut pruned = Pruned::default();
    let age = i64::try_from(retention.max_age.as_millis()).unwrap_or(i64::MAX);
    drop_before(db, trusted_ms.saturating_sub(age), &mut pruned).await?;
    let (bytes, _) = db.read(measure).await?;
    drop_oldest(db, bytes.saturating_sub(retention.max_bytes), &mut pruned).await?;
    Ok(pruned)
}

/// Removes the oldest entries until at least `excess` bytes are free, and no more than that needs.
async fn drop_oldest(db: &Db, excess: u64, pruned: &mut Pruned) -> Result<(), DbError> {
    let mut step = Step {
        excess,
        ..Step::default()
    };
    while step.excess > 0 || step.unfinished.is_some() {
        let before = step.clone();
        step = db.write(move |tx| before.clone().run(tx)).await?;
        if step.is_exhausted {
            break;
        }
    }
    pruned.streams += step.pruned.streams;
    pruned.calls += step.pruned.calls;
    pruned.records += step.pruned.records;
    Ok(())
}

/// The state between two transactions of [`drop_oldest`].
#[derive(Debug, Clone, Default)]
struct Step {
    /// Bytes that are still to be freed.
    excess: u64,
    /// A stream of which some items are gone: the rest must follow, whatever is free by then.
    unfinished: Option<i64>,
    /// Nothing is left that may be removed.
    is_exhausted: bool,
    pruned: Pruned,
}

impl Step {
    fn run(mut self, tx: &crate::Tx<'_>) -> Result<Self, DbError> {
        let mut rows = 0;
        if let Some(no) = self.unfinished {
            rows += self.drop_stream(tx, no)?;
        }
        let sized = |sql| {
            tx.query(sql, (STEP,), |row| {
                Ok((row.get::<i64>(1)?, row.get::<i64>(0)?, row.get::<u64>(2)?))
            })
        };
        let streams = tx.query(schema::OLDEST_STREAMS, (STEP,), |row| {
            Ok((row.get::<i64>(1)?, row.get::<i64>(0)?))
        })?;
        let mut streams = streams.into_iter().peekable();
        let mut calls = sized(schema::OLDEST_CALLS)?.into_iter().peekable();
        let mut records = sized(schema::OLDEST_RECORDS)?.into_iter().peekable();
        while rows < u64::from(STEP) && self.excess > 0 && self.unfinished.is_none() {
            let stream = streams.peek().map(|(at, _)| *at);
            let call = calls.peek().map(|(at, ..)| *at);
            let record = records.peek().map(|(at, ..)| *at);
            let Some(oldest) = [stream, call, record].into_iter().flatten().min() else {
                self.is_exhausted = rows == 0;
                break;
            };
            if stream == Some(oldest)
                && let Some((_, no)) = streams.next()
            {
                rows += self.drop_stream(tx, no)?;
            } else if call == Some(oldest)
                && let Some((_, no, size)) = calls.next()
            {
                rows += tx.execute(schema::DROP_CALL, (no,))?;
                self.pruned.calls += 1;
                self.excess = self.excess.saturating_sub(size);
            } else if let Some((_, no, size)) = records.next() {
                rows += tx.execute(schema::DROP_RECORD, (no,))?;
                self.pruned.records += 1;
                self.excess = self.excess.saturating_sub(size);
            }
        }
        Ok(self)
    }

    /// Removes a stream, or as much of it as fits into a transaction; the number of rows.
    fn drop_stream(&mut self, tx: &crate::Tx<'_>, no: i64) -> Result<u64, DbError> {
        let size = tx.query_one(schema::FIRST_ITEMS_SIZE, (no, STEP), |row| row.get(0))?;
        self.excess = self.excess.saturating_sub(size);
        let items = tx.execute(schema::DROP_ITEMS, (no, STEP))?;
        if items == u64::from(STEP) {
            self.unfinished = Some(no);
            return Ok(items);
        }
        self.unfinished = None;
        self.pruned.streams += tx.execute(schema::DROP_STREAM, (no,))?;
        Ok(items + 1)
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
