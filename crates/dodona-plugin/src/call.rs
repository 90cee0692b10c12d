//! The context of a call.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{
    CallError, CallId, ErrorCode, HubStreamItem, ItemBody, MethodDescriptor, MethodName,
    Notification, PluginName, PluginPath, Principal, Project, QuerySnapshot, Surface,
};
use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ToolRenderer;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The items of a nested call. Dropping the stream cancels the call.
pub type ItemStream = Pin<Box<dyn Stream<Item = HubStreamItem> + Send>>;

/// Work of a named part of a call, see [`CallCtx::scope`].
pub type ScopeWork<'a> =
    Box<dyn FnOnce(CallCtx) -> BoxFuture<'a, Result<Value, CallError>> + Send + 'a>;

/// Information about a call, set by the hub. A nested call inherits user and project.
#[derive(Debug)]
pub struct CallInfo {
    /// The id of the call.
    pub call_id: CallId,
    /// Plugin names from the root call to this one.
    pub path: PluginPath,
    /// The method; absent for a named part of a call.
    pub method: Option<MethodName>,
    /// The user, its scopes and its surface.
    pub principal: Arc<Principal>,
    /// The project, if the call has one.
    pub project: Option<Arc<Project>>,
    /// The deadline. It is extended by the time in which an approval is pending.
    pub deadline: Option<Instant>,
    /// The state of the query, if an agent made this call or one of its ancestors.
    pub snapshot: Option<Arc<QuerySnapshot>>,
    /// Cancelled when the call should end. Check it in long computations. Async code need not: its future is dropped.
    pub cancel: CancellationToken,
}

impl CallInfo {
    /// The project of the call.
    ///
    /// # Errors
    ///
    /// If the call has no project. The hint explains how to pass one on the caller's surface.
    pub fn require_project(&self) -> Result<&Arc<Project>, CallError> {
        self.project.as_ref().ok_or_else(|| {
            let hint = match self.principal.surface {
                Surface::Cli => {
                    "run the command in a project, or name one with `--project DIR`; `dodona index` registers one"
                }
                Surface::Rpc | Surface::Web => {
                    "name a project in the header `X-Dodona-Project`; `hub.projects` lists them"
                }
                Surface::Mcp => {
                    "name a project in the server's address (`/mcp?project=ID`), or start `dodona mcp` in one"
                }
                Surface::Internal => "name a project in the request",
            };
            CallError::new(ErrorCode::InvalidRequest, "the call names no project").hint(hint)
        })
    }
}

/// Where parameters come from. Decides whether they are validated against the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Typed code in this process. Not validated; serde decodes them.
    Code,
    /// A wire, a model or a script. Validated.
    Foreign,
}

/// Parameters of a call with their origin.
#[derive(Debug, Clone)]
pub struct Params {
    /// Parameters as a JSON object.
    pub value: Value,
    /// Decides whether they are validated.
    pub origin: Origin,
}

impl Params {
    /// Parameters from typed code in this process.
    pub fn code(value: Value) -> Self {
        Self {
            value,
            origin: Origin::Code,
        }
    }

    /// Parameters from a wire, a model or a script.
    pub fn foreign(value: Value) -> Self {
        Self {
            value,
            origin: Origin::Foreign,
        }
    }
}

/// A tool call as an agent makes it.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// Parameters as a JSON object.
    pub params: Params,
    /// Shortens the timeout of the method. The hub measures it, because it is paused while an approval is pending.
    pub timeout: Option<Duration>,
    /// The state of the query.
    pub snapshot: Option<Arc<QuerySnapshot>>,
    /// Runs after the gates have passed and before the method starts.
    pub on_start: Option<ToolStart>,
}

/// A callback that runs after the gates of a tool call have passed and before its method starts.
/// It gets the id of the call. If it fails, the method does not run and the call fails with its
/// error.
#[derive(Clone)]
pub struct ToolStart(Arc<dyn Fn(CallId) -> StartFuture + Send + Sync>);

type StartFuture = BoxFuture<'static, Result<(), CallError>>;

impl ToolStart {
    /// Creates one from a function that returns a future.
    pub fn new(callback: impl Fn(CallId) -> StartFuture + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Runs the callback. For the hub.
    pub async fn run(&self, call: CallId) -> Result<(), CallError> {
        (self.0)(call).await
    }
}

impl fmt::Debug for ToolStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolStart")
    }
}

/// The result of a tool call.
#[derive(Debug)]
pub struct ToolReply {
    /// The result, or the error of the call.
    pub outcome: Result<Value, CallError>,
    /// Whether the method ran. A call that its gates denied or answered did not.
    pub has_run: bool,
    /// How long the method ran, without the time of its gates and of pending approvals.
    pub duration: Duration,
    /// Notifications of hooks for the agent, with the plugin that sent them.
    pub notifications: Vec<(PluginName, Notification)>,
    /// Whether the hub has reported the end of the call to `POST_TOOL_EXECUTE` and to the bus. False if the call was
    /// rejected before it started, for example because of invalid parameters.
    pub is_reported: bool,
    /// Makes the text of the result for a model. `None` if the method has no renderer.
    pub renderer: Option<ToolRenderer>,
}

/// The hub as seen by one call: information about the call, and nested calls.
pub trait Caller: Send + Sync {
    /// Information about the call.
    fn info(&self) -> &CallInfo;

    /// Calls another method and returns its result: the value of a unary method, the last data item of a streaming
    /// one.
    fn call(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<Value, CallError>>;

    /// Calls a method as an agent uses a tool.
    fn call_tool(self: Arc<Self>, method: &str, request: ToolRequest) -> BoxFuture<'_, ToolReply>;

    /// Calls another method and returns a stream of its items.
    fn open(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<ItemStream, CallError>>;

    /// Runs work as a named child call.
    fn scope<'a>(
        self: Arc<Self>,
        name: &'a str,
        work: ScopeWork<'a>,
    ) -> BoxFuture<'a, Result<Value, CallError>>;

    /// The methods that the caller may call, sorted by name.
    fn methods(&self) -> Vec<Arc<MethodDescriptor>>;

    /// Emits an item of this call.
    fn emit(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>>;

    /// Emits an item that is delivered together with the next one, if that follows soon.
    fn emit_with_next(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>>;
}

/// The context that a method gets in addition to its parameters. Cheap to clone.
#[derive(Clone)]
pub struct CallCtx(Arc<dyn Caller>);

impl CallCtx {
    /// Creates the context of a call. Used by the hub.
    pub fn new(caller: Arc<dyn Caller>) -> Self {
        Self(caller)
    }

    /// Calls another method with typed parameters and a typed result.
    #[doc(alias = "call_plugin")]
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, CallError> {
        let value =
            serde_json::to_value(params).map_err(|error| encoding("parameters", method, &error))?;
        let result = self.call_value(method, Params::code(value)).await?;
        serde_json::from_value(result).map_err(|error| encoding("result", method, &error))
    }

    /// Calls another method with JSON parameters.
    pub async fn call_value(&self, method: &str, params: Params) -> Result<Value, CallError> {
        Arc::clone(&self.0).call(method, params).await
    }

    /// Calls a method as an agent uses a tool.
    pub async fn call_tool(&self, method: &str, request: ToolRequest) -> ToolReply {
        Arc::clone(&self.0).call_tool(method, request).await
    }

    /// Calls another method and returns a stream of its items and those of its nested calls. Dropping the stream
    /// cancels the call.
    pub async fn open(&self, method: &str, params: Params) -> Result<ItemStream, CallError> {
        Arc::clone(&self.0).open(method, params).await
    }

    /// The methods that this call may call, sorted by name.
    pub fn methods(&self) -> Vec<Arc<MethodDescriptor>> {
        self.0.methods()
    }

    /// Runs work as a named child of this call. Its items have their own path (`agent.librarian`), and it can be
    /// cancelled separately.
    pub async fn scope<'a, F>(
        &self,
        name: &'a str,
        work: impl FnOnce(CallCtx) -> F + Send + 'a,
    ) -> Result<Value, CallError>
    where
        F: Future<Output = Result<Value, CallError>> + Send + 'a,
    {
        let work: ScopeWork<'a> = Box::new(move |ctx| Box::pin(work(ctx)));
        Arc::clone(&self.0).scope(name, work).await
    }

    /// Emits a progress message.
    pub async fn progress(
        &self,
        message: impl Into<String>,
        percentage: Option<f32>,
    ) -> Result<(), CallError> {
        let percentage = percentage
            .filter(|p| p.is_finite())
            .map(|p| p.clamp(0.0, 100.0));
        self.0
            .emit(ItemBody::Progress {
                message: message.into(),
                percentage,
            })
            .await
    }

    /// Emits an item. [`ItemBody::Done`] is rejected: the hub writes it.
    pub async fn emit(&self, body: ItemBody) -> Result<(), CallError> {
        self.0.emit(body).await
    }

    /// Emits an item that is delivered together with the next one, or after a few milliseconds. Use it for items
    /// that belong together, such as the last items of a call, because each separate delivery costs a commit.
    pub async fn emit_with_next(&self, body: ItemBody) -> Result<(), CallError> {
        self.0.emit_with_next(body).await
    }

    /// Whether the call should end. For loops without await points.
    pub fn is_cancelled(&self) -> bool {
        self.0.info().cancel.is_cancelled()
    }
}

impl std::ops::Deref for CallCtx {
    type Target = CallInfo;

    fn deref(&self) -> &CallInfo {
        self.0.info()
    }
}

impl fmt::Debug for CallCtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.info(), f)
    }
}

fn encoding(what: &str, method: &str, error: &serde_json::Error) -> CallError {
    CallError::new(
        ErrorCode::Internal,
        format!("the {what} of `{method}` do not fit their type"),
    )
    .log(error)
}
