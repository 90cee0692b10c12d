//! OpenAI's Responses protocol.

mod answer;
mod request;

use serde_json::{Value, json};

use crate::model::{ModelOptions, ModelRequest};
use crate::wire::{Answer, Wire};

/// The protocol, for one model.
pub(crate) struct Responses {
    /// The provider's name of the model.
    pub(crate) model: String,
    pub(crate) options: ModelOptions,
    pub(crate) host: String,
}

impl Wire for Responses {
    fn path(&self) -> &'static str {
        "responses"
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(self, request)
    }

    fn answer(&self) -> Box<dyn Answer> {
        Box::new(answer::ResponseReader::new(&self.model, &self.host))
    }

    fn events_of(&self, whole: &Value) -> Option<Vec<Value>> {
        let kind = match whole["status"].as_str() {
            Some("failed") => "response.failed",
            _ => "response.completed",
        };
        whole
            .get("output")
            .map(|_| vec![json!({ "type": kind, "response": whole })])
    }
}
