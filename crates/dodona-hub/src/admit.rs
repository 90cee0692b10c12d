//! The dispatcher: what every call passes before it runs.

use std::sync::Arc;

use dodona_plugin::{Origin, Params};
use dodona_proto::{CallError, ErrorCode, Principal, Project};
use serde_json::{Map, Value};

use crate::hub::Core;
use crate::limits::Place;
use crate::meter;
use crate::router::Route;
use crate::validate;

/// Where a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A surface. Only methods with a scope can be reached.
    Outside,
    /// Another call in this process.
    Inside,
}

/// A call that may run.
pub(crate) struct Admitted {
    pub(crate) route: Arc<Route>,
    pub(crate) params: Value,
    /// Its places among the running calls, until it ends.
    pub(crate) places: [Option<Place>; 3],
}

impl Core {
    /// Lets a call in, or says why not. The same for every surface and every nested call; there
    /// is no other way to a method.
    pub(crate) fn admit(
        &self,
        who: &Principal,
        reach: Reach,
        project: Option<&Project>,
        method: &str,
        params: Params,
    ) -> Result<Admitted, CallError> {
        self.decide(who, reach, project, method, params)
            .inspect_err(|error| meter::refused(&error.code))
    }

    /// Authorise → limit → find → validate. What asks others, the gates of a tool, is a part of
    /// the running call.
    fn decide(
        &self,
        who: &Principal,
        reach: Reach,
        project: Option<&Project>,
        method: &str,
        params: Params,
    ) -> Result<Admitted, CallError> {
        self.refuse_when_stopping(reach)?;
        let snapshot = self.snapshot.load();
        let route = snapshot
            .routes
            .get(method)
            .filter(|route| is_reachable(route, reach))
            .filter(|route| route.is_in(project.map(|project| &project.id)));
        authorise(who, route)?;
        let places = self.limit(who, reach, route)?;
        let route = Arc::clone(route.ok_or_else(|| snapshot.missing(method))?);
        let params = self.validate(&route, params)?;
        Ok(Admitted {
            route,
            params,
            places,
        })
    }

    fn limit(
        &self,
        who: &Principal,
        reach: Reach,
        route: Option<&Arc<Route>>,
    ) -> Result<[Option<Place>; 3], CallError> {
        let user = match reach {
            Reach::Outside => Some(self.user_limits.enter(&who.user)?),
            Reach::Inside => None,
        };
        let [each, all] = match route {
            Some(route) => route.limits.enter(&who.user)?,
            None => [None, None],
        };
        Ok([user, each, all])
    }

    fn validate(&self, route: &Route, params: Params) -> Result<Value, CallError> {
        let value = match params.value {
            Value::Null => Value::Object(Map::new()),
            value => value,
        };
        if params.origin == Origin::Foreign {
            validate::check(
                &value,
                &route.descriptor().params,
                &route.validator,
                &self.config.limits,
            )?;
        }
        Ok(value)
    }
}

fn is_reachable(route: &Route, reach: Reach) -> bool {
    reach == Reach::Inside || route.descriptor().scope.is_some()
}

fn authorise(who: &Principal, route: Option<&Arc<Route>>) -> Result<(), CallError> {
    let Some(scope) = route.and_then(|route| route.descriptor().scope.as_ref()) else {
        return Ok(());
    };
    if who.scopes.allow(scope) {
        return Ok(());
    }
    let message = format!("user `{}` lacks the scope `{scope}`", who.user);
    Err(CallError::new(ErrorCode::Forbidden, message).hint("use a token that has this scope"))
}
