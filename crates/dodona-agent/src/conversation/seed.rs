//! A conversation in the form of the data model's table `oracle_contexts`.
//!
//! The form has what the data model has and no more: the window, the texts of the key decisions and
//! the summary as a text. Exchanges that left the window, the kinds of decisions and the exact
//! endings of tool calls are in the document of [`Archive`] only.

use std::borrow::Cow;

use dodona_plugin::store::Tx;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::Conversations;
use super::archive::Archive;
use super::compact;
use super::context::{ContextStatus, DEFAULT_AGENT, DEFAULT_TOKEN_BUDGET, OracleContext};
use super::error::{ConversationError, Invalid};
use super::exchange::{ExchangeRole, OracleExchange};
use super::id::{ContextId, ExchangeId};
use super::lifecycle::find;
use super::restore::Restored;
use super::rows::{self, Owner};
use super::summary::{LineKind, SummaryLine};
use super::tool_call::{ToolCallRecord, ToolCallStatus};

/// The field that tells this form from an [`Archive`].
pub(crate) const EXCHANGES: &str = "recent_exchanges_json";

/// One row of `oracle_contexts`, with the columns of the data model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeedContext {
    /// A UUID.
    pub id: ContextId,
    /// The user.
    pub user_id: String,
    /// The project.
    pub project_id: String,
    /// When the conversation was created.
    pub session_start: Timestamp,
    /// The last interaction.
    #[serde(default)]
    pub last_activity: Option<Timestamp>,
    /// The model of the last turn.
    #[serde(default)]
    pub last_model: Option<String>,
    /// The most tokens that the window may have.
    #[serde(default = "default_budget")]
    pub token_budget: u64,
    /// The tokens that it has.
    #[serde(default)]
    pub tokens_used: u64,
    /// What older exchanges were compressed to, one statement per line.
    #[serde(default)]
    pub compressed_summary: Option<String>,
    /// The exchanges of the window, as JSON text. An import also accepts the list itself.
    #[serde(default)]
    pub recent_exchanges_json: JsonText,
    /// The texts of the key decisions, as JSON text. An import also accepts the list itself.
    #[serde(default)]
    pub key_decisions_json: JsonText,
    /// Symbols that were mentioned, one per line, the latest first.
    #[serde(default)]
    pub mentioned_symbols: Option<String>,
    /// Files that were mentioned, one per line, the latest first.
    #[serde(default)]
    pub mentioned_files: Option<String>,
    /// `active`, `suspended` or `closed`.
    #[serde(default)]
    pub status: ContextStatus,
    /// How many times it was compressed.
    #[serde(default)]
    pub compression_count: u64,
    /// The agent that it belongs to. The data model has no such column; it is left out for `oracle`.
    #[serde(default = "default_agent", skip_serializing_if = "is_default_agent")]
    pub agent_id: String,
}

fn default_budget() -> u64 {
    DEFAULT_TOKEN_BUDGET
}

fn default_agent() -> String {
    DEFAULT_AGENT.to_owned()
}

fn is_default_agent(agent: &str) -> bool {
    agent == DEFAULT_AGENT
}

/// A list as JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct JsonText(String);

impl Default for JsonText {
    fn default() -> Self {
        Self("[]".to_owned())
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Self(text),
            Value::Null => Self::default(),
            other => Self(other.to_string()),
        })
    }
}

impl JsonSchema for JsonText {
    fn schema_name() -> Cow<'static, str> {
        "JsonText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "array", "null"] })
    }
}

impl JsonText {
    fn of(value: &impl Serialize) -> Result<Self, ConversationError> {
        Ok(Self(rows::json("conversation", value)?))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parse<T: serde::de::DeserializeOwned>(&self, field: &'static str) -> Result<T, Invalid> {
        serde_json::from_str(&self.0)
            .map_err(|error| Invalid::new(field, format!("expected a JSON list: {error}")))
    }
}

/// An exchange with the fields of the data model, in its order.
#[derive(Serialize)]
struct SeedExchange<'e> {
    id: &'e ExchangeId,
    role: ExchangeRole,
    content: &'e str,
    tool_calls: Option<Vec<SeedToolCall<'e>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'e str>,
    timestamp: Timestamp,
    token_count: u64,
    key_insight: Option<&'e str>,
    mentioned_symbols: &'e [String],
    mentioned_files: &'e [String],
}

/// A tool call with the fields of the data model.
#[derive(Serialize)]
struct SeedToolCall<'e> {
    id: &'e str,
    name: &'e str,
    arguments: &'e Map<String, Value>,
    result: Option<&'e str>,
    status: ToolCallStatus,
    duration_ms: Option<u64>,
}

impl<'e> From<&'e OracleExchange> for SeedExchange<'e> {
    fn from(exchange: &'e OracleExchange) -> Self {
        let calls = exchange.tool_calls.as_ref();
        Self {
            id: &exchange.id,
            role: exchange.role,
            content: &exchange.content,
            tool_calls: calls.map(|calls| calls.iter().map(SeedToolCall::from).collect()),
            tool_call_id: exchange.tool_call_id.as_deref(),
            timestamp: exchange.timestamp,
            token_count: exchange.token_count,
            key_insight: exchange.key_insight.as_deref(),
            mentioned_symbols: &exchange.mentioned_symbols,
            mentioned_files: &exchange.mentioned_files,
        }
    }
}

impl<'e> From<&'e ToolCallRecord> for SeedToolCall<'e> {
    fn from(call: &'e ToolCallRecord) -> Self {
        Self {
            id: &call.id,
            name: &call.name,
            arguments: &call.arguments,
            result: call.result.as_deref(),
            status: call.status,
            duration_ms: call.duration_ms,
        }
    }
}

impl Conversations {
    /// A conversation in the form of the data model, which
    /// [`import_seed`](Conversations::import_seed) accepts. `clean` may change the texts before they
    /// are written as JSON.
    pub async fn export_seed(
        &self,
        owner: &Owner,
        context: Option<&str>,
        clean: impl FnOnce(&mut OracleContext) + Send + 'static,
    ) -> Result<SeedContext, ConversationError> {
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        self.read(move |tx| {
            let id = find(tx, &owner, asked.as_deref())?.id;
            let mut context = rows::context(tx, &id)?;
            context.compressed_summary = plain_summary(tx, &id)?;
            clean(&mut context);
            SeedContext::of(context)
        })
        .await
    }

    /// Creates a conversation from the form of the data model, as
    /// [`import`](Conversations::import) does from an archive.
    pub async fn import_seed(
        &self,
        owner: &Owner,
        seed: SeedContext,
        name: Option<&str>,
    ) -> Result<Restored, ConversationError> {
        let imported = self.import(owner, seed.into_archive()?, name).await;
        imported.map_err(|error| match error {
            ConversationError::Invalid(invalid) => in_seed(invalid).into(),
            other => other,
        })
    }
}

/// Names a field as this form has it.
fn in_seed(mut invalid: Invalid) -> Invalid {
    let renamed = [
        ("context.recent_exchanges", EXCHANGES),
        ("decisions", "key_decisions_json"),
        ("context.", ""),
    ];
    for (ours, theirs) in renamed {
        if let Some(rest) = invalid.field.strip_prefix(ours) {
            invalid.field = format!("{theirs}{rest}");
            break;
        }
    }
    invalid
}

impl SeedContext {
    fn of(context: OracleContext) -> Result<Self, ConversationError> {
        let exchanges: Vec<SeedExchange<'_>> =
            context.recent_exchanges.iter().map(Into::into).collect();
        Ok(Self {
            recent_exchanges_json: JsonText::of(&exchanges)?,
            key_decisions_json: JsonText::of(&context.key_decisions)?,
            id: context.id,
            user_id: context.user_id,
            project_id: context.project_id,
            session_start: context.session_start,
            last_activity: context.last_activity,
            last_model: context.last_model,
            token_budget: context.token_budget,
            tokens_used: context.tokens_used,
            compressed_summary: context.compressed_summary,
            mentioned_symbols: context.mentioned_symbols,
            mentioned_files: context.mentioned_files,
            status: context.status,
            compression_count: context.compression_count,
            agent_id: context.agent_id,
        })
    }

    /// The archive with the same content.
    fn into_archive(self) -> Result<Archive, Invalid> {
        Ok(Archive::of_window(OracleContext {
            recent_exchanges: self.recent_exchanges_json.parse(EXCHANGES)?,
            key_decisions: self.key_decisions_json.parse("key_decisions_json")?,
            id: self.id,
            user_id: self.user_id,
            project_id: self.project_id,
            session_start: self.session_start,
            last_activity: self.last_activity,
            last_model: self.last_model,
            token_budget: self.token_budget,
            tokens_used: self.tokens_used,
            compressed_summary: self.compressed_summary,
            mentioned_symbols: self.mentioned_symbols,
            mentioned_files: self.mentioned_files,
            status: self.status,
            compression_count: self.compression_count,
            agent_id: self.agent_id,
            name: None,
            is_default: false,
            summary_tokens: 0,
            forked_from: None,
        }))
    }
}

/// The summary without headings and without the numbers of exchanges, which mean nothing elsewhere.
fn plain_summary(tx: &Tx<'_>, id: &ContextId) -> Result<Option<String>, ConversationError> {
    let lines = compact::lines(tx, id)?;
    let plain = |line: &SummaryLine| {
        let text = line.text.replace(['\n', '\r'], " ");
        match line.kind {
            LineKind::Asked => format!("asked: {text}"),
            LineKind::Did => format!("ran: {text}"),
            _ => text,
        }
    };
    let lines: Vec<String> = lines.iter().map(plain).collect();
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}
