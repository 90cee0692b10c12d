//! What can be called right now.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dodona_hooks::Hooks;
use dodona_plugin::Method;
use dodona_proto::{
    CallError, ErrorCode, MethodDescriptor, MethodName, PluginName, PluginState, PluginStatus,
};
use jsonschema::Validator;

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
}

impl Route {
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
            return CallError::new(ErrorCode::PluginNotActive, message).hint("run `dodona doctor`");
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

/// The candidate that a misspelt word most likely meant, if any is near enough.
pub(crate) fn nearest<T: AsRef<str>>(word: &str, candidates: impl Iterator<Item = T>) -> Option<T> {
    let word: String = word.chars().take(128).collect();
    candidates
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&word, candidate.as_ref()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.as_ref().len() / 4)
        .min_by(|a, b| (a.0, a.1.as_ref()).cmp(&(b.0, b.1.as_ref())))
        .map(|(_, candidate)| candidate)
}
