//! Anthropic's messages.

mod answer;
mod blocks;
mod request;

use serde_json::{Value, json};

use crate::model::{ModelOptions, ModelRequest};
use crate::wire::{Answer, Wire};

/// The protocol, for one model.
pub(crate) struct Messages {
    /// The provider's name for it.
    pub(crate) model: String,
    pub(crate) options: ModelOptions,
    /// How many tokens it may think for, where that is a number.
    pub(crate) reasoning_budget: Option<u32>,
    pub(crate) host: String,
}

impl Wire for Messages {
    fn path(&self) -> &'static str {
        "messages"
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(self, request)
    }

    fn answer(&self) -> Box<dyn Answer> {
        Box::new(answer::Reply::new(&self.model, &self.host))
    }

    fn events_of(&self, whole: &Value) -> Option<Vec<Value>> {
        let blocks = whole.get("content")?.as_array()?;
        let start = json!({ "type": "message_start", "message": { "usage": whole["usage"] } });
        let blocks = blocks.iter().enumerate().flat_map(|(index, block)| {
            [
                json!({ "type": "content_block_start", "index": index, "content_block": block }),
                json!({ "type": "content_block_stop", "index": index }),
            ]
        });
        let end = [
            json!({
                "type": "message_delta",
                "delta": { "stop_reason": whole["stop_reason"] },
                "usage": whole["usage"],
            }),
            json!({ "type": "message_stop" }),
        ];
        Some([start].into_iter().chain(blocks).chain(end).collect())
    }
}
