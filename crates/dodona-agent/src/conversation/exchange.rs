//! One message of a conversation, as it is stored.

use std::fmt;

use dodona_proto::NOTICES;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ConversationError, Invalid};
use super::id::{ExchangeId, check};
use super::rows;
use super::tool_call::ToolCallRecord;

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeRole {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl ExchangeRole {
    /// As it is stored and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, ConversationError> {
        [Self::User, Self::Assistant, Self::Tool]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| rows::unreadable("exchange", format!("role `{text}`")))
    }
}

impl fmt::Display for ExchangeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why there is a message that is neither a question nor an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeOrigin {
    /// Notifications of rules and plugins for the model. Role `user`, because providers accept no
    /// other role there.
    Notice,
    /// A message that the user sent while the query was running. Role `user`.
    Steering,
    /// Passages that were looked up for the question before it. Role `user`.
    Preload,
    /// Facts and decisions that were remembered in the conversation. Role `user`.
    Remembered,
    /// The answer that the model gave at the turn limit, without tools. Role `assistant`.
    TurnLimit,
}

/// One message record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OracleExchange {
    /// Which one.
    pub id: ExchangeId,
    /// Who said it.
    pub role: ExchangeRole,
    /// What was said. Empty only where the assistant wants tools and says nothing.
    pub content: String,
    /// The tools that the assistant wants, with what became of each.
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCallRecord>>,
    /// The call that a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Why the message exists, where it is not a question, an answer or a tool's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ExchangeOrigin>,
    /// When it was said.
    pub timestamp: Timestamp,
    /// How many tokens it has for the model of the conversation.
    pub token_count: u64,
    /// What it comes to, for compression.
    #[serde(default)]
    pub key_insight: Option<String>,
    /// Symbols in it.
    #[serde(default)]
    pub mentioned_symbols: Vec<String>,
    /// Files in it.
    #[serde(default)]
    pub mentioned_files: Vec<String>,
}

impl OracleExchange {
    /// The tools that it wants.
    pub fn calls(&self) -> &[ToolCallRecord] {
        self.tool_calls.as_deref().unwrap_or_default()
    }

    /// Whether it is a question of the user. Notices, steering messages and passages have the role
    /// `user` too, and are not the user's words about the project.
    pub fn is_question(&self) -> bool {
        // Notices of versions before 0.2 have no origin.
        self.role == ExchangeRole::User
            && self.origin.is_none()
            && !self.content.starts_with(NOTICES)
    }

    /// Whether it is the assistant's and wants nothing more.
    pub(super) fn is_answer(&self) -> bool {
        self.role == ExchangeRole::Assistant && self.calls().is_empty()
    }

    /// The rules of the data model. An assistant that only calls tools may say nothing: that is
    /// what models do, and there is no text that would be truer.
    pub fn check(&self) -> Result<(), Invalid> {
        check("id", self.id.as_str())?;
        self.check_content()?;
        if self.role == ExchangeRole::Tool {
            let id = self.tool_call_id.as_deref().unwrap_or_default();
            if id.is_empty() {
                return Err(Invalid::new(
                    "tool_call_id",
                    "is required where role is `tool`",
                ));
            }
        } else if self.tool_call_id.is_some() {
            return Err(Invalid::new("tool_call_id", "is for the role `tool` only"));
        }
        if self.token_count == 0 {
            return Err(Invalid::new("token_count", "must be a positive integer"));
        }
        self.check_calls()
    }

    fn check_content(&self) -> Result<(), Invalid> {
        let may_be_empty = match self.role {
            ExchangeRole::User => false,
            ExchangeRole::Assistant => !self.calls().is_empty(),
            ExchangeRole::Tool => true,
        };
        if may_be_empty || !self.content.trim().is_empty() {
            return Ok(());
        }
        Err(Invalid::new(
            "content",
            format!("cannot be empty for the role `{}`", self.role),
        ))
    }

    fn check_calls(&self) -> Result<(), Invalid> {
        let calls = self.calls();
        if self.role != ExchangeRole::Assistant && !calls.is_empty() {
            return Err(Invalid::new(
                "tool_calls",
                "are for the role `assistant` only",
            ));
        }
        for (index, call) in calls.iter().enumerate() {
            let here = format!("tool_calls[{index}]");
            call.check().map_err(|invalid| invalid.within(&here))?;
            if calls[..index].iter().any(|earlier| earlier.id == call.id) {
                return Err(Invalid::new("id", "must differ from those before it").within(&here));
            }
        }
        Ok(())
    }
}
