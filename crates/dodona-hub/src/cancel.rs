//! Cancelling calls.

use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{CallError, CallId, CallSummary, ErrorCode, PluginPath, Principal, StreamId};

use crate::call::RunningCall;
use crate::call_tree::CallTree;
use crate::hub::HubInner;

/// How long to wait for cancelled calls to end before the answer: longer than the grace time that a
/// cancelled call has.
const CANCEL_WAIT: Duration = Duration::from_millis(100);

/// The calls to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelTarget {
    /// One call and all calls nested in it.
    Call(CallId),
    /// The root call of a stream and all calls nested in it.
    Stream(StreamId),
    /// All calls whose path starts with `prefix`.
    Path {
        /// Compared by whole segments.
        prefix: PluginPath,
        /// Only calls of this stream. Default: all streams that the caller may see.
        within: Option<StreamId>,
    },
}

impl HubInner {
    /// Cancels calls, waits up to 100 ms for them to end, and returns them. `by` is the call that
    /// cancels; it and its ancestors are not cancelled.
    pub(crate) async fn cancel(
        &self,
        caller: &Principal,
        target: &CancelTarget,
        by: CallId,
    ) -> Result<Vec<CallSummary>, CallError> {
        let mut cancelled = Vec::new();
        let mut trees = Vec::new();
        for tree in self.visible_trees(caller, target) {
            let calls: Vec<Arc<RunningCall>> = tree
                .running_calls()
                .into_iter()
                .filter(|call| matches(&call.info, target) && !by.is_within(&call.info.call_id))
                .collect();
            calls.iter().for_each(|call| call.info.cancel.cancel());
            cancelled.extend(calls.iter().map(|call| call.summary()));
            trees.push((tree, calls));
        }
        if cancelled.is_empty() && !matches!(target, CancelTarget::Path { .. }) {
            return Err(
                CallError::new(ErrorCode::NotFound, "no such call is running")
                    .hint("run `dodona calls` to list the running calls"),
            );
        }
        let _ = tokio::time::timeout(CANCEL_WAIT, wait_until_ended(trees)).await;
        cancelled.sort_by_key(|call| call.call_id);
        Ok(cancelled)
    }

    fn visible_trees(&self, caller: &Principal, target: &CancelTarget) -> Vec<Arc<CallTree>> {
        let trees = match target {
            CancelTarget::Call(call) => self.call_trees.get(call.stream()).into_iter().collect(),
            CancelTarget::Stream(stream)
            | CancelTarget::Path {
                within: Some(stream),
                ..
            } => self.call_trees.get(*stream).into_iter().collect(),
            CancelTarget::Path { within: None, .. } => self.call_trees.all(),
        };
        trees
            .into_iter()
            .filter(|tree: &Arc<CallTree>| self.may_see(caller, &tree.user))
            .collect()
    }
}

fn matches(info: &dodona_plugin::CallInfo, target: &CancelTarget) -> bool {
    match target {
        CancelTarget::Call(call) => info.call_id.is_within(call),
        CancelTarget::Stream(stream) => info.call_id.stream() == *stream,
        CancelTarget::Path { prefix, .. } => info.path.starts_with(prefix),
    }
}

/// Completes when none of the calls is running.
async fn wait_until_ended(trees: Vec<(Arc<CallTree>, Vec<Arc<RunningCall>>)>) {
    for (tree, mut calls) in trees {
        loop {
            // Registered before the calls are checked, so that no end is missed.
            let ended = tree.ended.notified();
            while calls.last().is_some_and(|call| call.is_removed()) {
                calls.pop();
            }
            if calls.is_empty() {
                break;
            }
            ended.await;
        }
    }
}
