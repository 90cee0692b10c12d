//! What must not be forgotten.

use dodona_plugin::store::{DbError, Row, Tx};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::{ConversationError, Invalid};
use super::id::ContextId;
use super::{memory, rows};

/// How many a conversation holds. None is dropped for another, so there is an end.
pub(super) const MOST: usize = 200;

/// The longest text, in characters.
pub(super) const LONGEST: usize = 1_000;

/// What sort of thing is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Something was decided.
    Decision,
    /// Something is so.
    Fact,
    /// The user wants it so.
    Preference,
}

impl DecisionKind {
    /// As it is stored and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Fact => "fact",
            Self::Preference => "preference",
        }
    }

    fn parse(text: &str) -> Result<Self, ConversationError> {
        [Self::Decision, Self::Fact, Self::Preference]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| rows::unreadable("decision", format!("kind `{text}`")))
    }
}

/// One thing that was remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyDecision {
    /// What sort of thing it is.
    pub kind: DecisionKind,
    /// The thing.
    pub text: String,
    /// When it was said.
    pub created_at: Timestamp,
}

impl KeyDecision {
    /// One that is said now.
    pub fn new(kind: DecisionKind, text: &str) -> Self {
        Self {
            kind,
            text: text.trim().to_owned(),
            created_at: Timestamp::now(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        let length = self.text.trim().chars().count();
        match (1..=LONGEST).contains(&length) {
            true => Ok(()),
            false => Err(Invalid::new("text", "has 1 to 1000 characters")),
        }
    }
}

/// Adds one; the same again changes nothing. Answers whether it is new.
pub(super) fn add(
    tx: &Tx<'_>,
    context: &ContextId,
    decision: &KeyDecision,
) -> Result<bool, ConversationError> {
    decision.check()?;
    let id = Uuid::now_v7().to_string();
    let added = tx.execute(
        "insert into key_decisions (id, context_id, kind, text, created_at)
         values (?1, ?2, ?3, ?4, ?5) on conflict do nothing",
        (
            id.as_str(),
            context.as_str(),
            decision.kind.as_str(),
            decision.text.as_str(),
            rows::stamp(decision.created_at),
        ),
    )? > 0;
    if added {
        memory::keep_decision(tx, context, &id, decision)?;
    }
    let all = of(tx, context)?;
    if all.len() > MOST {
        return Err(ConversationError::Full {
            what: "key decisions",
            limit: MOST,
        });
    }
    let texts: Vec<&str> = all.iter().map(|decision| decision.text.as_str()).collect();
    tx.execute(
        "update oracle_contexts set key_decisions_json = ?2 where id = ?1",
        (context.as_str(), rows::json("decision", &texts)?),
    )?;
    Ok(added)
}

/// Those of a conversation, in the order they were said.
pub(super) fn of(tx: &Tx<'_>, context: &ContextId) -> Result<Vec<KeyDecision>, ConversationError> {
    let all = with_ids(tx, context)?;
    Ok(all.into_iter().map(|(_, decision)| decision).collect())
}

/// The same with the id of each.
pub(super) fn with_ids(
    tx: &Tx<'_>,
    context: &ContextId,
) -> Result<Vec<(String, KeyDecision)>, ConversationError> {
    let read = |row: &Row<'_>| -> Result<(String, KeyDecision), DbError> {
        let decision = KeyDecision {
            kind: DecisionKind::parse(row.text(1)?)?,
            text: row.get(2)?,
            created_at: rows::time(row, 3)?,
        };
        Ok((row.get(0)?, decision))
    };
    let sql = "select id, kind, text, created_at from key_decisions
        where context_id = ?1 order by id";
    Ok(tx.query(sql, (context.as_str(),), read)?)
}
