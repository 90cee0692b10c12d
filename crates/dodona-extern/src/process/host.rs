//! What a process asks of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dodona_plugin::{CallError, ErrorCode, LogLevel, Params, PluginLog};
use dodona_proto::Scope as TokenScope;
use serde_json::{Value, json};

use super::peer::{Peer, RpcError};
use super::scope::Scope;
use crate::database::{Statement, Wanted};
use crate::services::{Services, answer_state};

/// Answers the requests of a process.
pub(super) struct Host {
    pub(super) services: Services,
    pub(super) log: PluginLog,
    /// Whether the database has been migrated.
    is_ready: AtomicBool,
}

impl Host {
    pub(super) fn new(services: Services, log: PluginLog) -> Self {
        Self {
            services,
            log,
            is_ready: AtomicBool::new(false),
        }
    }

    /// The database can be used from now on.
    pub(super) fn ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// Takes what needs no answer.
    pub(super) fn notified(&self, method: &str, params: &Value) {
        let said = |field: &str| params[field].as_str().unwrap_or_default();
        let measured = match method {
            "log" => {
                let level = match said("level") {
                    "debug" => LogLevel::Debug,
                    "warning" => LogLevel::Warning,
                    "error" => LogLevel::Error,
                    _ => LogLevel::Info,
                };
                self.log.write(level, "log", said("message"));
                Ok(())
            }
            "metric.count" => {
                let by = params["by"].as_f64().unwrap_or(1.0);
                self.services.measure("count", said("name"), by)
            }
            "metric.time" => {
                let seconds = params["seconds"].as_f64().unwrap_or(f64::NAN);
                self.services.measure("time", said("name"), seconds)
            }
            other => Err(format!("there is no notification `{other}`")),
        };
        if let Err(why) = measured {
            self.log.write(LogLevel::Warning, "stdout", &why);
        }
    }

    /// Answers a request.
    pub(super) async fn answer(
        &self,
        peer: &Peer,
        method: &str,
        mut params: Value,
    ) -> Result<Value, RpcError> {
        let scope = peer.scope(params.get("request")).map_err(invalid)?;
        match method.split_once('.') {
            Some(("db", name)) => self.database(name, &params).await,
            Some(("state", name)) => {
                state(&self.services, scope.as_deref(), name, &mut params).await
            }
            _ => self.other(scope, method, params).await,
        }
    }

    async fn database(&self, name: &str, params: &Value) -> Result<Value, RpcError> {
        if !self.is_ready.load(Ordering::Acquire) {
            let message = "the database cannot be used before `initialize` is answered";
            return Err(invalid(message.to_owned()));
        }
        let statement = |of: &Value| Statement::read(&of["sql"], &of["params"]);
        let db = &self.services.db;
        let done = match name {
            "query" => {
                db.run(statement(params).map_err(invalid)?, Wanted::Rows)
                    .await
            }
            "execute" => {
                let statement = statement(params).map_err(invalid)?;
                db.run(statement, Wanted::Changes).await
            }
            "transaction" => {
                let list = params["statements"].as_array();
                let list = list.ok_or_else(|| invalid("`statements` must be a list".to_owned()))?;
                let statements = list.iter().map(statement).collect::<Result<_, _>>();
                db.run_all(statements.map_err(invalid)?).await
            }
            other => return Err(unknown(&format!("db.{other}"))),
        };
        done.map_err(|message| RpcError {
            code: -32_000,
            message,
            data: json!({ "code": "store.failed" }),
        })
    }

    async fn other(
        &self,
        scope: Option<Arc<Scope>>,
        method: &str,
        mut params: Value,
    ) -> Result<Value, RpcError> {
        let services = &self.services;
        let text = |field: &str| params[field].as_str().unwrap_or_default().to_owned();
        match (method, scope.as_deref()) {
            ("http.request", _) => {
                if let Some(fields) = params.as_object_mut() {
                    fields.remove("request");
                }
                services.http(params).await.map_err(|message| RpcError {
                    code: -32_000,
                    message,
                    data: json!({ "code": "http.failed" }),
                })
            }
            ("events.publish", scope) => {
                let (kind, payload) = (text("type"), params["payload"].take());
                let behalf = scope.and_then(Scope::behalf);
                let cause = scope.and_then(Scope::cause);
                let published = services.publish(behalf, cause, &kind, payload).await;
                published.map_err(of_call)
            }
            ("host.call", Some(Scope::Call(ctx, _))) => {
                let (method, params) = (text("method"), params["params"].take());
                let params = match params {
                    Value::Null => json!({}),
                    params => params,
                };
                let called = ctx.call_value(&method, Params::foreign(params)).await;
                called.map_err(of_call)
            }
            ("host.emit", Some(Scope::Call(ctx, info))) => {
                info.emit(ctx, params["data"].take()).await.map_err(of_call)
            }
            ("host.progress", Some(Scope::Call(ctx, _))) => {
                let share = params["percentage"].as_f64().map(|share| share as f32);
                let done = ctx.progress(text("message"), share).await;
                done.map(|()| Value::Null).map_err(of_call)
            }
            ("auth.has_scope", Some(Scope::Call(ctx, _))) => {
                let scope: TokenScope = text("scope")
                    .parse()
                    .map_err(|error| invalid(format!("{error}")))?;
                Ok(json!(ctx.principal.scopes.allow(&scope)))
            }
            ("host.call" | "host.emit" | "host.progress" | "auth.has_scope", _) => Err(invalid(
                format!("`{method}` is for a request `call` that is not answered yet"),
            )),
            (other, _) => Err(unknown(other)),
        }
    }
}

/// `state.…`: of the user and the project that a request is about. A hook may look, and asks for changes
/// with the effect `set_state`.
async fn state(
    services: &Services,
    scope: Option<&Scope>,
    name: &str,
    params: &mut Value,
) -> Result<Value, RpcError> {
    let Some((scope, (user, project))) = scope.and_then(|scope| Some((scope, scope.whose()?)))
    else {
        let message = "there is no user here, and so no state";
        return Err(invalid(message.to_owned()));
    };
    if matches!(scope, Scope::Hook { .. }) && matches!(name, "set" | "delete") {
        let message = "a hook changes nothing by itself: answer with the effect `set_state`";
        return Err(invalid(message.to_owned()));
    }
    let state = services.state.for_user(user, project);
    let key = match name {
        "list" => params["prefix"].take(),
        _ => params["key"].take(),
    };
    let value = params["value"].take();
    answer_state(&state, name, &key, value)
        .await
        .map_err(of_call)
}

fn invalid(message: String) -> RpcError {
    RpcError {
        code: -32_602,
        message,
        data: Value::Null,
    }
}

fn unknown(method: &str) -> RpcError {
    RpcError {
        code: -32_601,
        message: format!("there is no `{method}`"),
        data: Value::Null,
    }
}

/// An error of the server as the process sees it.
fn of_call(error: CallError) -> RpcError {
    RpcError {
        code: match &error.code {
            ErrorCode::Plugin(_) => -32_000,
            code => i64::from(code.rpc()),
        },
        data: json!({ "code": error.code, "hint": error.hint_text() }),
        message: error.message,
    }
}
