//! The installed methods, as an immutable snapshot.

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
    /// The project whose calls may use the method; `None` means all calls.
    pub(crate) project: Option<ProjectId>,
    /// The plugins that the method may call; `None` means any.
    pub(crate) callable: Option<Arc<BTreeSet<PluginName>>>,
    /// Held while a snapshot or a running call can use the method.
    pub(crate) _lease: Arc<Lease>,
}

/// Shared by all routes of one activation of a plugin. When the last route is dropped, no call runs in
/// the plugin any more and it can be deactivated.
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
    /// Whether calls about the project, or about none, may use the method.
    pub(crate) fn is_available_in(&self, project: Option<&ProjectId>) -> bool {
        self.project.is_none() || self.project.as_ref() == project
    }

    pub(crate) fn descriptor(&self) -> &MethodDescriptor {
        self.method.descriptor()
    }
}

/// What is installed: methods, hooks and plugin states. Replaced as a whole when plugins change. A
/// running call keeps the route it started with.
#[derive(Default)]
pub(crate) struct RouterSnapshot {
    pub(crate) routes: HashMap<MethodName, Arc<Route>>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) plugins: BTreeMap<PluginName, PluginStatus>,
    /// Set while a plugin that enforces rules is not active. No tool runs then.
    pub(crate) tools_disabled_reason: Option<String>,
}

impl RouterSnapshot {
    /// The error for an unknown method, with the nearest name or the state of its plugin.
    pub(crate) fn method_not_found(&self, method: &str) -> CallError {
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
            format!("method `{name}` not found"),
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

const LIST_METHODS: &str = "run `dodona methods` to list all methods";
