//! The providers that need no address.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who answers. Any server that speaks OpenAI's chat completions is `openai` with a `base_url`
/// of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Many models behind one key, <https://openrouter.ai>.
    OpenRouter,
    /// OpenAI, or a server that is compatible with its chat completions.
    OpenAi,
    /// OpenAI, or a compatible server, with the Responses protocol.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic, or a server that is compatible with its messages.
    Anthropic,
    /// Ollama on this machine.
    Ollama,
    /// The server of llama.cpp on this machine.
    LlamaCpp,
    /// vLLM on this machine.
    Vllm,
    /// No model: what the project says, quoted.
    Offline,
}

/// What a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    ChatCompletions,
    Responses,
    Messages,
}

/// A row of the table below.
struct Preset {
    name: &'static str,
    dialect: Option<Dialect>,
    base_url: &'static str,
    /// The variable that holds the key by custom; none where a key is not needed.
    key_env: Option<&'static str>,
}

impl Provider {
    /// All of them, in the order of the reference.
    pub const ALL: [Self; 8] = [
        Self::OpenRouter,
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Ollama,
        Self::LlamaCpp,
        Self::Vllm,
        Self::Offline,
    ];

    fn preset(self) -> Preset {
        use Dialect::{ChatCompletions, Messages, Responses};
        let row = |name, dialect, base_url, key_env| Preset {
            name,
            dialect,
            base_url,
            key_env,
        };
        let chat = Some(ChatCompletions);
        match self {
            Self::OpenRouter => row(
                "openrouter",
                chat,
                "https://openrouter.ai/api/v1",
                Some("OPENROUTER_API_KEY"),
            ),
            Self::OpenAi => row(
                "openai",
                chat,
                "https://api.openai.com/v1",
                Some("OPENAI_API_KEY"),
            ),
            Self::OpenAiResponses => row(
                "openai-responses",
                Some(Responses),
                "https://api.openai.com/v1",
                Some("OPENAI_API_KEY"),
            ),
            Self::Anthropic => row(
                "anthropic",
                Some(Messages),
                "https://api.anthropic.com/v1",
                Some("ANTHROPIC_API_KEY"),
            ),
            Self::Ollama => row("ollama", chat, "http://localhost:11434/v1", None),
            Self::LlamaCpp => row("llamacpp", chat, "http://localhost:8080/v1", None),
            Self::Vllm => row("vllm", chat, "http://localhost:8000/v1", None),
            Self::Offline => row("offline", None, "", None),
        }
    }

    /// Its name in the configuration.
    pub fn as_str(self) -> &'static str {
        self.preset().name
    }

    /// Where it is, unless the configuration says otherwise; none for `offline`.
    pub fn base_url(self) -> Option<&'static str> {
        let preset = self.preset();
        preset.dialect.map(|_| preset.base_url)
    }

    /// The variable that holds its key by custom; none where a key is not needed.
    pub fn key_env(self) -> Option<&'static str> {
        self.preset().key_env
    }

    pub(crate) fn dialect(self) -> Option<Dialect> {
        self.preset().dialect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_configuration() {
        for provider in Provider::ALL {
            let written = serde_json::to_value(provider).unwrap();
            assert_eq!(written, provider.as_str());
        }
    }
}
