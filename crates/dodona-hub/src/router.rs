//! What can be called right now.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use dodona_hooks::Hooks;
use dodona_plugin::Method;
use dodona_plugin::reading::nearest;
use dodona_proto::{
    CallError, ErrorCode, MethodDescriptor, MethodName, PluginName, PluginState, PluginStatus,
    ProjectId,
};
use dodona_schema::Validator;
use tokio_util::sync::CancellationToken;

use crate::limits::PluginLimits;
use crate::meter::Meter;

/// A method as the dispatcher needs it.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) plugin: PluginName,
    pub(crate) validator: Validator,
    /// The content type of a unary result: the name of its schema.
    pub(crate) result_type: Arc<str>,
    pub(crate) limits: Arc<PluginLimits>,
    pub(crate) meter: Meter,
    /// The only project in which it is there; `None` is everywhere.
    pub(crate) project: Option<ProjectId>,
    /// The plugins that its calls may call; `None` is any.
    pub(crate) callable: Option<Arc<BTreeSet<PluginName>>>,
    /// Kept for as long as somebody runs the method, or may begin to.
    pub(crate) _lease: Arc<Lease>,
}

/// What all routes of one activation share. When the last of them is gone, the plugin can be let
/// go.
#[derive(Default)]
pub(crate) struct Lease {
    pub(crate) unused: CancellationToken,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.unused.cancel();
    }
}

impl Route {
    /// Whether it is there for calls about a project.
    pub(crate) fn is_in(&self, project: Option<&ProjectId>) -> bool {
        self.project.is_none() || self.project.as_ref() == project
    }

    pub(crate) fn descriptor(&self) -> &MethodDescriptor {
        self.method.descriptor()
    }
}

/// An immutable picture of what is installed. Replaced whole when that changes; a call that
/// began on an older picture ends on it.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) routes: HashMap<MethodName, Arc<Route>>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) plugins: BTreeMap<PluginName, PluginStatus>,
    /// Why no tool runs: a plugin that must always be active is not.
    pub(crate) ungoverned: Option<String>,
}

impl Snapshot {
    /// Why a method cannot be found, and what may have been meant.
    pub(crate) fn missing(&self, method: &str) -> CallError {
        let name = match MethodName::new(method) {
            Ok(name) => name,
            Err(error) => {
                return CallError::new(ErrorCode::MethodNotFound, error.to_string())
                    .hint(LIST_METHODS);
            }
        };
        if let Some(status) = self
            .plugins
            .get(name.plugin())
            .filter(|status| status.state != PluginState::Active)
        {
            let reason = status.reason.as_deref().unwrap_or("it was not activated");
            let message = format!("plugin `{}` is not active: {reason}", status.name);
            return CallError::new(ErrorCode::PluginNotActive, message)
                .hint(format!("run `dodona plugins info {}`", status.name));
        }
        let hint = match self.nearest(method) {
            Some(near) => format!("did you mean `{near}`?"),
            None => LIST_METHODS.to_owned(),
        };
        CallError::new(
            ErrorCode::MethodNotFound,
            format!("there is no method `{name}`"),
        )
        .hint(hint)
    }

    fn nearest(&self, method: &str) -> Option<&MethodName> {
        nearest(
            method,
            self.routes
                .keys()
                .filter(|name| self.routes[*name].descriptor().scope.is_some()),
        )
    }
}

const LIST_METHODS: &str = "run `dodona methods` to see what there is";
