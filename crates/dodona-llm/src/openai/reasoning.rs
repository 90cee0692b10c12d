//! Reasoning beside the answer, which some providers want back with the tools' results.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What is kept of one answer's reasoning.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Map<String, Value>>,
}

impl Kept {
    /// What a message keeps for this model. Another model's is of no use to it.
    pub(super) fn of(opaque: Option<&Value>, model: &str) -> Self {
        let Some(opaque) = opaque.filter(|opaque| opaque["model"] == model) else {
            return Self::default();
        };
        Self::deserialize(&opaque["chat"]).unwrap_or_default()
    }

    /// What to keep in the message.
    pub(super) fn into_opaque(self, model: &str) -> Option<Value> {
        match self == Self::default() {
            true => None,
            false => Some(json!({ "model": model, "chat": self })),
        }
    }

    /// Takes more of the plain text.
    pub(super) fn add_content(&mut self, text: &str) {
        self.reasoning_content
            .get_or_insert_default()
            .push_str(text);
    }

    /// Takes more of the structured form: pieces of one part have its index, texts grow, and
    /// what else is told later counts.
    pub(super) fn add_details(&mut self, details: Vec<Map<String, Value>>) {
        for detail in details {
            let same = |kept: &&mut Map<String, Value>| {
                kept.get("index") == detail.get("index") && kept.get("type") == detail.get("type")
            };
            match self.reasoning_details.last_mut().filter(same) {
                Some(kept) => merge(kept, detail),
                None => self.reasoning_details.push(detail),
            }
        }
    }
}

fn merge(kept: &mut Map<String, Value>, detail: Map<String, Value>) {
    for (field, value) in detail {
        match (kept.get_mut(&field), value) {
            (_, Value::Null) => {}
            (Some(Value::String(before)), Value::String(more))
                if matches!(field.as_str(), "text" | "summary" | "data") =>
            {
                before.push_str(&more);
            }
            (_, value) => {
                kept.insert(field, value);
            }
        }
    }
}
