//! An answer of messages.

use dodona_proto::{ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::blocks::{self, KeptBlock};
use crate::arguments;
use crate::count;
use crate::http::Failure;
use crate::model::{Finish, ModelEvent};
use crate::wire::{Answer, Progress, garbled, truncated};

/// One answer, as far as it has come.
pub(super) struct Reply {
    model: String,
    host: String,
    open: Option<Open>,
    next_index: usize,
    kept: Vec<KeptBlock>,
    counted: Option<Counted>,
    finish: Option<Finish>,
}

/// The block that is being written.
struct Open {
    index: usize,
    block: Block,
}

enum Block {
    Text {
        bytes: usize,
    },
    Tool {
        id: String,
        name: String,
        input: Value,
        json: String,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    Redacted {
        data: String,
    },
    /// A kind of block that was not asked for.
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: usize,
        content_block: StartedBlock,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: MessageDelta,
        #[serde(default, deserialize_with = "count::optional")]
        usage: Option<Counted>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// A ping, or what a later version of the protocol sends.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default, deserialize_with = "count::optional")]
    usage: Option<Counted>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StartedBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    stop_reason: Option<String>,
}

/// The numbers so far; a later one replaces an earlier one.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Counted {
    #[serde(default, deserialize_with = "count::tokens")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count::tokens")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count::tokens")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count::tokens")]
    cache_creation_input_tokens: Option<u64>,
}

impl Counted {
    fn update(&mut self, later: Self) {
        for (before, now) in [
            (&mut self.input_tokens, later.input_tokens),
            (&mut self.output_tokens, later.output_tokens),
            (
                &mut self.cache_read_input_tokens,
                later.cache_read_input_tokens,
            ),
            (
                &mut self.cache_creation_input_tokens,
                later.cache_creation_input_tokens,
            ),
        ] {
            *before = now.or(*before);
        }
    }
}

impl From<Counted> for Usage {
    /// Here what came from the cache, or went into it, is not part of the input.
    fn from(counted: Counted) -> Self {
        let read = counted.cache_read_input_tokens.unwrap_or(0);
        let written = counted.cache_creation_input_tokens.unwrap_or(0);
        let plain = counted.input_tokens.unwrap_or(0);
        Self {
            input_tokens: plain.saturating_add(read).saturating_add(written),
            output_tokens: counted.output_tokens.unwrap_or(0),
            cached_input_tokens: read,
            cache_write_tokens: written,
            // The provider does not tell them apart.
            reasoning_tokens: 0,
        }
    }
}

impl Reply {
    pub(super) fn new(model: &str, host: &str) -> Self {
        Self {
            model: model.to_owned(),
            host: host.to_owned(),
            open: None,
            next_index: 0,
            kept: Vec::new(),
            counted: None,
            finish: None,
        }
    }

    fn count(&mut self, later: Option<Counted>) {
        if let Some(later) = later {
            self.counted.get_or_insert_default().update(later);
        }
    }

    fn start(
        &mut self,
        index: usize,
        started: StartedBlock,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Failure> {
        if self.open.is_some() || index != self.next_index {
            return Err(garbled(format!("block {index} begins out of turn")));
        }
        self.next_index += 1;
        let block = match started {
            StartedBlock::Text { text } => {
                let bytes = text.len();
                say(text, ModelEvent::Text, out);
                Block::Text { bytes }
            }
            StartedBlock::ToolUse { id, name, input } => Block::Tool {
                id,
                name,
                input,
                json: String::new(),
            },
            StartedBlock::Thinking {
                thinking,
                signature,
            } => {
                say(thinking.clone(), ModelEvent::Reasoning, out);
                Block::Thinking {
                    thinking,
                    signature,
                }
            }
            StartedBlock::RedactedThinking { data } => Block::Redacted { data },
            StartedBlock::Other => Block::Other,
        };
        self.open = Some(Open { index, block });
        Ok(())
    }

    fn extend(
        &mut self,
        index: usize,
        delta: Delta,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Failure> {
        let Some(open) = self.open.as_mut().filter(|open| open.index == index) else {
            return Err(garbled(format!("block {index} goes on, and is not open")));
        };
        match (&mut open.block, delta) {
            (Block::Text { bytes }, Delta::Text { text }) => {
                *bytes += text.len();
                say(text, ModelEvent::Text, out);
            }
            (Block::Tool { id, name, json, .. }, Delta::InputJson { partial_json }) => {
                json.push_str(&partial_json);
                let (id, name) = (id.clone(), name.clone());
                let arguments = |text| ModelEvent::ToolArguments { id, name, text };
                say(partial_json, arguments, out);
            }
            (Block::Thinking { thinking, .. }, Delta::Thinking { thinking: more }) => {
                thinking.push_str(&more);
                say(more, ModelEvent::Reasoning, out);
            }
            (Block::Thinking { signature, .. }, Delta::Signature { signature: more }) => {
                signature.push_str(&more);
            }
            (Block::Other, _) | (_, Delta::Other) => {}
            _ => return Err(garbled(format!("block {index} changes its kind"))),
        }
        Ok(())
    }

    fn stop(&mut self, index: usize, out: &mut Vec<ModelEvent>) -> Result<(), Failure> {
        let Some(open) = self.open.take().filter(|open| open.index == index) else {
            return Err(garbled(format!("block {index} ends, and is not open")));
        };
        let kept = match open.block {
            Block::Text { bytes } => KeptBlock::Text { bytes },
            Block::Tool {
                id,
                name,
                input,
                json,
            } => {
                let arguments = match (json.is_empty(), input) {
                    (true, Value::Object(input)) => Value::Object(input),
                    _ => arguments::parse(&json),
                };
                out.push(ModelEvent::ToolCall(ToolCall {
                    id: id.clone(),
                    name,
                    arguments,
                }));
                KeptBlock::ToolUse { id }
            }
            Block::Thinking {
                thinking,
                signature,
            } => KeptBlock::Thinking {
                thinking,
                signature,
            },
            Block::Redacted { data } => KeptBlock::RedactedThinking { data },
            Block::Other => return Ok(()),
        };
        self.kept.push(kept);
        Ok(())
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<Progress, Failure> {
        let (Some(finish), None) = (self.finish, &self.open) else {
            return Err(garbled("it ends before it has come to an end"));
        };
        // Without its signature no reasoning is taken back.
        self.kept.retain(
            |block| !matches!(block, KeptBlock::Thinking { signature, .. } if signature.is_empty()),
        );
        out.extend(blocks::into_opaque(&self.kept, &self.model).map(ModelEvent::Opaque));
        Ok(Progress::Complete(finish))
    }
}

fn say(text: String, event: impl FnOnce(String) -> ModelEvent, out: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        out.push(event(text));
    }
}

impl Answer for Reply {
    fn take(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Failure> {
        let event: Event = serde_json::from_str(data).map_err(garbled)?;
        match event {
            Event::MessageStart { message } => self.count(message.usage),
            Event::ContentBlockStart {
                index,
                content_block,
            } => self.start(index, content_block, out)?,
            Event::ContentBlockDelta { index, delta } => self.extend(index, delta, out)?,
            Event::ContentBlockStop { index } => self.stop(index, out)?,
            Event::MessageDelta { delta, usage } => {
                self.count(usage);
                let stopped = delta.stop_reason.as_deref().map(finish);
                self.finish = stopped.or(self.finish);
            }
            Event::MessageStop => return self.complete(out),
            Event::Error { error } => return Err(Failure::of_event(&error, &self.host)),
            Event::Other => return Ok(Progress::Nothing),
        }
        Ok(Progress::More)
    }

    fn cut_short(&mut self, _: &mut Vec<ModelEvent>) -> Result<Finish, Failure> {
        Err(truncated())
    }

    fn usage(&self) -> Option<Usage> {
        self.counted.map(Usage::from)
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Refused,
        _ => Finish::Stop,
    }
}
