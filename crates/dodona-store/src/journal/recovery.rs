//! Closing streams and calls that an earlier process left open.

use std::collections::BTreeSet;

use dodona_proto::{
    CallId, DoneStatus, ErrorCode, ItemBody, ItemKind, MethodName, PluginPath, ProjectId, StreamId,
    UserId,
};
use jiff::Timestamp;
use serde_json::Value;

use super::entry::{call_suffix, kind_number, mangled};
use super::schema;
use crate::{Db, DbError, Row, Tx};

/// The reason of calls that recovery ends.
const INTERRUPTED: &str = "interrupted";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Number of streams without an end.
    pub streams: u64,
    /// Number of mutating calls without an end.
    pub calls: u64,
}

/// Maximum number of interrupted streams kept in memory for their plugins.
const MOST_REMEMBERED: usize = 10_000;

/// A stream that was open when an earlier process ended.
#[derive(Debug, Clone, PartialEq)]
pub struct InterruptedStream {
    pub stream: StreamId,
    /// The method that wrote it.
    pub method: MethodName,
    pub user: UserId,
    /// The project it is about.
    pub project: Option<ProjectId>,
    /// The parameters of the call, with secrets redacted.
    pub params: Value,
}

fn interrupted(row: &Row<'_>, stream: StreamId, method: MethodName) -> Option<InterruptedStream> {
    let project: Option<String> = row.get(4).ok()?;
    Some(InterruptedStream {
        stream,
        method,
        user: row.text(3).ok()?.parse().ok()?,
        project: project.map(|id| id.parse()).transpose().ok()?,
        params: serde_json::from_str(row.text(5).ok()?).ok()?,
    })
}

/// Ends all open streams and calls in one transaction.
pub(super) async fn close_interrupted(
    db: &Db,
) -> Result<(Recovered, Vec<InterruptedStream>), DbError> {
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
            let interrupted = interrupted(row, stream, method);
            Ok((row.get::<i64>(0)?, stream, root, interrupted))
        })?;
        for (no, stream, root, _) in &open {
            close_stream(tx, *no, *stream, root, INTERRUPTED)?;
        }
        let code = ErrorCode::Interrupted;
        let calls = tx.execute(
            schema::END_OPEN_CALLS,
            (now, DoneStatus::Failed.as_str(), code.as_str()),
        )?;
        let recovered = Recovered {
            streams: open.len() as u64,
            calls,
        };
        let streams = open.into_iter().filter_map(|(.., stream)| stream);
        Ok((recovered, streams.take(MOST_REMEMBERED).collect()))
    })
    .await
}

/// Gives an interrupted stream the last item that it lacks, in the place of the terminal that
/// recovery wrote, and ends it as complete. False where the stream is not such a one.
pub(super) async fn complete(db: &Db, stream: StreamId, last: String) -> Result<bool, DbError> {
    db.write(move |tx| {
        let found = tx.query_opt(
            schema::INTERRUPTED_STREAM,
            (stream.to_string().as_str(), INTERRUPTED),
            |row| {
                let method: MethodName = row
                    .text(1)?
                    .parse()
                    .map_err(|_| mangled("streams.method"))?;
                Ok((row.get::<i64>(0)?, method, row.get::<i64>(2)?))
            },
        )?;
        let Some((no, method, seq)) = found else {
            return Ok(false);
        };
        let done = kind_number(ItemKind::Done);
        // The terminal of the root is the last item.
        if tx.execute(schema::DROP_ITEM, (no, seq, done))? == 0 {
            return Ok(false);
        }
        let now = Timestamp::now().as_millisecond();
        let end = ItemBody::Done {
            status: DoneStatus::Complete,
            reason: None,
        };
        let end = serde_json::to_string(&end).expect("a terminal can always be written as JSON");
        let call = call_suffix(&stream.root_call());
        let data = kind_number(ItemKind::Data);
        for (seq, kind, body) in [(seq, data, &last), (seq + 1, done, &end)] {
            let item = (
                no,
                seq,
                call.as_str(),
                method.plugin(),
                kind,
                body.as_str(),
                now,
            );
            tx.execute(schema::ADD_ITEM, item)?;
        }
        let status = DoneStatus::Complete.as_str();
        tx.execute(schema::END_STREAM, (no, now, status, None::<&str>))?;
        Ok(true)
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
