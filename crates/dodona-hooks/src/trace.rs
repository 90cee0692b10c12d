//! The trace of callback runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use dodona_proto::{HookPoint, PluginName, UserId};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// Maximum number of records.
const KEPT: usize = 1000;

/// One run of a callback.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    pub at: Timestamp,
    /// The plugin of the callback.
    pub plugin: PluginName,
    pub hook: HookPoint,
    /// The name of the callback, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The query, if the payload belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The user, if the payload belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    pub micros: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Value>,
    pub effects: usize,
    /// The error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The newest records. Contains runs that returned an edit or effects, failed or were async. Other runs are
/// recorded only while the trace is watched; they are always counted.
#[derive(Debug, Default)]
pub struct Trace {
    watched: AtomicBool,
    records: Mutex<VecDeque<RunRecord>>,
}

impl Trace {
    /// Turns recording of all runs on or off. It costs two clock reads per run.
    pub fn watch(&self, all: bool) {
        self.watched.store(all, Ordering::Relaxed);
    }

    /// Whether all runs are recorded.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// The newest records, oldest first.
    pub fn recent(&self, limit: usize) -> Vec<RunRecord> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = records.len().saturating_sub(limit);
        records.iter().skip(skipped).cloned().collect()
    }

    pub(crate) fn push(&self, record: RunRecord) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() == KEPT {
            records.pop_front();
        }
        records.push_back(record);
    }
}
