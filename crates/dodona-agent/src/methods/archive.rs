//! `agent.export` and `agent.import`.

use std::borrow::Cow;

use dodona_plugin::store::Redactor;
use dodona_plugin::{CallError, ErrorCode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fork::Copied;
use super::named;
use crate::conversation::{
    Archive, Conversations, OracleContext, Owner, SEED_EXCHANGES, SeedContext,
};

/// The form of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExportFormat {
    /// Everything: all exchanges with their queries, decisions with their kinds, the summary.
    #[default]
    Archive,
    /// One row of the data model's table `oracle_contexts`, with `recent_exchanges_json` and
    /// `key_decisions_json` as JSON texts.
    Seed,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExportParams {
    /// Which one, by id or name; the default one without.
    context_id: Option<String>,
    /// `archive` or `seed`.
    #[serde(default)]
    format: ExportFormat,
    /// Whether the document has secrets as they were said. Without it they are redacted.
    #[serde(default)]
    raw: bool,
}

/// A conversation as a document.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Exported {
    Archive(Box<Archive>),
    Seed(Box<SeedContext>),
}

impl JsonSchema for Exported {
    fn schema_name() -> Cow<'static, str> {
        "Exported".into()
    }

    /// As the derived one, with the type that the root of a result must have.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let archive = generator.subschema_for::<Archive>();
        let seed = generator.subschema_for::<SeedContext>();
        json_schema!({ "type": "object", "anyOf": [archive, seed] })
    }
}

pub(super) async fn export(
    conversations: &Conversations,
    redactor: &Redactor,
    owner: &Owner,
    p: ExportParams,
) -> Result<Exported, CallError> {
    let asked = Some(named(p.context_id.as_deref()));
    if p.format == ExportFormat::Seed {
        let redactor = (!p.raw).then(|| redactor.clone());
        // Before the exchanges become texts inside of a text.
        let clean = move |context: &mut OracleContext| {
            if let Some(redactor) = redactor {
                redact_context(&redactor, context);
            }
        };
        let seed = conversations.export_seed(owner, asked, clean).await?;
        return Ok(Exported::Seed(Box::new(seed)));
    }
    let archive = conversations.export(owner, asked).await?;
    if p.raw {
        return Ok(Exported::Archive(Box::new(archive)));
    }
    let mut document = serde_json::to_value(archive).map_err(unwritable)?;
    redactor.knowing(&document).value(&mut document);
    let archive = serde_json::from_value(document).map_err(unwritable)?;
    Ok(Exported::Archive(Box::new(archive)))
}

/// Removes secrets from a conversation. One that cannot be written as JSON and read again is emptied:
/// a secret must not get out because of a fault.
fn redact_context(redactor: &Redactor, context: &mut OracleContext) {
    let Ok(mut document) = serde_json::to_value(&*context) else {
        context.recent_exchanges.clear();
        return;
    };
    redactor.knowing(&document).value(&mut document);
    match serde_json::from_value(document) {
        Ok(clean) => *context = clean,
        Err(error) => {
            tracing::error!(%error, "a redacted conversation cannot be read again");
            context.recent_exchanges.clear();
        }
    }
}

fn unwritable(error: serde_json::Error) -> CallError {
    CallError::new(ErrorCode::Internal, "the conversation cannot be written").log(error)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ImportParams {
    /// The document, in either format of `agent.export`.
    document: Document,
    /// A name for the conversation, instead of the document's.
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
}

/// A document in either format.
pub(super) enum Document {
    Archive(Box<Archive>),
    Seed(Box<SeedContext>),
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let value = Value::deserialize(deserializer)?;
        match value.get(SEED_EXCHANGES).is_some() {
            true => serde_json::from_value(value).map(Self::Seed),
            false => serde_json::from_value(value).map(Self::Archive),
        }
        .map_err(D::Error::custom)
    }
}

impl JsonSchema for Document {
    fn schema_name() -> Cow<'static, str> {
        "Document".into()
    }

    /// A condition and not `anyOf`, so that a fault is reported for the format that is meant.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let seed = generator.subschema_for::<SeedContext>();
        let archive = generator.subschema_for::<Archive>();
        json_schema!({
            "type": "object",
            "if": { "required": [SEED_EXCHANGES] },
            "then": seed,
            "else": archive,
        })
    }
}

pub(super) async fn import(
    conversations: &Conversations,
    owner: &Owner,
    p: ImportParams,
) -> Result<Copied, CallError> {
    let name = p.name.as_deref();
    let imported = match p.document {
        Document::Archive(archive) => conversations.import(owner, *archive, name).await,
        Document::Seed(seed) => conversations.import_seed(owner, *seed, name).await,
    };
    Ok(imported?.into())
}
