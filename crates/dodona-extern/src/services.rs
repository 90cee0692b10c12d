//! What a plugin from outside may use of the server: the same for scripts and for processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::activation::EventDraft;
use dodona_plugin::http::{HttpError, HttpMethod, HttpRequest, HttpResponse};
use dodona_plugin::{
    Behalf, CallError, ErrorCode, PluginContext, PluginSettings, State, StateStore, SystemContext,
};
use dodona_proto::{Event, HookPoint, PluginName, ProjectId, Severity, UserId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::database::PluginDb;

/// The longest time and the largest response that a plugin may ask for.
const MAX_SECONDS: f64 = 60.0;
const MAX_BYTES: usize = 4 << 20;

/// What the types of events begin with that plugins publish.
const CUSTOM: &str = "custom.";

/// The services of one plugin. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) plugin: PluginName,
    pub(crate) settings: PluginSettings,
    pub(crate) state: StateStore,
    pub(crate) db: PluginDb,
    pub(crate) system: Arc<SystemContext>,
    /// The only project that it concerns.
    pub(crate) project: Option<ProjectId>,
}

impl Services {
    pub(crate) fn new(ctx: &PluginContext) -> Self {
        Self {
            plugin: ctx.name.clone(),
            settings: ctx.settings.clone(),
            state: ctx.state.clone(),
            db: PluginDb::new(ctx.db.clone()),
            system: Arc::clone(&ctx.system),
            project: ctx.project.clone(),
        }
    }

    /// Publishes an event of the plugin, caused by another where there is one.
    pub(crate) async fn publish(
        &self,
        behalf: Option<Behalf<'_>>,
        cause: Option<&Event>,
        kind: &str,
        payload: Value,
    ) -> Result<Value, CallError> {
        let invalid = |message: String| CallError::new(ErrorCode::InvalidParams, message);
        let rest = kind.strip_prefix(CUSTOM).unwrap_or_default();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        let is_word = |word: &str| !word.is_empty() && word.chars().all(fits);
        if kind.len() > 256 || !rest.split('.').all(is_word) {
            let shown: String = kind.chars().take(80).collect();
            return Err(invalid(format!(
                "`{}` is not an event type of a plugin; write one such as `custom.release`",
                shown.escape_debug()
            )));
        }
        if !(payload.is_object() || payload.is_null()) {
            return Err(invalid("the payload of an event is an object".to_owned()));
        }
        let draft = EventDraft {
            kind,
            source: self.plugin.as_str(),
            severity: Severity::Info,
            payload,
            behalf,
            id: None,
        };
        let bus = &self.system.event_bus;
        match cause {
            Some(cause) => bus.publish_after(cause, draft).await?,
            None => bus.publish(draft).await?,
        }
        Ok(Value::Null)
    }

    /// Sends an HTTP request and returns the response as JSON.
    pub(crate) async fn http(&self, request: Value) -> Result<Value, String> {
        let request: HttpSpec =
            serde_json::from_value(request).map_err(|error| format!("invalid request: {error}"))?;
        let sent = self.system.http_client.send(request.read()?).await;
        let response = sent.map_err(|error| self.refusal(&error))?;
        Ok(to_json(response))
    }

    fn refusal(&self, error: &HttpError) -> String {
        let plugin = &self.plugin;
        match error {
            HttpError::NotGranted { host } => format!(
                "{error}: add `net:{host}` to `uses` in manifest.toml and run `dodona plugins grant \
                 {plugin} net:{host}`"
            ),
            HttpError::Private { host } => format!(
                "{error}: the user may allow it with `web.allow_hosts = [\"{host}\"]` in config.toml"
            ),
            error => error.to_string(),
        }
    }

    /// Adds to a counter, or records a time in seconds.
    pub(crate) fn measure(&self, kind: &str, name: &str, value: f64) -> Result<(), String> {
        let telemetry = &self.system.telemetry;
        let done = match kind {
            "count" if (0.0..=1e15).contains(&value) => telemetry.count(name, value as u64),
            "time" if (0.0..=1e9).contains(&value) => {
                telemetry.record(name, Duration::from_secs_f64(value))
            }
            _ => return Err(format!("`{value}` cannot be recorded for `{name}`")),
        };
        done.map_err(|error| error.to_string())
    }
}

/// A request as a plugin writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpSpec {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    json: Option<Value>,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    max_bytes: Option<usize>,
    #[serde(default)]
    max_redirects: Option<usize>,
}

impl HttpSpec {
    fn read(self) -> Result<HttpRequest, String> {
        let name = self.method.as_deref().unwrap_or("GET");
        let method = HttpMethod::from_name(name)
            .ok_or_else(|| format!("`{}` is not an HTTP method", name.escape_debug()))?;
        let mut request = HttpRequest::new(method, self.url);
        request.headers = self.headers.into_iter().collect();
        request.body = match (self.body, self.json) {
            (Some(_), Some(_)) => return Err("a request has `body` or `json`, not both".to_owned()),
            (Some(body), None) => Some(body.into_bytes()),
            (None, Some(json)) => {
                let named =
                    |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
                if !request.headers.iter().any(named) {
                    request = request.header("content-type", "application/json");
                }
                Some(json.to_string().into_bytes())
            }
            (None, None) => None,
        };
        if let Some(seconds) = self.timeout {
            if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
                return Err(format!("`timeout` is seconds, at most {MAX_SECONDS}"));
            }
            request.timeout = Duration::from_secs_f64(seconds);
        }
        if let Some(bytes) = self.max_bytes {
            if bytes > MAX_BYTES {
                return Err(format!("`max_bytes` is at most {MAX_BYTES}"));
            }
            request.max_bytes = bytes;
        }
        if let Some(count) = self.max_redirects {
            if count > 10 {
                return Err("`max_redirects` is at most 10".to_owned());
            }
            request.max_redirects = count;
        }
        Ok(request)
    }
}

fn to_json(response: HttpResponse) -> Value {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in response.headers {
        headers
            .entry(name)
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert(value);
    }
    let kind = headers.get("content-type").map(String::as_str);
    let kind = kind
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let is_json = kind.trim().ends_with("json");
    let mut json = json!({
        "url": response.url,
        "status": response.status,
        "headers": headers,
    });
    match String::from_utf8(response.body) {
        Ok(text) => {
            if is_json && let Ok(value) = serde_json::from_str::<Value>(&text) {
                json["json"] = value;
            }
            json["body"] = text.into();
        }
        Err(error) => json["base64"] = base64(error.as_bytes()).into(),
    }
    json
}

/// Bytes that are not text, in the usual alphabet and with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let of = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = of(0) << 16 | of(1) << 8 | of(2);
        for place in 0..4 {
            let index = (group >> (18 - 6 * place)) & 63;
            let letter = char::from(ALPHABET[index as usize]);
            text.push(if place <= chunk.len() { letter } else { '=' });
        }
    }
    text
}

/// `state.…` of a plugin; the name is without `state.`.
pub(crate) async fn answer_state(
    state: &State,
    name: &str,
    key: &Value,
    value: Value,
) -> Result<Value, CallError> {
    let key = key.as_str().unwrap_or_default();
    match name {
        "get" => Ok(state.get::<Value>(key).await?.unwrap_or_default()),
        "set" => Ok(json!(state.set(key, value).await?)),
        "delete" => Ok(json!(state.delete(key).await?)),
        "list" => {
            let all = state.list(key).await?;
            Ok(Value::Object(all.into_iter().collect()))
        }
        other => {
            let message = format!("there is no `state.{other}`");
            Err(CallError::new(ErrorCode::MethodNotFound, message))
        }
    }
}

/// Whether a hook of a plugin runs for a payload: one of a project's plugin only in that project.
pub(crate) fn concerns(
    project: Option<&ProjectId>,
    point: HookPoint,
    whose: Option<&Whose>,
) -> bool {
    let here = whose.and_then(|(_, project)| project.as_ref());
    // Routes are registered for no user; those of a project's plugin lead to methods that exist in the
    // project only.
    project.is_none() || project == here || point == HookPoint::DaemonServerRegister
}

/// A user, and the project where there is one.
pub(crate) type Whose = (UserId, Option<ProjectId>);

/// For whom a point is fired, where its payload says.
pub(crate) fn whose(payload: &Value) -> Option<Whose> {
    let of = |holder: &Value| {
        let user = UserId::new(holder["user"].as_str()?).ok()?;
        let project = holder["project"].as_str();
        let project = project.and_then(|project| ProjectId::new(project).ok());
        Some((user, project))
    };
    of(payload).or_else(|| of(&payload["snapshot"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_base64() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"M", "TQ=="),
            (b"Ma", "TWE="),
            (b"Man", "TWFu"),
            (&[0xff, 0xfe, 0xfd, 0x00], "//79AA=="),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }

    #[test]
    fn invalid_requests_are_explained() {
        for (request, why) in [
            (
                json!({"url": "https://a.example", "method": "TRACE"}),
                "not an HTTP method",
            ),
            (
                json!({"url": "https://a.example", "body": "x", "json": 1}),
                "not both",
            ),
            (
                json!({"url": "https://a.example", "timeout": 3600}),
                "at most 60",
            ),
            (
                json!({"url": "https://a.example", "max_bytes": 1e9 as u64}),
                "at most",
            ),
        ] {
            let spec: HttpSpec = serde_json::from_value(request).unwrap();
            let told = spec.read().unwrap_err();
            assert!(told.contains(why), "{told}");
        }
        let unknown = json!({"url": "https://a.example", "heders": {}});
        assert!(serde_json::from_value::<HttpSpec>(unknown).is_err());
    }
}
