//! Closing what a process that ended left open.

use std::collections::BTreeSet;

use dodona_proto::{
    CallId, DoneStatus, ErrorCode, ItemBody, ItemKind, MethodName, PluginPath, StreamId,
};
use jiff::Timestamp;

use super::entry::{call_suffix, kind_number, mangled};
use super::schema;
use crate::{Db, DbError, Tx};

/// Why a call found open at a start ends.
const INTERRUPTED: &str = "interrupted";

/// What was found open, and closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Streams that had no terminal.
    pub streams: u64,
    /// Calls of mutating methods that had no end.
    pub calls: u64,
}

/// Gives every open stream its terminals and every open call its end, in one transaction.
pub(super) async fn close_interrupted(db: &Db) -> Result<Recovered, DbError> {
    db.write(|tx| {
        let now = Timestamp::now().as_millisecond();
        let open = tx.query(schema::OPEN_STREAMS, (), |row| {
            let stream: StreamId = row
                .text(1)?
                .parse()
                .map_err(|_| mangled("streams.stream_id"))?;
            let method: MethodName = row
                .text(2)?
                .parse()
                .map_err(|_| mangled("streams.method"))?;
            let root = method.plugin().parse();
            let root: PluginPath = root.map_err(|_| mangled("streams.method"))?;
            Ok((row.get::<i64>(0)?, stream, root))
        })?;
        for (no, stream, root) in &open {
            close_stream(tx, *no, *stream, root, INTERRUPTED)?;
        }
        let code = ErrorCode::Interrupted;
        let calls = tx.execute(
            schema::END_OPEN_CALLS,
            (now, DoneStatus::Failed.as_str(), code.as_str()),
        )?;
        Ok(Recovered {
            streams: open.len() as u64,
            calls,
        })
    })
    .await
}

/// Gives a stream the terminals it lacks, after whatever of it is stored; one that is not there
/// or has ended gets none.
pub(super) fn close_stream(
    tx: &Tx<'_>,
    no: i64,
    stream: StreamId,
    root: &PluginPath,
    reason: &str,
) -> Result<(), DbError> {
    let now = Timestamp::now().as_millisecond();
    let end = (no, now, DoneStatus::Failed.as_str(), reason);
    if tx.execute(schema::END_OPEN_STREAM, end)? == 0 {
        return Ok(());
    }
    let mut open = BTreeSet::from([(stream.root_call(), root.clone())]);
    let mut last = 0;
    let mut after = 0_u64;
    // In pages, because a stream may be longer than memory.
    loop {
        let page = tx.query(schema::CALLS_OF_ITEMS, (no, after), |row| {
            let call = format!("{stream}{}", row.text(0)?);
            let call: CallId = call.parse().map_err(|_| mangled("items.call"))?;
            let path: PluginPath = row.text(1)?.parse().map_err(|_| mangled("items.path"))?;
            Ok((call, path, row.get::<i64>(2)?, row.get::<u64>(3)?))
        })?;
        for (call, path, kind, seq) in &page {
            last = *seq;
            let key = (*call, path.clone());
            if *kind == kind_number(ItemKind::Done) {
                open.remove(&key);
            } else {
                open.insert(key);
            }
        }
        match page.last() {
            Some((.., seq)) => after = *seq,
            None => break,
        }
    }
    // Children sort after their parents: backwards, every call ends before the one that made it.
    let body = ItemBody::Done {
        status: DoneStatus::Failed,
        reason: Some(reason.to_owned()),
    };
    let body = serde_json::to_string(&body).expect("a terminal can always be written as JSON");
    for (call, path) in open.iter().rev() {
        last += 1;
        let (call, kind) = (call_suffix(call), kind_number(ItemKind::Done));
        tx.execute(
            schema::ADD_ITEM,
            (
                no,
                last,
                call.as_str(),
                path.as_str(),
                kind,
                body.as_str(),
                now,
            ),
        )?;
    }
    Ok(())
}
