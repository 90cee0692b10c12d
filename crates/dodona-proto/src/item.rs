//! What a call emits.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, ErrorCode, PluginPath};

/// One thing a call emitted, as every wire carries it: a flat object.
///
/// The fields of the body tell its kind; transports that have a place for it (the `event:` of
/// SSE) name the kind there too.
#[doc(alias("Item", "TrackedStreamItem", "PluginStreamItem"))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HubStreamItem {
    /// The call that emitted it.
    pub call_id: CallId,
    /// Its place in the stream of the root call, from 1 and without a hole.
    pub seq: u64,
    /// The names that led to that call.
    pub plugin_path: PluginPath,
    /// What it says.
    #[serde(flatten)]
    pub body: ItemBody,
}

/// What an item says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ItemBody {
    /// Work goes on.
    Progress {
        /// What is being done, for people.
        message: String,
        /// How far, from 0 to 100, where that is known.
        percentage: Option<f32>,
    },
    /// A piece of the result.
    Data {
        /// Names the type of `data`, such as `TextDelta`.
        content_type: Cow<'static, str>,
        /// The piece itself.
        data: Value,
    },
    /// Something went wrong.
    Error {
        /// What, for people.
        error: String,
        /// What, for programs.
        code: ErrorCode,
        /// Whether the call goes on.
        recoverable: bool,
        /// The next thing to try, for people, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The end. Exactly one per call, and its last item.
    Done {
        /// How it ended.
        status: DoneStatus,
        /// Why, where `status` alone does not say it.
        reason: Option<String>,
    },
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// See [`ItemBody::Progress`].
    Progress,
    /// See [`ItemBody::Data`].
    Data,
    /// See [`ItemBody::Error`].
    Error,
    /// See [`ItemBody::Done`].
    Done,
}

impl ItemKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Progress => "progress",
            Self::Data => "data",
            Self::Error => "error",
            Self::Done => "done",
        }
    }
}

impl ItemBody {
    /// The kind of this body.
    pub fn kind(&self) -> ItemKind {
        match self {
            Self::Progress { .. } => ItemKind::Progress,
            Self::Data { .. } => ItemKind::Data,
            Self::Error { .. } => ItemKind::Error,
            Self::Done { .. } => ItemKind::Done,
        }
    }
}

/// How a call ended. `Refused` (policy) and `Limited` (rate, size, time) are not failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoneStatus {
    /// It did what was asked.
    Complete,
    /// Somebody stopped it.
    Cancelled,
    /// A policy said no.
    Refused,
    /// It hit a bound of rate, size or time.
    Limited,
    /// It broke.
    Failed,
}

impl DoneStatus {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::Failed => "failed",
        }
    }
}
