//! Questions to a person: may this call run?

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{CallId, MethodName, PluginName, PluginPath, ProjectId, UserId};

/// How many digits an [`ApprovalId`] has.
const DIGITS: usize = 12;

/// Identifies a question: twelve hexadecimal digits, few enough to be typed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ApprovalId(u64);

impl ApprovalId {
    /// A new id.
    pub fn random() -> Self {
        Self(Uuid::new_v4().as_u64_pair().1 & ((1 << (4 * DIGITS)) - 1))
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl fmt::Debug for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no [`ApprovalId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the id of an approval has {DIGITS} digits from 0 to 9 and a to f")]
pub struct ApprovalIdError;

impl FromStr for ApprovalId {
    type Err = ApprovalIdError;

    fn from_str(text: &str) -> Result<Self, ApprovalIdError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != DIGITS || !text.bytes().all(is_digit) {
            return Err(ApprovalIdError);
        }
        u64::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| ApprovalIdError)
    }
}

impl TryFrom<String> for ApprovalId {
    type Error = ApprovalIdError;

    fn try_from(text: String) -> Result<Self, ApprovalIdError> {
        text.parse()
    }
}

impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> String {
        id.to_string()
    }
}

/// How a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// The call waits.
    Pending,
    /// Somebody agreed.
    Approved,
    /// Somebody did not.
    Denied,
    /// Nobody answered in time, or before the process ended.
    Expired,
    /// The call was stopped before somebody answered.
    Cancelled,
}

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Approved,
        Self::Denied,
        Self::Expired,
        Self::Cancelled,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A question and what came of it, as it is stored and listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRecord {
    /// Which question.
    pub id: ApprovalId,
    /// The call that waits for the answer.
    pub call_id: CallId,
    /// The names that led to that call.
    pub path: PluginPath,
    /// What would run.
    pub method: MethodName,
    /// Its parameters, without secrets.
    pub params: Value,
    /// On whose behalf.
    pub user: UserId,
    /// About which project.
    pub project: Option<ProjectId>,
    /// The plugin whose gate asks; absent where the method itself always asks.
    pub plugin: Option<PluginName>,
    /// To what a person would agree.
    pub message: String,
    /// How it stands.
    pub state: ApprovalState,
    /// Who answered.
    pub answered_by: Option<UserId>,
    /// Why so.
    pub reason: Option<String>,
    /// When it was asked.
    pub created_at: Timestamp,
    /// When it was answered, or nobody was waited for any more.
    pub answered_at: Option<Timestamp>,
}

/// Data of a call that waits: what a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// What an answer names.
    pub approval_id: ApprovalId,
    /// What would run.
    pub method: MethodName,
    /// The plugin whose gate asks; absent where the method itself always asks.
    pub plugin: Option<PluginName>,
    /// To what a person would agree.
    pub message: String,
    /// The parameters it would run with, without secrets.
    pub params: Value,
}

impl ApprovalRequest {
    /// The content type of its items.
    pub const CONTENT_TYPE: &'static str = "ApprovalRequest";
}

/// Data of a call that waited: what was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAnswer {
    /// Which question.
    pub approval_id: ApprovalId,
    /// How it stands now.
    pub state: ApprovalState,
    /// Who answered.
    pub answered_by: Option<UserId>,
    /// Why so.
    pub reason: Option<String>,
}

impl ApprovalAnswer {
    /// The content type of its items.
    pub const CONTENT_TYPE: &'static str = "ApprovalAnswer";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_nothing_else_is() {
        let id = ApprovalId::random();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().len(), DIGITS);
        assert_eq!(ApprovalId(0xab).to_string(), "0000000000ab");
        for wrong in ["", "ab", "0000000000AB", "0000000000abc", "+000000000ab"] {
            assert_eq!(wrong.parse::<ApprovalId>(), Err(ApprovalIdError), "{wrong}");
        }
    }

    #[test]
    fn states_are_the_words_of_the_wire() {
        for state in ApprovalState::ALL {
            let word = serde_json::to_value(state).expect("serialises");
            assert_eq!(word, state.as_str());
        }
    }
}
