//! Reading a stream.

use std::sync::Arc;

use dodona_proto::StreamId;
use tokio::sync::watch;

use super::entry::{StoredItem, read_item};
use super::live::{LiveStream, Tail, TailState};
use super::{JournalError, schema};
use crate::{Db, DbError};

/// Maximum number of items per read.
const PAGE: u32 = 256;

/// Reads a stream by item number: stored items first, then new ones. Holds only its position, so an idle reader
/// costs nothing.
pub struct StreamReader {
    db: Db,
    stream: StreamId,
    live: Option<(Arc<LiveStream>, watch::Receiver<Tail>)>,
    after: u64,
    ended: bool,
}

impl StreamReader {
    pub(super) fn new(
        db: Db,
        stream: StreamId,
        live: Option<Arc<LiveStream>>,
        ended: bool,
        after: u64,
    ) -> Self {
        let live = live.filter(|_| !ended).map(|live| {
            let tail = live.watch();
            (live, tail)
        });
        Self {
            db,
            stream,
            live,
            after,
            ended: false,
        }
    }

    /// Whether the stream was running when the reader was created.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Number of the last returned item.
    pub fn position(&self) -> u64 {
        self.after
    }

    /// Waits for the next items and returns at least one; `None` after the last `Done`. Cancel safe: no item is lost
    /// or repeated.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<StoredItem>>>, JournalError> {
        if self.ended {
            return Ok(None);
        }
        let items = match self.await_ring().await? {
            Some(items) => items,
            // Boxed, because a reader that keeps up never gets here and would hold the memory.
            None => Box::pin(read_page(&self.db, self.stream, self.after, PAGE)).await?,
        };
        let Some(last) = items.last() else {
            // A finished stream without further items.
            self.ended = true;
            return Ok(None);
        };
        self.after = last.seq;
        self.ended = last.ends_stream();
        Ok(Some(items))
    }

    /// Waits for something new in a live stream; `None` when it must come from the database.
    async fn await_ring(&mut self) -> Result<Option<Vec<Arc<StoredItem>>>, JournalError> {
        let Some((live, tail)) = &mut self.live else {
            return Ok(None);
        };
        let after = self.after;
        let reached = tail
            .wait_for(|tail| tail.seq > after || tail.state != TailState::Open)
            .await;
        let reached = *reached.map_err(|_| JournalError::Closed)?;
        if reached.seq > after {
            return Ok(live.after(after, reached.seq, PAGE as usize));
        }
        match reached.state {
            TailState::Failed => Err(JournalError::StreamFailed),
            TailState::Ended | TailState::Open => Ok(None),
        }
    }
}

pub(super) async fn read_page(
    db: &Db,
    stream: StreamId,
    after: u64,
    limit: u32,
) -> Result<Vec<Arc<StoredItem>>, DbError> {
    let id = stream.to_string();
    // There is nothing after what a column can hold.
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    db.read(move |tx| {
        tx.query(schema::READ_ITEMS, (id.as_str(), after, limit), |row| {
            Ok(Arc::new(read_item(stream, row)?))
        })
    })
    .await
}
