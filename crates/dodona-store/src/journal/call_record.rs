//! Records of mutating calls.

use dodona_proto::{DoneStatus, ErrorCode};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::entry::{CallHead, mangled};
use crate::{DbError, Row};

/// A recorded call of a mutating method.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// Start of the call.
    pub head: CallHead,
    /// End of the call, if it has ended.
    pub end: Option<CallEnd>,
}

/// The end of a recorded call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEnd {
    pub status: DoneStatus,
    /// Error code, if it failed.
    pub code: Option<ErrorCode>,
    pub ended: Timestamp,
}

pub(super) fn read(row: &Row<'_>) -> Result<CallRecord, DbError> {
    let head = CallHead {
        call: text(row, 0)?,
        path: text(row, 1)?,
        method: text(row, 2)?,
        user: text(row, 3)?,
        project: row.get::<Option<String>>(4)?.map(parse).transpose()?,
        params: serde_json::from_str(row.text(5)?).map_err(|_| mangled("calls.params"))?,
        began: moment(row.get(6)?)?,
    };
    let Some(ended) = row.get::<Option<i64>>(7)? else {
        return Ok(CallRecord { head, end: None });
    };
    let end = CallEnd {
        status: text(row, 8)?,
        code: row.get::<Option<String>>(9)?.map(ErrorCode::from),
        ended: moment(ended)?,
    };
    Ok(CallRecord {
        head,
        end: Some(end),
    })
}

fn text<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> Result<T, DbError> {
    parse(row.text(index)?.to_owned())
}

fn parse<T: DeserializeOwned>(text: String) -> Result<T, DbError> {
    serde_json::from_value(Value::String(text)).map_err(|_| mangled("calls"))
}

fn moment(millis: i64) -> Result<Timestamp, DbError> {
    Timestamp::from_millisecond(millis).map_err(|_| mangled("calls"))
}
