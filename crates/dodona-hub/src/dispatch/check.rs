//! Whether a caller may make a call now.

use std::sync::Arc;

use dodona_plugin::{Origin, Params};
use dodona_proto::{CallError, ErrorCode, Principal, Project};
use serde_json::{Map, Value};

use super::Dispatcher;
use crate::limits::ConcurrencySlot;
use crate::meter;
use crate::router::Route;
use crate::validate::check_params;

/// Where a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOrigin {
    /// A surface: wire, command line, page. It reaches only methods that have a scope.
    Surface,
    /// Another call in this process. It also reaches methods without a scope.
    NestedCall,
}

/// A call that passed all checks and has not started.
pub(crate) struct CheckedCall {
    pub(crate) route: Arc<Route>,
    pub(crate) params: Value,
    /// Counted against the limits of the user, of the user at the plugin, and of the plugin.
    /// Freed when dropped.
    pub(crate) slots: [Option<ConcurrencySlot>; 3],
}

impl Dispatcher<'_> {
    /// Checks a call: scope, limits, method lookup, parameters. There is no other way to a method,
    /// for surfaces and for nested calls.
    pub(crate) fn check(
        self,
        caller: &Principal,
        origin: CallOrigin,
        project: Option<&Project>,
        method: &str,
        params: Params,
    ) -> Result<CheckedCall, CallError> {
        self.run_checks(caller, origin, project, method, params)
            .inspect_err(|error| meter::count_rejected(&error.code))
    }

    fn run_checks(
        self,
        caller: &Principal,
        origin: CallOrigin,
        project: Option<&Project>,
        method: &str,
        params: Params,
    ) -> Result<CheckedCall, CallError> {
        if origin == CallOrigin::Surface {
            self.hub.check_not_stopping()?;
        }
        let snapshot = self.hub.snapshot.load();
        let route = snapshot
            .routes
            .get(method)
            .filter(|route| is_reachable(route, origin))
            .filter(|route| route.is_available_in(project.map(|project| &project.id)));
        check_scope(caller, route)?;
        // The limits count before an unknown method is reported, so that guessing names is limited too.
        let slots = self.acquire_slots(caller, origin, route)?;
        let route = Arc::clone(route.ok_or_else(|| snapshot.method_not_found(method))?);
        let params = self.validate(&route, params)?;
        Ok(CheckedCall {
            route,
            params,
            slots,
        })
    }

    fn acquire_slots(
        self,
        caller: &Principal,
        origin: CallOrigin,
        route: Option<&Arc<Route>>,
    ) -> Result<[Option<ConcurrencySlot>; 3], CallError> {
        let user = match origin {
            CallOrigin::Surface => Some(self.hub.user_limits.acquire(&caller.user)?),
            CallOrigin::NestedCall => None,
        };
        let [user_at_plugin, plugin] = match route {
            Some(route) => route.limits.acquire(&caller.user)?,
            None => [None, None],
        };
        Ok([user, user_at_plugin, plugin])
    }

    fn validate(self, route: &Route, params: Params) -> Result<Value, CallError> {
        let value = match params.value {
            Value::Null => Value::Object(Map::new()),
            value => value,
        };
        // Parameters from typed code were checked by the compiler.
        if params.origin == Origin::Foreign {
            check_params(
                &value,
                &route.descriptor().params,
                &route.validator,
                &self.hub.config.limits,
            )?;
        }
        Ok(value)
    }
}

fn is_reachable(route: &Route, origin: CallOrigin) -> bool {
    origin == CallOrigin::NestedCall || route.descriptor().scope.is_some()
}

fn check_scope(caller: &Principal, route: Option<&Arc<Route>>) -> Result<(), CallError> {
    let Some(scope) = route.and_then(|route| route.descriptor().scope.as_ref()) else {
        return Ok(());
    };
    if caller.scopes.allow(scope) {
        return Ok(());
    }
    let message = format!(
        "permission denied: user `{}` lacks scope `{scope}`",
        caller.user
    );
    Err(CallError::new(ErrorCode::Forbidden, message).hint("use a token that has this scope"))
}
