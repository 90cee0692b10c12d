//! Metrics of calls.

use std::time::Duration;

use dodona_proto::{DoneStatus, MethodName};
use metrics::{Counter, Histogram, counter, histogram};

/// The metrics of one method. They are looked up once per method, so that counting a call is an addition.
pub(crate) struct Meter {
    endings: [Counter; 5],
    seconds: Histogram,
}

const STATUSES: [DoneStatus; 5] = [
    DoneStatus::Complete,
    DoneStatus::Cancelled,
    DoneStatus::Refused,
    DoneStatus::Limited,
    DoneStatus::Failed,
];

impl Meter {
    pub(crate) fn new(method: &MethodName) -> Self {
        let ending = |status: DoneStatus| counter!("dodona_calls_total", "method" => method.to_string(), "status" => status.as_str());
        Self {
            endings: STATUSES.map(ending),
            seconds: histogram!("dodona_call_seconds", "method" => method.to_string()),
        }
    }

    pub(crate) fn record_end(&self, status: DoneStatus, took: Duration) {
        if let Some(index) = STATUSES.iter().position(|known| *known == status) {
            self.endings[index].increment(1);
        }
        self.seconds.record(took);
    }
}

/// Counts a call that was rejected before its method ran.
pub(crate) fn count_rejected(code: &dodona_proto::ErrorCode) {
    counter!("dodona_calls_refused_total", "code" => code.as_str().to_owned()).increment(1);
}
