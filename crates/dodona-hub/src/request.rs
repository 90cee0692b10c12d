//! A call from outside.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::Params;
use dodona_proto::{Principal, ProjectId};
use serde_json::Value;

/// A call from outside, as every surface hands it to the hub.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who is asking.
    pub principal: Arc<Principal>,
    /// About which project.
    pub project: Option<ProjectId>,
    /// What to call.
    pub method: String,
    /// With what.
    pub params: Params,
    /// How long it may take, if shorter than the method's own bound.
    pub timeout: Option<Duration>,
    /// What becomes of a stream that nobody reads.
    pub keep: Keep,
}

/// What becomes of a stream that nobody reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// It is cancelled after the hub's grace time.
    #[default]
    Grace,
    /// It runs to its end.
    Detached,
}

impl Request {
    /// A request with parameters that are not to be trusted.
    pub fn new(principal: Arc<Principal>, method: impl Into<String>, params: Value) -> Self {
        Self {
            principal,
            project: None,
            method: method.into(),
            params: Params::foreign(params),
            timeout: None,
            keep: Keep::default(),
        }
    }

    /// The same from typed code in this process, whose parameters need no check.
    pub fn from_code(principal: Arc<Principal>, method: impl Into<String>, params: Value) -> Self {
        Self {
            params: Params::code(params),
            ..Self::new(principal, method, Value::Null)
        }
    }
}
