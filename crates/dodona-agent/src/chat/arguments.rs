//! Arguments of tool calls, shown while the model writes them.

use dodona_plugin::store::{Redactor, StreamRedactor};
use dodona_plugin::{CallCtx, CallError};

use super::emit;

/// Bytes that are gathered before they are emitted. Every item is journaled, and a provider may
/// send one token at a time.
const BATCH: usize = 64;

/// The arguments that are being written.
pub(super) struct ArgumentStream {
    call: Option<Call>,
    redactor: Redactor,
}

struct Call {
    id: String,
    name: String,
    /// Holds back what could be the start of a secret.
    redactor: StreamRedactor,
    /// Gathered for the next item.
    text: String,
}

impl ArgumentStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self {
            call: None,
            redactor,
        }
    }

    /// Takes the next part of a call's arguments.
    pub(super) async fn push(
        &mut self,
        ctx: &CallCtx,
        id: String,
        name: String,
        more: &str,
    ) -> Result<(), CallError> {
        if self.call.as_ref().is_none_or(|call| call.id != id) {
            self.finish(ctx).await?;
        }
        let redactor = &self.redactor;
        let call = self.call.get_or_insert_with(|| Call {
            id,
            name,
            redactor: StreamRedactor::new(redactor.clone()),
            text: String::new(),
        });
        let shown = call.redactor.push(more);
        call.text.push_str(&shown);
        if call.text.len() >= BATCH {
            let text = std::mem::take(&mut call.text);
            emit::tool_call_delta(ctx, &call.id, &call.name, &text).await?;
        }
        Ok(())
    }

    /// Emits what is left: the call is complete, or the request failed.
    pub(super) async fn finish(&mut self, ctx: &CallCtx) -> Result<(), CallError> {
        let Some(mut call) = self.call.take() else {
            return Ok(());
        };
        call.text.push_str(&call.redactor.finish());
        match call.text.is_empty() {
            true => Ok(()),
            false => emit::tool_call_delta(ctx, &call.id, &call.name, &call.text).await,
        }
    }
}
