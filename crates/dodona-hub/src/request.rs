//! A call as a surface sends it to the hub.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::Params;
use dodona_proto::{Principal, ProjectId};
use serde_json::Value;

/// A call from a surface.
#[derive(Debug, Clone)]
pub struct Request {
    pub principal: Arc<Principal>,
    /// The project the call is about. The caller must be a member of it.
    pub project: Option<ProjectId>,
    /// The method's name, such as `echo.say`.
    pub method: String,
    pub params: Params,
    /// Shortens the timeout of the method; it cannot extend it.
    pub timeout: Option<Duration>,
    /// What happens to a stream without readers. Only for [`crate::PluginHub::open`].
    pub when_unread: UnreadPolicy,
}

/// What happens to a stream without readers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnreadPolicy {
    /// The call is cancelled when there was no reader for the hub's `stream_grace`.
    #[default]
    CancelAfterGrace,
    /// The call runs to its end.
    RunToEnd,
}

impl Request {
    /// A request with untrusted parameters. They are validated against the method's schema.
    pub fn new(principal: Arc<Principal>, method: impl Into<String>, params: Value) -> Self {
        Self {
            principal,
            project: None,
            method: method.into(),
            params: Params::foreign(params),
            timeout: None,
            when_unread: UnreadPolicy::default(),
        }
    }

    /// A request from typed code in this process. Its parameters are not validated.
    pub fn from_code(principal: Arc<Principal>, method: impl Into<String>, params: Value) -> Self {
        Self {
            params: Params::code(params),
            ..Self::new(principal, method, Value::Null)
        }
    }
}
