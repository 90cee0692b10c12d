//! Anthropic's messages.

mod answer;
mod blocks;
mod request;

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
}
