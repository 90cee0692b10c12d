//! Counting tokens.

use dodona_proto::Message;
use tiktoken::CoreBpe;

use crate::model::{ModelRequest, ToolOffer};

/// What a message takes beside its text: its role and the marks around it.
const PER_MESSAGE: usize = 4;

/// What a tool call or an offer takes beside its text.
const PER_TOOL: usize = 8;

/// What is put before an answer.
const PER_ANSWER: usize = 3;

/// Longer texts are counted in parts, so that one endless word takes no endless time.
const PART: usize = 64 * 1024;

/// Counts tokens with the tokenizer of a model's family.
///
/// Cheap to copy; the vocabulary is unpacked by the first count (a tenth of a second).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCounter {
    vocabulary: Vocabulary,
    exactness: Exactness,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vocabulary {
    O200k,
    Cl100k,
}

/// How near a count is to the model's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// The text of a message is counted as the model does. What a provider adds around messages
    /// and tools is estimated all the same.
    Exact,
    /// Another family's tokenizer: near for English and code, and often a tenth or two too low
    /// for models with smaller vocabularies.
    Approximate,
}

impl Default for TokenCounter {
    /// For a model of no known family.
    fn default() -> Self {
        Self {
            vocabulary: Vocabulary::O200k,
            exactness: Exactness::Approximate,
        }
    }
}

impl TokenCounter {
    /// The counter for a model, by the provider's name for it, such as `gpt-5` or
    /// `openai/gpt-4o`.
    pub fn for_model(model: &str) -> Self {
        let bare = model.rsplit('/').next().unwrap_or(model);
        let vocabulary = match tiktoken::model_to_encoding(bare) {
            Some("o200k_base" | "o200k_harmony") => Vocabulary::O200k,
            Some("cl100k_base") => Vocabulary::Cl100k,
            _ => return Self::default(),
        };
        Self {
            vocabulary,
            exactness: Exactness::Exact,
        }
    }

    /// How near the counts are.
    pub fn exactness(self) -> Exactness {
        self.exactness
    }

    /// The tokens of a text. Marks such as `<|endoftext|>` count as the text they are.
    pub fn count(self, text: &str) -> usize {
        let encoding = self.encoding();
        parts(text).map(|part| encoding.count(part)).sum()
    }

    /// The tokens of a message in a conversation.
    pub fn count_message(self, message: &Message) -> usize {
        let inner = match message {
            Message::User { content } => self.count(content),
            Message::Tool {
                tool_call_id,
                content,
            } => self.count(tool_call_id) + self.count(content),
            Message::Assistant {
                content,
                tool_calls,
                opaque,
            } => {
                let calls = tool_calls.iter().map(|call| {
                    let arguments = call.arguments.to_string();
                    PER_TOOL
                        + self.count(&call.id)
                        + self.count(&call.name)
                        + self.count(&arguments)
                });
                let opaque = opaque.as_ref().map(|value| self.count(&value.to_string()));
                self.count(content) + calls.sum::<usize>() + opaque.unwrap_or(0)
            }
        };
        PER_MESSAGE + inner
    }

    /// The tokens of an offered tool.
    pub fn count_tool(self, tool: &ToolOffer) -> usize {
        let parameters = tool.parameters.to_string();
        PER_TOOL + self.count(&tool.name) + self.count(&tool.description) + self.count(&parameters)
    }

    /// The tokens of everything that is sent.
    pub fn count_request(self, request: &ModelRequest) -> usize {
        let system = match request.system.as_str() {
            "" => 0,
            text => PER_MESSAGE + self.count(text),
        };
        let messages = request.messages.iter().map(|m| self.count_message(m));
        let tools = request.tools.iter().map(|tool| self.count_tool(tool));
        PER_ANSWER + system + messages.sum::<usize>() + tools.sum::<usize>()
    }

    fn encoding(self) -> &'static CoreBpe {
        let name = match self.vocabulary {
            Vocabulary::O200k => "o200k_base",
            Vocabulary::Cl100k => "cl100k_base",
        };
        tiktoken::get_encoding(name).expect("both vocabularies are compiled in")
    }
}

/// Cuts a long text, where it can before a space: no token reaches across one that follows and
/// precedes letters, so such a cut changes no count.
fn parts(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let (part, rest) = text.split_at(cut(text));
        text = rest;
        Some(part)
    })
}

fn cut(text: &str) -> usize {
    if text.len() <= PART {
        return text.len();
    }
    let end = text.floor_char_boundary(PART);
    let letters = |pair: &[u8]| pair[0].is_ascii_alphabetic() && pair[2].is_ascii_alphabetic();
    let mut windows = text.as_bytes()[end / 2..end].windows(3);
    match windows.rposition(|around| around[1] == b' ' && letters(around)) {
        Some(before) => end / 2 + before + 1,
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_their_tokenizer() {
        let exact = |model| TokenCounter::for_model(model).exactness() == Exactness::Exact;
        for model in ["gpt-5", "openai/gpt-4o-mini", "gpt-4-turbo", "o3"] {
            assert!(exact(model), "{model}");
        }
        for model in ["claude-sonnet-4-5", "qwen3:8b", "something"] {
            assert!(!exact(model), "{model}");
        }
        let (newer, older) = (
            TokenCounter::for_model("gpt-4o"),
            TokenCounter::for_model("gpt-4"),
        );
        // As the provider's own library counts them.
        let known = [
            ("antidisestablishmentarianism", 6, 6),
            ("お誕生日おめでとう", 8, 9),
            ("2 + 2 = 4", 7, 7),
        ];
        for (text, by_newer, by_older) in known {
            let counts = (newer.count(text), older.count(text));
            assert_eq!(counts, (by_newer, by_older), "{text}");
        }
    }

    #[test]
    fn counting_in_parts_counts_the_same() {
        let words = "The quick brown fox jumps over the lazy dog, 17 times. ".repeat(3000);
        let counter = TokenCounter::for_model("gpt-4o");
        assert!(words.len() > 2 * PART);
        assert_eq!(counter.count(&words), counter.encoding().count(&words));
    }

    #[test]
    fn marks_are_text() {
        assert!(TokenCounter::default().count("<|endoftext|>") > 1);
    }
}
