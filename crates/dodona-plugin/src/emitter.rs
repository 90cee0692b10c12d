//! Sending items from a streaming method.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::pin::pin;

use dodona_proto::{CallError, ErrorCode, ItemBody};
use futures_util::{Stream, StreamExt};
use schemars::JsonSchema;
use serde::Serialize;

use crate::CallCtx;

/// Sends the items of a streaming method. Waits while the buffers are full, so that memory stays bounded.
pub struct Emitter<T> {
    ctx: CallCtx,
    content_type: Cow<'static, str>,
    item: PhantomData<fn(T)>,
}

impl<T: Serialize + JsonSchema> Emitter<T> {
    /// An emitter for one call. The content type of its items is the name of `T`'s schema.
    pub fn new(ctx: CallCtx) -> Self {
        Self {
            ctx,
            content_type: T::schema_name(),
            item: PhantomData,
        }
    }

    /// Sends one item; waits while the buffers are full.
    pub async fn send(&self, item: T) -> Result<(), CallError> {
        self.ctx.emit(self.body(item)?).await
    }

    /// Sends the last item. It is delivered together with the end of the call.
    pub async fn send_last(self, item: T) -> Result<(), CallError> {
        self.ctx.emit_with_next(self.body(item)?).await
    }

    fn body(&self, item: T) -> Result<ItemBody, CallError> {
        let data = serde_json::to_value(item).map_err(|error| {
            CallError::new(ErrorCode::Internal, "an item could not be written as JSON").log(error)
        })?;
        let content_type = self.content_type.clone();
        Ok(ItemBody::Data { content_type, data })
    }
}

/// Sends all items of a typed stream. The first error ends the call.
pub async fn forward<T, E>(
    items: impl Stream<Item = Result<T, E>>,
    out: &Emitter<T>,
) -> Result<(), CallError>
where
    T: Serialize + JsonSchema,
    E: Into<CallError>,
{
    let mut items = pin!(items);
    while let Some(item) = items.next().await {
        out.send(item.map_err(Into::into)?).await?;
    }
    Ok(())
}
