//! Methods of a process.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::{CallCtx, CallError, ErrorCode, Handler, Method};
use dodona_proto::{ItemBody, MethodDescriptor, MethodKind};
use dodona_schema::Validator;
use serde_json::{Value, json};

use super::peer::Failure;
use super::runner::Runner;
use super::scope::Scope;
use crate::services::Services;

/// What is known about a method while it runs.
pub(super) struct MethodInfo {
    descriptor: MethodDescriptor,
    validator: Validator,
}

impl MethodInfo {
    /// Sends an item of a streaming method.
    pub(super) async fn emit(&self, ctx: &CallCtx, data: Value) -> Result<Value, CallError> {
        let name = &self.descriptor.name;
        if self.descriptor.kind == MethodKind::Unary {
            let message =
                format!("`host.emit` is for methods with `streaming = true`, not `{name}`");
            return Err(CallError::new(ErrorCode::InvalidRequest, message));
        }
        self.check(&data)?;
        ctx.emit(self.item(data)).await?;
        Ok(Value::Null)
    }

    /// What a process returns is checked like anything from outside.
    fn check(&self, value: &Value) -> Result<(), CallError> {
        let Err(error) = self.validator.validate(value) else {
            return Ok(());
        };
        let (name, place) = (&self.descriptor.name, &error.path);
        let at = match place.is_empty() {
            true => String::new(),
            false => format!(" at `{place}`"),
        };
        let why: String = error.to_string().chars().take(300).collect();
        let message = format!("the result of `{name}` does not fit its schema{at}: {why}");
        Err(failed(name.plugin(), message))
    }

    fn item(&self, data: Value) -> ItemBody {
        let title = self.descriptor.result["title"].as_str();
        ItemBody::Data {
            content_type: title.unwrap_or("Result").to_owned().into(),
            data,
        }
    }
}

/// A method that the process answers.
pub(super) fn method(
    runner: &Arc<Runner>,
    services: &Services,
    mut descriptor: MethodDescriptor,
    timeout: Duration,
) -> Result<Method, String> {
    descriptor.timeout = descriptor.timeout.or(Some(timeout));
    let validator = Validator::new(&descriptor.result)
        .map_err(|error| format!("`result` is not a JSON Schema: {error}"))?;
    let work = Arc::new(Work {
        runner: Arc::clone(runner),
        services: services.clone(),
        info: Arc::new(MethodInfo {
            descriptor: descriptor.clone(),
            validator,
        }),
    });
    let handler = match descriptor.kind {
        MethodKind::Unary => Handler::Unary(Arc::new(move |ctx, params| {
            let work = Arc::clone(&work);
            Box::pin(async move { work.unary(ctx, params).await })
        })),
        MethodKind::Streaming => Handler::Streaming(Arc::new(move |ctx, params| {
            let work = Arc::clone(&work);
            Box::pin(async move { work.streaming(ctx, params).await })
        })),
    };
    Ok(Method::from_parts(descriptor, handler))
}

struct Work {
    runner: Arc<Runner>,
    services: Services,
    info: Arc<MethodInfo>,
}

impl Work {
    async fn unary(&self, ctx: CallCtx, params: Value) -> Result<Value, CallError> {
        let result = match self.run(ctx, params).await? {
            Value::Null => json!({}),
            result => result,
        };
        self.info.check(&result)?;
        Ok(result)
    }

    async fn streaming(&self, ctx: CallCtx, params: Value) -> Result<(), CallError> {
        match self.run(ctx.clone(), params).await? {
            Value::Null => Ok(()),
            last => {
                self.info.check(&last)?;
                ctx.emit(self.info.item(last)).await
            }
        }
    }

    async fn run(&self, ctx: CallCtx, params: Value) -> Result<Value, CallError> {
        let name = &self.info.descriptor.name;
        let peer = self.runner.peer().await;
        let peer = peer.map_err(|why| not_running(name.plugin(), &why))?;
        let request = json!({
            "method": name.verb(),
            "params": params,
            "context": self.context(&ctx),
        });
        let scope = Scope::Call(ctx, Arc::clone(&self.info));
        let answer = peer.request("call", request, scope).await;
        answer.map_err(|failure| match failure {
            Failure::Ended(why) => not_running(name.plugin(), &why),
            Failure::Recursion => failed(name.plugin(), failure.to_string()),
            Failure::Error(error) => {
                let own = error.data["code"]
                    .as_str()
                    .filter(|code| is_own(name.plugin(), code));
                match own {
                    Some(code) => {
                        CallError::new(ErrorCode::Plugin(code.to_owned().into()), error.message)
                    }
                    None => failed(name.plugin(), format!("`{name}` failed: {}", error.message)),
                }
            }
        })
    }

    /// What the process learns about the call.
    fn context(&self, ctx: &CallCtx) -> Value {
        json!({
            "call_id": ctx.call_id,
            "path": ctx.path,
            "user": ctx.principal.user,
            "scopes": ctx.principal.scopes,
            "surface": ctx.principal.surface,
            "project": ctx.project.as_ref().map(|project| project.id.clone()),
            "settings": self.services.settings.of(&ctx.principal.user),
            "time": jiff::Timestamp::now().as_second(),
        })
    }
}

/// Whether a code is one that a plugin may use: its name, a dot and a word.
fn is_own(plugin: &str, code: &str) -> bool {
    let word = code
        .strip_prefix(plugin)
        .and_then(|rest| rest.strip_prefix('.'));
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    word.is_some_and(|word| !word.is_empty() && word.len() <= 60 && word.chars().all(fits))
}

fn failed(plugin: &str, message: String) -> CallError {
    let code = format!("{plugin}.failed");
    CallError::new(ErrorCode::Plugin(code.into()), message)
        .hint(format!("run `dodona plugins logs {plugin}`"))
}

fn not_running(plugin: &str, why: &str) -> CallError {
    let code = format!("{plugin}.not_running");
    let message = format!("the process of `{plugin}` does not run: {why}");
    CallError::new(ErrorCode::Plugin(code.into()), message)
        .retry(true)
        .hint(format!("run `dodona plugins logs {plugin}`"))
}
