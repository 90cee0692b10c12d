//! A method: what it is called with, and the closure that runs it.

use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{
    Approval, CallError, ErrorCode, MethodDescriptor, MethodKind, MethodName, Mutation, NameError,
    ScopeError, ToolCategory, ToolMark,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{CallCtx, CallInfo, Emitter, schema};

/// Why a method does not keep the contract. Found at activation.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// Its name is not one.
    #[error("`{method}` is not a method name: {source}")]
    Name {
        /// The name as given.
        method: String,
        /// What is wrong with it.
        source: NameError,
    },
    /// Its scope is not one.
    #[error("`{method}` asks for a scope that is none: {source}")]
    Scope {
        /// Which method.
        method: String,
        /// What is wrong with it.
        source: ScopeError,
    },
    /// A schema's root is not an object.
    #[error("the {part} of `{method}` must be an object: use a struct with named fields")]
    NotAnObject {
        /// Which method.
        method: String,
        /// `parameters`, `result` or `items`.
        part: &'static str,
    },
}

/// What the author says about a method beside its types. The macro fills it in.
#[derive(Debug, Clone, Default)]
pub struct MethodSpec {
    /// `plugin.verb`.
    pub name: &'static str,
    /// The doc comment.
    pub description: &'static str,
    /// What the caller must have been granted.
    pub scope: Option<&'static str>,
    /// Whether it changes anything.
    pub mutates: bool,
    /// How long it may take, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Present when agents may use it.
    pub tool: Option<ToolSpec>,
}

/// What the author says about a tool.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Where it belongs.
    pub category: ToolCategory,
    /// Which agents are offered it.
    pub agents: &'static [&'static str],
    /// Whether a person must agree.
    pub approval: Approval,
}

/// Parameters of a method that has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

type UnaryFn = dyn Fn(CallCtx, Value) -> BoxFuture<'static, Result<Value, CallError>> + Send + Sync;
type StreamingFn =
    dyn Fn(CallCtx, Value) -> BoxFuture<'static, Result<(), CallError>> + Send + Sync;

/// The closure that runs a method.
#[derive(Clone)]
pub enum Handler {
    /// Answers with one value.
    Unary(Arc<UnaryFn>),
    /// Emits its items through the context.
    Streaming(Arc<StreamingFn>),
}

/// A method: descriptor and closure. All policy is the hub's.
#[derive(Clone)]
pub struct Method {
    descriptor: Arc<MethodDescriptor>,
    handler: Handler,
    check: Option<Arc<CheckFn>>,
}

type CheckFn = dyn Fn(&CallInfo, &Value) -> Result<(), CallError> + Send + Sync;

impl Method {
    /// A method that answers with one result.
    pub fn unary<P, R, E, F, Fut>(spec: &MethodSpec, run: F) -> Result<Self, ContractError>
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema,
        E: Into<CallError>,
        F: Fn(CallCtx, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let descriptor = describe::<P, R>(spec, MethodKind::Unary)?;
        let handler = Handler::Unary(Arc::new(move |ctx, params| {
            // Decoded before the future exists, so that a future holds the typed value only.
            let run = decode(params).map(|p| run(ctx, p));
            Box::pin(async move { encode(run?.await.map_err(Into::into)?) })
        }));
        Ok(Self {
            descriptor: Arc::new(descriptor),
            handler,
            check: None,
        })
    }

    /// A method that emits items of type `T`.
    pub fn streaming<P, T, E, F, Fut>(spec: &MethodSpec, run: F) -> Result<Self, ContractError>
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + 'static,
        E: Into<CallError>,
        F: Fn(CallCtx, P, Emitter<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        let descriptor = describe::<P, T>(spec, MethodKind::Streaming)?;
        let handler = Handler::Streaming(Arc::new(move |ctx, params| {
            let run = decode(params).map(|p| run(ctx.clone(), p, Emitter::new(ctx)));
            Box::pin(async move { run?.await.map_err(Into::into) })
        }));
        Ok(Self {
            descriptor: Arc::new(descriptor),
            handler,
            check: None,
        })
    }

    /// A method from a descriptor that was made elsewhere: by a script, by an MCP server.
    pub fn from_parts(descriptor: MethodDescriptor, handler: Handler) -> Self {
        Self {
            descriptor: Arc::new(descriptor),
            handler,
            check: None,
        }
    }

    /// What surfaces need to know.
    pub fn descriptor(&self) -> &Arc<MethodDescriptor> {
        &self.descriptor
    }

    /// What the hub runs.
    pub fn handler(&self) -> &Handler {
        &self.handler
    }

    /// Adds a check of the parameters beyond their schema. It runs before the call waits
    /// for an approval, so it must be quick, change nothing and reject only calls that would fail even
    /// if they were approved.
    #[must_use]
    pub fn checked(
        mut self,
        check: impl Fn(&CallInfo, &Value) -> Result<(), CallError> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Runs that check.
    ///
    /// # Errors
    ///
    /// If the call cannot succeed with these parameters.
    pub fn check(&self, info: &CallInfo, params: &Value) -> Result<(), CallError> {
        match &self.check {
            Some(check) => check(info, params),
            None => Ok(()),
        }
    }
}

fn decode<P: DeserializeOwned>(params: Value) -> Result<P, CallError> {
    serde_json::from_value(params).map_err(|error| {
        CallError::new(
            ErrorCode::InvalidParams,
            format!("invalid parameters: {error}"),
        )
    })
}

fn encode<R: Serialize>(result: R) -> Result<Value, CallError> {
    serde_json::to_value(result).map_err(|error| {
        CallError::new(
            ErrorCode::Internal,
            "the result could not be written as JSON",
        )
        .log(error)
    })
}

fn describe<P: JsonSchema, R: JsonSchema>(
    spec: &MethodSpec,
    kind: MethodKind,
) -> Result<MethodDescriptor, ContractError> {
    describe_as(spec, kind, schema::of::<P>(), schema::of::<R>())
}

/// Not generic: it would be compiled again for every method.
fn describe_as(
    spec: &MethodSpec,
    kind: MethodKind,
    mut params: Value,
    result: Value,
) -> Result<MethodDescriptor, ContractError> {
    let method = || spec.name.to_owned();
    let name = MethodName::new(spec.name).map_err(|source| ContractError::Name {
        method: method(),
        source,
    })?;
    let scope = spec.scope.map(str::parse).transpose();
    let scope = scope.map_err(|source| ContractError::Scope {
        method: method(),
        source,
    })?;
    let result_part = match kind {
        MethodKind::Unary => "result",
        MethodKind::Streaming => "items",
    };
    for (schema, part) in [(&params, "parameters"), (&result, result_part)] {
        if !schema::is_object(schema) {
            return Err(ContractError::NotAnObject {
                method: method(),
                part,
            });
        }
    }
    schema::close(&mut params);
    let schema_hash = schema::hash(&json!({ "params": params, "result": result }));
    Ok(MethodDescriptor {
        name,
        description: spec.description.to_owned(),
        kind,
        mutation: if spec.mutates {
            Mutation::Mutates
        } else {
            Mutation::Reads
        },
        scope,
        tool: spec.tool.as_ref().map(ToolSpec::mark),
        timeout: spec.timeout_ms.map(Duration::from_millis),
        params,
        result,
        schema_hash,
    })
}

impl ToolSpec {
    fn mark(&self) -> ToolMark {
        ToolMark {
            category: self.category,
            agents: self.agents.iter().map(|&agent| agent.to_owned()).collect(),
            approval: self.approval,
        }
    }
}
