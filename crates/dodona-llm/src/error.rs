//! Why a model did not answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a model did not answer, by what can be done about it.
///
/// No text in it holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelError {
    /// There is nothing to answer.
    #[error("the conversation holds no question")]
    NoQuestion,
    /// Try again later: every try has failed, and nothing of an answer was seen.
    #[error("{reason}")]
    Unavailable {
        /// What went wrong the last time.
        reason: String,
        /// When the provider wants to be asked again, if it said so.
        retry_after: Option<Duration>,
    },
    /// Compact the conversation and try again.
    #[error("the conversation is too long for the model: {reason}")]
    TooLong {
        /// The provider's words.
        reason: String,
    },
    /// Mend the key.
    #[error("{reason}")]
    Key {
        /// What is wrong with it.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// Mend the configuration: the provider does not know the model, or there is no provider.
    #[error("{reason}")]
    NotFound {
        /// What the provider said.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// Mend the configuration: the address or an option.
    #[error("{reason}")]
    Settings {
        /// What is wrong.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// Tell the user: the provider does not take this request, and will not take it again.
    #[error("{reason}")]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// What the provider said.
        reason: String,
    },
    /// Tell the user: part of an answer was seen, and the rest will not come.
    #[error("{reason}")]
    BrokenOff {
        /// What went wrong.
        reason: String,
    },
    /// Tell the user: the answer is longer than what is accepted.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// How much is accepted.
        limit: u64,
    },
    /// A scripted or recorded model was asked what it has no answer for.
    #[error("{reason}")]
    OffScript {
        /// What it was asked.
        reason: String,
    },
}

impl ModelError {
    /// What to do about it, on a line of its own.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Key { hint, .. } | Self::NotFound { hint, .. } | Self::Settings { hint, .. } => {
                Some(hint)
            }
            _ => None,
        }
    }

    /// The same with other words, for what must not be said.
    pub(crate) fn with_texts(mut self, change: impl Fn(String) -> String) -> Self {
        match &mut self {
            Self::NoQuestion | Self::TooLarge { .. } => {}
            Self::Unavailable { reason, .. }
            | Self::TooLong { reason }
            | Self::Key { reason, .. }
            | Self::NotFound { reason, .. }
            | Self::Settings { reason, .. }
            | Self::Rejected { reason, .. }
            | Self::BrokenOff { reason }
            | Self::OffScript { reason } => *reason = change(std::mem::take(reason)),
        }
        self
    }

    /// Whether the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
