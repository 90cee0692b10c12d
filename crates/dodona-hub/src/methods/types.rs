//! Parameters and results of the plugin `hub`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::{
    CallSummary, DoneStatus, HubStreamItem, MethodDescriptor, PluginStatus, Project, Scopes,
    StreamId, UserId,
};
use dodona_store::journal::{StoredItem, StreamEnd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::accounts::TokenInfo;
use crate::hub::Health;

#[derive(Serialize, JsonSchema)]
pub(super) struct PluginsResult {
    pub(super) plugins: Vec<PluginStatus>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct MethodsParams {
    /// Only methods of this plugin.
    pub(super) plugin: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct MethodsResult {
    pub(super) methods: Vec<Arc<MethodDescriptor>>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SchemaHashParams {
    /// Only the schemas of this method.
    pub(super) method: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SchemaHashResult {
    /// SHA-256 hash in hex.
    pub(super) hash: String,
}

impl SchemaHashResult {
    pub(super) fn of_all(methods: &[Arc<MethodDescriptor>]) -> Self {
        let hashes: Vec<(&str, &str)> = methods
            .iter()
            .map(|method| (method.name.as_str(), method.schema_hash.as_str()))
            .collect();
        Self {
            hash: dodona_plugin::schema_hash(&serde_json::json!(hashes)),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CallsResult {
    /// Parents before their children.
    pub(super) calls: Vec<CallSummary>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CancelParams {
    /// Cancel this call and all calls nested in it.
    pub(super) call_id: Option<String>,
    /// Cancel all calls of this stream; with `path`, only those with a matching path.
    pub(super) stream_id: Option<String>,
    /// Cancel all calls whose path starts with this, such as `agent.librarian`.
    pub(super) path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CancelResult {
    pub(super) stopped: Vec<CallSummary>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct HealthResult {
    /// Either `ok` or `stopping`.
    status: &'static str,
    version: &'static str,
    uptime_ms: u64,
    /// Number of running calls, nested calls included.
    calls: usize,
    plugins_active: usize,
    plugins_not_active: usize,
    /// Bytes of journal entries that are not committed yet.
    journal_backlog_bytes: usize,
    /// Number of streams that recovery closed at the start.
    recovered_streams: u64,
    /// Number of mutating calls that recovery closed at the start.
    recovered_calls: u64,
}

impl From<Health> for HealthResult {
    fn from(health: Health) -> Self {
        Self {
            status: if health.stopping { "stopping" } else { "ok" },
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: u64::try_from(health.uptime.as_millis()).unwrap_or(u64::MAX),
            calls: health.calls,
            plugins_active: health.plugins.0,
            plugins_not_active: health.plugins.1,
            journal_backlog_bytes: health.journal_backlog,
            recovered_streams: health.recovered.streams,
            recovered_calls: health.recovered.calls,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RegisterProjectParams {
    /// Absolute path of the directory.
    pub(super) root: PathBuf,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ProjectsResult {
    pub(super) projects: Vec<Arc<Project>>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct StreamParams {
    /// The id of the stream.
    pub(super) stream_id: StreamId,
    /// Number of the last item already read. Default 0.
    #[serde(default)]
    pub(super) after: u64,
    /// Maximum number of items.
    #[serde(default = "page")]
    #[schemars(range(max = 1000))]
    pub(super) limit: NonZeroU32,
}

fn page() -> NonZeroU32 {
    const { NonZeroU32::new(100).expect("not zero") }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct StreamResult {
    /// The items, in the same form as in a stream.
    items: Vec<Value>,
    /// Pass it as `after` to continue.
    next_after: u64,
    /// The final status, if the stream has ended.
    ended: Option<DoneStatus>,
}

impl StreamResult {
    pub(super) fn new(
        items: &[Arc<StoredItem>],
        after: u64,
        end: Option<StreamEnd>,
    ) -> Result<Self, CallError> {
        let next_after = items.last().map_or(after, |item| item.seq);
        let unreadable =
            |error| CallError::new(ErrorCode::Internal, "a stored item cannot be read").log(error);
        let written = |item: HubStreamItem| serde_json::to_value(item);
        let items = items
            .iter()
            .map(|item| item.to_item().and_then(written).map_err(unreadable));
        Ok(Self {
            items: items.collect::<Result<_, _>>()?,
            next_after,
            ended: end.map(|end| end.status),
        })
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TokensResult {
    pub(super) tokens: Vec<TokenInfo>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TokenCreateParams {
    /// The user. Created if it does not exist.
    pub(super) user: UserId,
    /// The purpose of the token. Unique per user.
    pub(super) name: String,
    /// The scopes, such as `vault:read`, `vault:*` or `*`.
    pub(super) scopes: Scopes,
    /// Seconds until the token expires. Default: never.
    #[schemars(range(min = 1))]
    pub(super) expires_in_s: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TokenCreated {
    /// The text of the token. It cannot be shown again.
    pub(super) token: String,
    pub(super) info: TokenInfo,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TokenRevokeParams {
    /// The public id of the token.
    pub(super) id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TokenRevoked {
    pub(super) id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LoginCode {
    /// The code for `/login?code=…`.
    pub(super) code: String,
}
