//! What callbacks did.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use dodona_proto::{HookPoint, PluginName, UserId};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// How many records are kept.
const KEPT: usize = 1000;

/// One run of a callback.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    /// When it ended.
    pub at: Timestamp,
    /// Whose callback.
    pub plugin: PluginName,
    /// At which point.
    pub hook: HookPoint,
    /// Which of the plugin's, where it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// About which query, where it was about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// For which user, where it was about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// How long it took.
    pub micros: f64,
    /// What it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Value>,
    /// How many effects it wants.
    pub effects: usize,
    /// Why it did not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The newest records: of every callback that changed something, wanted something, failed or
/// waited, and of all others too while somebody watches. What is not recorded is counted.
#[derive(Debug, Default)]
pub struct Trace {
    watched: AtomicBool,
    records: Mutex<VecDeque<RunRecord>>,
}

impl Trace {
    /// Records quiet runs too, or no longer. That costs two looks at the clock a run.
    pub fn watch(&self, all: bool) {
        self.watched.store(all, Ordering::Relaxed);
    }

    /// Whether quiet runs are recorded.
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
