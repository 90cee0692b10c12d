//! `agent.export` and `agent.import`.

use dodona_plugin::CallError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::fork::Copied;
use super::named;
use crate::conversation::{Archive, Conversations, Owner};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExportParams {
    /// Which one, by id or name; the default one without.
    context_id: Option<String>,
}

pub(super) async fn export(
    conversations: &Conversations,
    owner: &Owner,
    p: ExportParams,
) -> Result<Archive, CallError> {
    let asked = Some(named(p.context_id.as_deref()));
    Ok(conversations.export(owner, asked).await?)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ImportParams {
    /// The document.
    document: Archive,
    /// A name for the conversation, instead of the document's.
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
}

pub(super) async fn import(
    conversations: &Conversations,
    owner: &Owner,
    p: ImportParams,
) -> Result<Copied, CallError> {
    let import = conversations.import(owner, p.document, p.name.as_deref());
    Ok(import.await?.into())
}
