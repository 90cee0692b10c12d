//! Stopping calls.

use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{CallError, CallId, CallSummary, ErrorCode, PluginPath, Principal, StreamId};

use crate::hub::Core;
use crate::node::Node;
use crate::tree::Root;

/// How long to wait for calls to end before answering: the time they have, and some more.
const PATIENCE: Duration = Duration::from_millis(100);

/// What to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelTarget {
    /// One call and everything below it.
    Call(CallId),
    /// A root call and everything below it.
    Stream(StreamId),
    /// Every call whose path begins so, in one stream or in all that the caller may see.
    Path {
        /// The path.
        prefix: PluginPath,
        /// The one stream.
        within: Option<StreamId>,
    },
}

impl Core {
    /// Stops calls, waits until they are quiet, and tells which they were. `by` is the call that
    /// asks: it does not stop itself.
    pub(crate) async fn cancel(
        &self,
        who: &Principal,
        target: &CancelTarget,
        by: CallId,
    ) -> Result<Vec<CallSummary>, CallError> {
        let mut stopped = Vec::new();
        let mut trees = Vec::new();
        for root in self.visible(who, target) {
            let nodes: Vec<Arc<Node>> = root
                .nodes()
                .into_iter()
                .filter(|node| matches(&node.info, target) && !by.is_within(&node.info.call_id))
                .collect();
            nodes.iter().for_each(|node| node.info.cancel.cancel());
            stopped.extend(nodes.iter().map(|node| node.summary()));
            trees.push((root, nodes));
        }
        if stopped.is_empty() && !matches!(target, CancelTarget::Path { .. }) {
            return Err(
                CallError::new(ErrorCode::NotFound, "there is no such call running")
                    .hint("run `dodona calls`"),
            );
        }
        let _ = tokio::time::timeout(PATIENCE, quiet(trees)).await;
        stopped.sort_by_key(|call| call.call_id);
        Ok(stopped)
    }

    fn visible(&self, who: &Principal, target: &CancelTarget) -> Vec<Arc<Root>> {
        let roots = match target {
            CancelTarget::Call(call) => self.calls.get(call.stream()).into_iter().collect(),
            CancelTarget::Stream(stream)
            | CancelTarget::Path {
                within: Some(stream),
                ..
            } => self.calls.get(*stream).into_iter().collect(),
            CancelTarget::Path { within: None, .. } => self.calls.all(),
        };
        roots
            .into_iter()
            .filter(|root: &Arc<Root>| self.may_see(who, &root.user))
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
async fn quiet(trees: Vec<(Arc<Root>, Vec<Arc<Node>>)>) {
    for (root, mut nodes) in trees {
        loop {
            let ended = root.ended.notified();
            // Each is looked at until it has ended, and never again.
            while nodes.last().is_some_and(|node| node.has_left()) {
                nodes.pop();
            }
            if nodes.is_empty() {
                break;
            }
            ended.await;
        }
    }
}
