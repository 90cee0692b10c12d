//! Methods of a script.

use std::sync::{Arc, Mutex, PoisonError};

use dodona_plugin::{
    Behalf, BoxFuture, CallCtx, CallError, ErrorCode, Handler, Method, Params, State,
};
use dodona_proto::{ItemBody, MethodDescriptor, MethodKind, Scope};
use dodona_schema::Validator;
use dodona_script::Request;
use serde_json::{Value, json};

use super::plugin::Shared;
use super::program::{Answers, Ask, METHOD, RunError};
use crate::database::DbSession;
use crate::services::answer_state;

/// A method that runs what the script declared.
pub(super) fn method(
    shared: &Shared,
    entry: usize,
    descriptor: MethodDescriptor,
) -> Result<Method, String> {
    let validator = Validator::new(&descriptor.result)
        .map_err(|error| format!("`result` is not a JSON Schema: {error}"))?;
    Validator::new(&descriptor.params)
        .map_err(|error| format!("`params` is not a JSON Schema: {error}"))?;
    let work = Arc::new(Work {
        shared: shared.clone(),
        entry,
        descriptor: descriptor.clone(),
        validator,
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

/// One method.
struct Work {
    shared: Shared,
    entry: usize,
    descriptor: MethodDescriptor,
    validator: Validator,
}

impl Work {
    async fn unary(self: Arc<Self>, ctx: CallCtx, params: Value) -> Result<Value, CallError> {
        let result = match Arc::clone(&self).run(ctx, params).await? {
            Value::Null => json!({}),
            result => result,
        };
        self.fits(&result)?;
        Ok(result)
    }

    async fn streaming(self: Arc<Self>, ctx: CallCtx, params: Value) -> Result<(), CallError> {
        match Arc::clone(&self).run(ctx.clone(), params).await? {
            Value::Null => Ok(()),
            last => {
                self.fits(&last)?;
                ctx.emit(self.item(last)).await
            }
        }
    }

    async fn run(self: Arc<Self>, ctx: CallCtx, params: Value) -> Result<Value, CallError> {
        let name = self.descriptor.name.to_string();
        let ask = Ask {
            entry: self.entry,
            kind: "method",
            part: self.descriptor.name.verb().to_owned(),
            arguments: vec![self.info(&ctx), params],
            limits: METHOD,
        };
        let answers = OfCall {
            state: self.shared.services.state.of(&ctx),
            db: DbSession::new(self.shared.services.db.clone()),
            work: Arc::clone(&self),
            ctx,
            raised: Mutex::new(None),
        };
        let program = &self.shared.program;
        let result = program.run(ask, &answers).await;
        result.map_err(|error| match answers.cause(&error) {
            Some(cause) => cause,
            None => error.to_call_error(&name, &program.facts.plugin),
        })
    }

    /// What the script learns about the call.
    fn info(&self, ctx: &CallCtx) -> Value {
        json!({
            "call_id": ctx.call_id,
            "method": self.descriptor.name,
            "path": ctx.path,
            "user": ctx.principal.user,
            "surface": ctx.principal.surface,
            "project": ctx.project.as_ref().map(|project| project.id.clone()),
            "settings": self.shared.services.settings.of(&ctx.principal.user),
            "time": jiff::Timestamp::now().as_second(),
        })
    }

    /// What a script returns is checked like anything from outside.
    fn fits(&self, value: &Value) -> Result<(), CallError> {
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
        let code = format!("{}.failed", self.shared.program.facts.plugin);
        Err(CallError::new(ErrorCode::Plugin(code.into()), message))
    }

    fn item(&self, data: Value) -> ItemBody {
        let title = self.descriptor.result["title"].as_str();
        ItemBody::Data {
            content_type: title.unwrap_or("Result").to_owned().into(),
            data,
        }
    }
}

/// Answers what a script wants within a call.
struct OfCall {
    ctx: CallCtx,
    work: Arc<Work>,
    state: State,
    db: DbSession,
    /// The last error of a call that it made, and the words in which it was told.
    raised: Mutex<Option<(String, CallError)>>,
}

impl Answers for OfCall {
    fn answer(&self, request: Request) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let Request { name, arguments } = request;
            let mut arguments = arguments.into_iter();
            let mut next = || arguments.next().unwrap_or_default();
            let (first, second) = (next(), next());
            if let Some(name) = name.strip_prefix("db.") {
                return self.db.answer(name, &first, &second).await;
            }
            if self.db.is_open().await {
                return Err(in_transaction(&name));
            }
            let services = &self.work.shared.services;
            match name.as_str() {
                "call" => self.call(first, second).await,
                "emit" => self.emit(first).await,
                "progress" => {
                    let message = first.as_str().unwrap_or_default().to_owned();
                    let share = second.as_f64().map(|share| share as f32);
                    let told = self.ctx.progress(message, share).await;
                    told.map(|()| Value::Null).map_err(|error| self.told(error))
                }
                "has_scope" => {
                    let scope = first.as_str().unwrap_or_default();
                    let scope: Scope = scope.parse().map_err(|error| format!("{error}"))?;
                    Ok(json!(self.ctx.principal.scopes.allow(&scope)))
                }
                "publish" => {
                    let behalf = Some(Behalf::of(&self.ctx));
                    let kind = first.as_str().unwrap_or_default();
                    let published = services.publish(behalf, None, kind, second).await;
                    published.map_err(|error| self.told(error))
                }
                "http" => services.http(first).await,
                name => {
                    let name = name.strip_prefix("state.").unwrap_or(name);
                    let answer = answer_state(&self.state, name, &first, second).await;
                    answer.map_err(|error| self.told(error))
                }
            }
        })
    }
}

/// Why something cannot be used now: others of the plugin wait for its database meanwhile.
pub(super) fn in_transaction(name: &str) -> String {
    format!("`{name}` cannot be used while a transaction is open")
}

impl OfCall {
    async fn call(&self, method: Value, params: Value) -> Result<Value, String> {
        let method = method.as_str().unwrap_or_default().to_owned();
        let result = self.ctx.call_value(&method, Params::foreign(params)).await;
        result.map_err(|error| self.told(error))
    }

    async fn emit(&self, data: Value) -> Result<Value, String> {
        if self.work.descriptor.kind == MethodKind::Unary {
            let name = &self.work.descriptor.name;
            return Err(format!(
                "ctx.emit is for methods with `streaming = true`, and `{name}` is none"
            ));
        }
        self.work.fits(&data).map_err(|error| error.message)?;
        let emitted = self.ctx.emit(self.work.item(data)).await;
        emitted
            .map(|()| Value::Null)
            .map_err(|error| self.told(error))
    }

    /// An error in words, kept in case that the script lets it through.
    fn told(&self, error: CallError) -> String {
        let words = match error.hint_text() {
            Some(hint) => format!("{} ({}; {hint})", error.message, error.code),
            None => format!("{} ({})", error.message, error.code),
        };
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        *raised = Some((words.clone(), error));
        words
    }

    /// The error of a call that the script made and did not catch: its callers should see that one,
    /// with its code.
    fn cause(&self, error: &RunError) -> Option<CallError> {
        let RunError::Script { place, error } = error else {
            return None;
        };
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, mut cause) = raised.take_if(|(words, _)| error.message.ends_with(&**words))?;
        cause.message = format!("{place}: {}", cause.message);
        Some(cause)
    }
}
