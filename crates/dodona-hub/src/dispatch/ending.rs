//! The end of a call: exactly one `Done` item, whatever happens.
//!
//! Futures of rare or slow steps (journal, errors) are boxed: the future of every call has room for its
//! largest step, and 10 000 idle streams would hold that memory for steps that they never reach.

use std::sync::Arc;

use dodona_proto::{CallError, DoneStatus, ErrorCode, ItemBody, Mutation};
use dodona_store::journal::CallHead;
use jiff::Timestamp;
use serde_json::Value;

use super::execute::GRACE;
use crate::call::RunningCall;
use crate::router::Route;

/// The reason of calls whose caller dropped the future or the stream.
pub(crate) const CALLER_GONE: &str = "the caller no longer waits for the result";

/// The reason of calls that their parent did not wait for.
pub(crate) const PARENT_ENDED: &str = "the parent call has ended";

/// Represents a running call. When it is ended or dropped, the call leaves its tree and its `Done`
/// is written.
pub(crate) struct CallGuard {
    call: Arc<RunningCall>,
    /// The journal has the start of this call and not its end.
    is_journaled: bool,
    has_ended: bool,
}

impl CallGuard {
    /// Adds a call to its tree. Fails if its parent has ended or the tree is full.
    pub(crate) fn enter(call: Arc<RunningCall>) -> Result<Self, CallError> {
        call.tree
            .add(Arc::clone(&call), call.hub.config.limits.nested)?;
        if call.is_root() {
            call.hub.call_trees.add(Arc::clone(&call.tree));
        }
        Ok(Self {
            call,
            is_journaled: false,
            has_ended: false,
        })
    }

    pub(crate) fn call(&self) -> &Arc<RunningCall> {
        &self.call
    }

    /// Records the start of a mutating call, so that recovery after a crash knows what may have
    /// happened. If this fails, the call must not run. Does nothing for other calls, and for a
    /// streamed root call, whose items are already its record.
    pub(super) async fn journal_start(
        &mut self,
        route: &Route,
        params: &Value,
    ) -> Result<(), CallError> {
        let descriptor = route.descriptor();
        let is_streamed_root = self.call.is_root() && self.call.tree.writer.is_some();
        if descriptor.mutation != Mutation::Mutates || is_streamed_root {
            return Ok(());
        }
        let info = &self.call.info;
        let head = CallHead {
            call: info.call_id,
            path: info.path.clone(),
            method: descriptor.name.clone(),
            user: info.principal.user.clone(),
            project: info.project.as_ref().map(|project| project.id.clone()),
            params: params.clone(),
            began: Timestamp::now(),
        };
        Box::pin(self.call.hub.journal.begin_call(head)).await?;
        self.is_journaled = true;
        Ok(())
    }

    /// Ends the call: cancels its children, emits the error if there is one, writes `Done`, updates
    /// metrics and journal, and returns the outcome to the caller.
    pub(super) async fn end(
        mut self,
        outcome: Result<Value, CallError>,
        route: Option<&Route>,
    ) -> Result<Value, CallError> {
        self.cancel_children();
        let (status, code) = match &outcome {
            Ok(_) => (DoneStatus::Complete, None),
            Err(error) => (error.code.status(), Some(error.code.clone())),
        };
        if status != DoneStatus::Cancelled {
            self.call.wait_for_readers(GRACE).await;
            self.emit_error(&outcome).await;
        }
        let reason = outcome.as_ref().err().map(|error| error.message.as_str());
        self.leave_tree(status, reason);
        if let Some(route) = route {
            route.meter.record_end(status, self.call.elapsed());
        }
        if std::mem::take(&mut self.is_journaled) {
            let call_id = self.call.info.call_id;
            Box::pin(self.call.hub.journal.end_call(call_id, status, code)).await?;
        }
        if let Err(error) = &outcome {
            self.log(error);
        }
        outcome
    }

    async fn emit_error(&self, outcome: &Result<Value, CallError>) {
        if let Err(error) = outcome
            && self.call.has_reader()
        {
            let body = ItemBody::Error {
                error: error.message.clone(),
                code: error.code.clone(),
                recoverable: false,
                hint: error.hint_text().map(str::to_owned),
            };
            // If this item cannot be stored, `Done` still carries the reason.
            let _ = Box::pin(self.call.send_error(body)).await;
        }
    }

    /// Cancels child calls that the call started and did not wait for. Their `Done` must be written
    /// before that of their parent.
    fn cancel_children(&self) {
        if !self.call.has_children() {
            return;
        }
        self.call.info.cancel.cancel();
        for child in self.call.tree.close_below(&self.call.info.call_id) {
            child.write_done(DoneStatus::Cancelled, Some(PARENT_ENDED));
        }
    }

    fn leave_tree(&mut self, status: DoneStatus, reason: Option<&str>) {
        self.has_ended = true;
        self.call.write_done(status, reason);
        self.call.tree.remove(&self.call.info.call_id);
        if self.call.is_root() {
            self.call.hub.call_trees.remove(self.call.tree.stream);
        }
    }

    /// Logs our own faults and errors with details as warnings, the others at debug level.
    fn log(&self, error: &CallError) {
        let info = &self.call.info;
        let is_internal = matches!(
            error.code,
            ErrorCode::Internal | ErrorCode::Panicked | ErrorCode::Storage
        );
        if let Some(detail) = error.log_text() {
            tracing::warn!(call = %info.call_id, path = %info.path, code = %error.code, detail, "{}", error.message);
        } else if is_internal {
            tracing::warn!(call = %info.call_id, path = %info.path, code = %error.code, "{}", error.message);
        } else {
            tracing::debug!(call = %info.call_id, path = %info.path, code = %error.code, "{}", error.message);
        }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if !self.has_ended {
            self.call.info.cancel.cancel();
            self.cancel_children();
            self.leave_tree(DoneStatus::Cancelled, Some(CALLER_GONE));
        }
        if self.is_journaled {
            self.call
                .hub
                .journal
                .end_dropped_call(self.call.info.call_id);
        }
    }
}
