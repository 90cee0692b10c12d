//! A conversation's persistent state, and the states it can be in.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ConversationError, Invalid};
use super::exchange::OracleExchange;
use super::id::{ContextId, ExchangeId};

/// The fewest and the most tokens that a conversation may be allowed.
pub const TOKEN_BUDGETS: std::ops::RangeInclusive<u64> = 4_000..=128_000;

/// What a conversation is allowed unless somebody says otherwise.
pub const DEFAULT_TOKEN_BUDGET: u64 = 16_000;

/// The agent whose conversation it is unless somebody says otherwise.
pub const DEFAULT_AGENT: &str = "oracle";

/// The first character of the names that are reserved for the default conversations of agents.
const RESERVED: char = '@';

/// The name of the conversation that questions to an agent go to which name none.
pub(crate) fn default_name(agent: &str) -> String {
    match agent {
        DEFAULT_AGENT => super::lifecycle::DEFAULT_NAME.to_owned(),
        other => format!("{RESERVED}{other}"),
    }
}

/// Whether a name is reserved for the default conversation of some agent.
pub(super) fn is_reserved(name: &str) -> bool {
    name == super::lifecycle::DEFAULT_NAME || name.starts_with(RESERVED)
}

/// The longest name of a conversation, in characters.
const LONGEST_NAME: usize = 64;

/// What a conversation can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum ContextStatus {
    /// It can be continued.
    #[default]
    Active,
    /// The model is being changed: the tokens of its window are counted anew.
    Suspended,
    /// It has ended, and can be read and forked.
    Closed,
}

impl ContextStatus {
    /// As it is stored and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Closed => "closed",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, Invalid> {
        [Self::Active, Self::Suspended, Self::Closed]
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| Invalid::new("status", "must be `active`, `suspended` or `closed`"))
    }

    /// The next state, if it may follow. Nothing follows `closed`, and nothing becomes what it is.
    pub fn change(self, to: Self) -> Result<Self, ConversationError> {
        use ContextStatus::{Active, Closed, Suspended};
        match (self, to) {
            (Active, Suspended | Closed) | (Suspended, Active | Closed) => Ok(to),
            (from, to) => Err(ConversationError::Transition { from, to }),
        }
    }
}

impl fmt::Display for ContextStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Persistent state of a conversation. The fields up to `compression_count` are those of the data
/// model; a document that has only them can be imported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OracleContext {
    /// Which one.
    pub id: ContextId,
    /// Whose.
    pub user_id: String,
    /// About which project.
    pub project_id: String,
    /// When it was begun.
    pub session_start: Timestamp,
    /// When something last happened in it.
    #[serde(default)]
    pub last_activity: Option<Timestamp>,
    /// The model of the last query.
    #[serde(default)]
    pub last_model: Option<String>,
    /// How many tokens its window may have.
    #[serde(default = "default_budget")]
    pub token_budget: u64,
    /// How many tokens its window has.
    #[serde(default)]
    pub tokens_used: u64,
    /// What older exchanges were compressed to.
    #[serde(default)]
    pub compressed_summary: Option<String>,
    /// The working window: what a model is shown of it.
    #[serde(default)]
    pub recent_exchanges: Vec<OracleExchange>,
    /// What must not be forgotten.
    #[serde(default)]
    pub key_decisions: Vec<String>,
    /// Symbols that were mentioned, one per line, the latest first.
    #[serde(default)]
    pub mentioned_symbols: Option<String>,
    /// Files that were mentioned, one per line, the latest first.
    #[serde(default)]
    pub mentioned_files: Option<String>,
    /// What it is now.
    #[serde(default)]
    pub status: ContextStatus,
    /// How many times it was compressed.
    #[serde(default)]
    pub compression_count: u64,
    /// The agent definition it belongs to.
    #[serde(default = "default_agent")]
    pub agent_id: String,
    /// A name, by which it can be asked for instead of its id.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether questions go here that name no conversation.
    #[serde(default)]
    pub is_default: bool,
    /// How many of its tokens the summary has.
    #[serde(default)]
    pub summary_tokens: u64,
    /// Where it was forked from, or imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkPoint>,
}

/// The conversation that another one began as a copy of, and the last exchange they share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkPoint {
    /// Which conversation.
    pub context_id: ContextId,
    /// The last exchange that was copied; absent when there was none.
    pub exchange_id: Option<ExchangeId>,
}

fn default_budget() -> u64 {
    DEFAULT_TOKEN_BUDGET
}

fn default_agent() -> String {
    DEFAULT_AGENT.to_owned()
}

/// The rule for a budget.
pub(super) fn check_budget(tokens: u64) -> Result<(), Invalid> {
    if TOKEN_BUDGETS.contains(&tokens) {
        return Ok(());
    }
    let rule = format!("must be between 4000 and 128000, and is {tokens}");
    Err(Invalid::new("token_budget", rule))
}

/// The most tokens a window may ever have: the budget and a tenth.
pub(super) fn overflow_limit(budget: u64) -> u64 {
    budget.saturating_add(budget / 10)
}

/// The rule for a name, which must not look like an id or break a line.
pub(super) fn check_name(name: &str) -> Result<(), Invalid> {
    let length = name.chars().count();
    let fits = (1..=LONGEST_NAME).contains(&length)
        && name.trim() == name
        && !name.chars().any(char::is_control);
    match fits {
        true => Ok(()),
        false => Err(Invalid::new(
            "name",
            "a name has 1 to 64 printable characters and no space around it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_drawn_transitions_are_legal() {
        use ContextStatus::{Active, Closed, Suspended};
        let legal = [
            (Active, Suspended),
            (Suspended, Active),
            (Active, Closed),
            (Suspended, Closed),
        ];
        for from in [Active, Suspended, Closed] {
            for to in [Active, Suspended, Closed] {
                let allowed = from.change(to).is_ok();
                assert_eq!(allowed, legal.contains(&(from, to)), "{from} to {to}");
            }
        }
        let error = Closed.change(Active).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a conversation that is closed cannot become active"
        );
    }

    #[test]
    fn a_budget_has_both_bounds_and_a_tenth_to_spare() {
        for (tokens, fits) in [
            (0, false),
            (3_999, false),
            (4_000, true),
            (128_000, true),
            (128_001, false),
        ] {
            assert_eq!(check_budget(tokens).is_ok(), fits, "{tokens}");
        }
        let error = check_budget(3_999).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`token_budget`: must be between 4000 and 128000, and is 3999"
        );
        assert_eq!(overflow_limit(16_000), 17_600);
    }

    #[test]
    fn a_name_is_one_printable_line() {
        for name in ["a", "login rework", "Änderung 2"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
        for name in ["", " a", "a ", "a\nb", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_document_with_the_required_fields_only_has_the_defaults_of_the_model() {
        let context: OracleContext = serde_json::from_value(serde_json::json!({
            "id": "c", "user_id": "alice", "project_id": "shop",
            "session_start": "2025-01-15T10:30:00Z",
        }))
        .unwrap();
        assert_eq!(context.token_budget, 16_000);
        assert_eq!((context.tokens_used, context.compression_count), (0, 0));
        assert_eq!(context.status, ContextStatus::Active);
        assert_eq!(context.agent_id, "oracle");
        assert!(context.recent_exchanges.is_empty() && context.key_decisions.is_empty());
    }
}
