//! Routes that plugins add: `/plugins/<name>/<path>` answers with a method of that plugin.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dodona_hub::PluginHub;
use dodona_plugin::hooks::Hooks;
use dodona_plugin::hooks::point::DaemonServerRegister;
use dodona_proto::hook::{RouteTable, ServerRoute};
use dodona_proto::{
    CallError, ErrorCode, MethodKind, MethodName, Mutation, PluginEffect, PluginName,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::app::App;
use crate::auth::Caller;
use crate::{http, rpc};

/// Below which path the routes of all plugins are.
const BELOW: &str = "/plugins/";

/// The longest path of a route.
const LONGEST: usize = 200;

/// The routes that plugins have added. They are asked again after a reload.
pub(crate) struct Mounts(Mutex<Arc<Table>>);

/// What the plugins of one reload answered.
struct Table {
    asked: Arc<Hooks>,
    /// By plugin and path: `notes/today`.
    routes: BTreeMap<String, MethodName>,
}

/// Why a route is not mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("a path is at most {LONGEST} letters, digits and `-_.~`, in parts between slashes")]
    Path,
    #[error("the path is taken by another of its routes")]
    Taken,
    #[error("the method belongs to another plugin")]
    Foreign,
    #[error("there is no such method that can be reached from outside")]
    Unknown,
    #[error("the method streams")]
    Streams,
}

impl Mounts {
    /// Asks the plugins which routes they want.
    pub(crate) async fn gather(hub: &PluginHub) -> Self {
        Self(Mutex::new(Arc::new(Table::gather(hub).await)))
    }

    /// The method at a path.
    async fn find(&self, hub: &PluginHub, path: &str) -> Option<MethodName> {
        let mut table = self.0.lock().await;
        if !Arc::ptr_eq(&table.asked, &hub.hooks()) {
            *table = Arc::new(Table::gather(hub).await);
        }
        table.routes.get(path).cloned()
    }
}

impl Table {
    async fn gather(hub: &PluginHub) -> Self {
        let asked = hub.hooks();
        let fired = asked.fire::<DaemonServerRegister>(RouteTable::default());
        let fired = fired.await;
        for PluginEffect { plugin, effect } in &fired.effects {
            tracing::warn!(%plugin, ?effect, hook = "DAEMON_SERVER_REGISTER", "no effect has a place here, where nobody is served yet");
        }
        let mut routes = BTreeMap::new();
        for (plugin, route) in fired.payload.routes {
            if let Err(refusal) = mount(hub, &mut routes, &plugin, &route) {
                let ServerRoute { path, method } = &route;
                tracing::warn!(%plugin, ?path, %method, hook = "DAEMON_SERVER_REGISTER", "a route is not mounted: {refusal}");
            }
        }
        Self { asked, routes }
    }
}

fn mount(
    hub: &PluginHub,
    routes: &mut BTreeMap<String, MethodName>,
    plugin: &PluginName,
    route: &ServerRoute,
) -> Result<(), Refusal> {
    let ServerRoute { path, method } = route;
    if !is_path(path) {
        return Err(Refusal::Path);
    }
    if method.plugin() != plugin.as_str() {
        return Err(Refusal::Foreign);
    }
    let descriptor = hub.method(method.as_str()).ok_or(Refusal::Unknown)?;
    if descriptor.kind == MethodKind::Streaming {
        return Err(Refusal::Streams);
    }
    match routes.entry(format!("{plugin}/{path}")) {
        Entry::Occupied(_) => Err(Refusal::Taken),
        Entry::Vacant(free) => {
            free.insert(method.clone());
            Ok(())
        }
    }
}

/// What means the same to every client and proxy on the way: nothing to decode, no steps up.
fn is_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    path.len() <= LONGEST
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain))
}

/// Answers `GET` with the query as parameters, `POST` with the body.
pub(crate) async fn answer(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // Before it is looked up: what there is, is not for strangers.
    let caller = match Caller::find(&app, &parts) {
        Ok(caller) => caller,
        Err(error) => return http::refusal(&error),
    };
    let path = parts.uri.path().strip_prefix(BELOW).unwrap_or_default();
    let Some(method) = app.mounts.find(&app.hub, path).await else {
        return http::refusal(&CallError::new(
            ErrorCode::NotFound,
            "no plugin has this path",
        ));
    };
    if let Some(allowed) = not_allowed(&app.hub, &parts.method, &method) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, allowed)]).into_response();
    }
    let params = match parts.method {
        Method::GET => query(&parts),
        _ => match http::json_body(&app, &parts, body).await {
            Ok(body) => parameters(&body),
            Err(refusal) => return refusal,
        },
    };
    let outcome = match params {
        Ok(params) => rpc::run(&app.hub, &caller, method.as_str(), params, None).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(answer) => http::json(StatusCode::OK, answer.over_http()),
        Err(error) => http::refusal(&error),
    }
}

/// What would be allowed instead. A link that somebody follows must not change anything.
fn not_allowed(hub: &PluginHub, verb: &Method, method: &MethodName) -> Option<&'static str> {
    let descriptor = hub.method(method.as_str());
    let reads = descriptor.is_none_or(|descriptor| descriptor.mutation == Mutation::Reads);
    match *verb {
        Method::POST => None,
        Method::GET if reads => None,
        _ if reads => Some("GET, POST"),
        _ => Some("POST"),
    }
}

/// The query as an object of strings.
fn query(parts: &Parts) -> Result<Value, CallError> {
    let bad = |message: String| CallError::new(ErrorCode::InvalidParams, message);
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
        .map_err(|_| bad("the query cannot be read".to_owned()))?;
    let mut params = Map::new();
    for (name, value) in pairs {
        if params.contains_key(&name) {
            return Err(bad(format!("`{name}` is there twice")));
        }
        params.insert(name, Value::String(value));
    }
    Ok(Value::Object(params))
}

/// The body as parameters; none is an empty object.
fn parameters(body: &[u8]) -> Result<Value, CallError> {
    match body.trim_ascii().is_empty() {
        true => Ok(Value::Object(Map::new())),
        false => rpc::value(body),
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, is_path};

    #[test]
    fn a_path_means_the_same_to_everybody_who_reads_it() {
        for good in ["today", "a/b.json", "v1/notes/~draft_2", "..."] {
            assert!(is_path(good), "{good}");
        }
        let long = "a".repeat(LONGEST + 1);
        let bad = [
            "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a%2fb", "a%2e", "a b", "a?b",
            "a#b", "a\\b", "a:b", "{id}", "*", "a\nb", "früh", &long,
        ];
        for bad in bad {
            assert!(!is_path(bad), "{bad}");
        }
    }
}
