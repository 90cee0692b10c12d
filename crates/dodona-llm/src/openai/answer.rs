//! An answer of chat completions.

use dodona_proto::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::reasoning::Kept;
use super::tool_calls::{Fragment, Fragments};
use crate::count;
use crate::http::Failure;
use crate::model::{Finish, ModelEvent};
use crate::wire::{Answer, Progress, garbled, truncated};

/// What ends the stream.
pub(super) const DONE: &str = "[DONE]";

/// One answer, as far as it has come.
pub(super) struct Completion {
    model: String,
    host: String,
    id: String,
    calls: Fragments,
    kept: Kept,
    usage: Option<Usage>,
    finish: Option<Finish>,
    refused: bool,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default, deserialize_with = "count::optional")]
    usage: Option<Counted>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// Which answer it belongs to. Some servers leave it out, because there is only one.
    #[serde(default)]
    index: Value,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    /// One of the two names, never both with different texts.
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    reasoning_details: Option<Vec<Map<String, Value>>>,
    #[serde(default)]
    tool_calls: Option<Vec<Fragment>>,
}

impl Choice {
    /// Whether it belongs to the answer that was requested, and not to a second one.
    fn is_first(&self) -> bool {
        self.index.as_f64().is_none_or(|index| index == 0.0)
    }
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default, deserialize_with = "count::tokens")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count::tokens")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count::optional")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "count::optional")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "count::tokens")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count::tokens")]
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "count::tokens")]
    reasoning_tokens: Option<u64>,
}

impl From<Counted> for Usage {
    fn from(counted: Counted) -> Self {
        let prompt = counted.prompt_tokens_details.unwrap_or_default();
        let completion = counted.completion_tokens_details.unwrap_or_default();
        Self {
            input_tokens: counted.prompt_tokens.unwrap_or(0),
            output_tokens: counted.completion_tokens.unwrap_or(0),
            cached_input_tokens: prompt.cached_tokens.unwrap_or(0),
            cache_write_tokens: prompt.cache_write_tokens.unwrap_or(0),
            reasoning_tokens: completion.reasoning_tokens.unwrap_or(0),
        }
    }
}

impl Completion {
    pub(super) fn new(model: &str, host: &str) -> Self {
        Self {
            model: model.to_owned(),
            host: host.to_owned(),
            id: String::new(),
            calls: Fragments::default(),
            kept: Kept::default(),
            usage: None,
            finish: None,
            refused: false,
        }
    }

    fn take_chunk(&mut self, chunk: Chunk, out: &mut Vec<ModelEvent>) -> Result<(), Failure> {
        if let Some(error) = chunk.error {
            return Err(Failure::of_event(&error, &self.host));
        }
        if self.id.is_empty() {
            self.id = chunk.id.unwrap_or_default();
        }
        if let Some(counted) = chunk.usage {
            self.usage = Some(counted.into());
        }
        // One answer was requested. What a provider sends of a second one must not be mixed into it.
        let Some(choice) = chunk.choices.into_iter().find(Choice::is_first) else {
            return Ok(());
        };
        if let Some(delta) = choice.delta {
            self.take_delta(delta, out)?;
        }
        match choice.finish_reason.as_deref() {
            None | Some("") => Ok(()),
            Some("error") => Err(Failure::passing(format!(
                "`{}` broke off its answer",
                self.host
            ))),
            Some(reason) => {
                self.finish = Some(finish(reason));
                Ok(())
            }
        }
    }

    fn take_delta(&mut self, delta: Delta, out: &mut Vec<ModelEvent>) -> Result<(), Failure> {
        if let Some(text) = delta.reasoning_content.filter(|text| !text.is_empty()) {
            self.kept.add_content(&text);
            out.push(ModelEvent::Reasoning(text));
        } else if let Some(text) = delta.reasoning.filter(|text| !text.is_empty()) {
            out.push(ModelEvent::Reasoning(text));
        }
        self.kept
            .add_details(delta.reasoning_details.unwrap_or_default());
        let text = delta.content.unwrap_or_default() + &self.refusal(delta.refusal);
        let fragments = delta.tool_calls.unwrap_or_default();
        if self.finish.is_some() && !(text.is_empty() && fragments.is_empty()) {
            return Err(garbled("it goes on after its end"));
        }
        if !text.is_empty() {
            out.push(ModelEvent::Text(text));
        }
        for fragment in fragments {
            out.extend(self.calls.add(fragment));
        }
        Ok(())
    }

    fn refusal(&mut self, refusal: Option<String>) -> String {
        let text = refusal.unwrap_or_default();
        self.refused |= !text.is_empty();
        text
    }

    /// The answer is complete: its tool calls are too.
    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, Failure> {
        let called = !self.calls.is_empty();
        let calls = self.calls.finish(&self.id)?;
        out.extend(calls.into_iter().map(ModelEvent::ToolCall));
        if called {
            let kept = std::mem::take(&mut self.kept).into_opaque(&self.model);
            out.extend(kept.map(ModelEvent::Opaque));
        }
        Ok(match self.finish {
            Some(Finish::Length) => Finish::Length,
            // Some servers say `stop` after tool calls.
            _ if called => Finish::ToolCalls,
            _ if self.refused => Finish::Refused,
            Some(Finish::ToolCalls) | None => Finish::Stop,
            Some(finish) => finish,
        })
    }
}

impl Answer for Completion {
    fn take(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Failure> {
        let data = data.trim();
        if data == DONE {
            return Ok(Progress::Complete(self.complete(out)?));
        }
        if data.is_empty() {
            return Ok(Progress::Nothing);
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(garbled)?;
        self.take_chunk(chunk, out)?;
        Ok(Progress::More)
    }

    fn cut_short(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, Failure> {
        match self.finish {
            // Not every server sends the mark; the reason is as good.
            Some(_) => self.complete(out),
            None => Err(truncated()),
        }
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "length" | "max_tokens" => Finish::Length,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "content_filter" | "refusal" => Finish::Refused,
        _ => Finish::Stop,
    }
}
