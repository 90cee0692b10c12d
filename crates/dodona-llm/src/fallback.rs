//! A model that takes over when another cannot answer.

use std::sync::Arc;

use async_stream::stream;
use futures_util::stream::{BoxStream, StreamExt};

use crate::error::ModelError;
use crate::model::{Model, ModelEvent, ModelRequest};
use crate::price::Price;
use crate::tokens::TokenCounter;

/// Asks one model, and another one if the first is unavailable before its answer has begun. A wrong
/// key or a refused request is an error: a fallback would hide it.
pub(crate) struct WithFallback {
    pub(crate) first: Arc<dyn Model>,
    pub(crate) second: Arc<dyn Model>,
}

impl Model for WithFallback {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let mut events = self.first.stream(request.clone());
        let second = Arc::clone(&self.second);
        let events = stream! {
            let mut has_begun = false;
            while let Some(event) = events.next().await {
                match event {
                    Err(error) if error.is_passing() && !has_begun => {
                        drop(events);
                        yield Ok(ModelEvent::FallingBack {
                            reason: error.to_string(),
                            model: second.name().to_owned(),
                        });
                        events = second.stream(request);
                        while let Some(event) = events.next().await {
                            yield event;
                        }
                        return;
                    }
                    Ok(ModelEvent::Retrying { .. }) => {}
                    Ok(_) => has_begun = true,
                    Err(_) => {}
                }
                yield event;
            }
        };
        events.boxed()
    }

    fn context_window(&self) -> Option<u32> {
        self.first.context_window()
    }

    fn price(&self) -> Option<Price> {
        self.first.price()
    }

    fn counter(&self) -> TokenCounter {
        self.first.counter()
    }
}
