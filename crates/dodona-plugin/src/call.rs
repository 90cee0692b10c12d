//! What comes with each call.

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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The items of a nested call. Dropping it cancels that call.
pub type ItemStream = Pin<Box<dyn Stream<Item = HubStreamItem> + Send>>;

/// Work under a name of its own, see [`CallCtx::scope`].
pub type ScopeWork<'a> =
    Box<dyn FnOnce(CallCtx) -> BoxFuture<'a, Result<Value, CallError>> + Send + 'a>;

/// Facts about a call. Set by the hub; the same on every node of a call tree but for id, path,
/// method, deadline, snapshot and token.
#[derive(Debug)]
pub struct CallInfo {
    /// The id of the call in its tree.
    pub call_id: CallId,
    /// The names that led to it.
    pub path: PluginPath,
    /// What was called; absent for a named inner part.
    pub method: Option<MethodName>,
    /// The user and the surface that the call comes from.
    pub principal: Arc<Principal>,
    /// About which project.
    pub project: Option<Arc<Project>>,
    /// When it must be over. Time in which a person is asked does not count, and moves it.
    pub deadline: Option<Instant>,
    /// How the query stands that this call is a part of, where an agent made it or one above it.
    pub snapshot: Option<Arc<QuerySnapshot>>,
    /// Cancelled when the call should end. Long computations look at it; awaiting code need not,
    /// it is dropped.
    pub cancel: CancellationToken,
}

impl CallInfo {
    /// The project that the call is about.
    ///
    /// # Errors
    ///
    /// If the call names none. The hint says how the caller's surface names one.
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

/// Where parameters come from, and so whether they are checked against the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Typed code in this process: serde decodes them, which is check enough.
    Code,
    /// A wire, a model, a script: checked, and refused with what does not fit.
    Foreign,
}

/// Parameters of a call, and where they come from.
#[derive(Debug, Clone)]
pub struct Params {
    /// The parameters.
    pub value: Value,
    /// Where they come from.
    pub origin: Origin,
}

impl Params {
    /// From typed code in this process.
    pub fn code(value: Value) -> Self {
        Self {
            value,
            origin: Origin::Code,
        }
    }

    /// From a wire, a model or a script.
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
    /// The parameters.
    pub params: Params,
    /// How long it may take, if shorter than the method's own bound. The hub keeps the time, so
    /// that it can pause while an approval is pending.
    pub timeout: Option<Duration>,
    /// How the query stands.
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

/// What came of a tool call.
#[derive(Debug)]
pub struct ToolReply {
    /// The result.
    pub outcome: Result<Value, CallError>,
    /// Whether the method ran. A call that its gates denied or answered did not.
    pub has_run: bool,
    /// How long the method ran, without the time of its gates and of pending approvals.
    pub duration: Duration,
    /// What hooks want the agent to be told of it, and who wants that.
    pub notifications: Vec<(PluginName, Notification)>,
    /// Whether the hub has reported the end of the call to `POST_TOOL_EXECUTE` and to the bus. It
    /// has not if the call was refused before it began, for example for invalid parameters.
    pub is_reported: bool,
}

/// The hub, as one call sees it. One object per call: facts and the way to others together.
pub trait Caller: Send + Sync {
    /// The facts.
    fn info(&self) -> &CallInfo;

    /// Calls another method and waits for its result: the value of a unary method, the last
    /// data of a streaming one.
    fn call(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<Value, CallError>>;

    /// Calls a method as an agent uses a tool.
    fn call_tool(self: Arc<Self>, method: &str, request: ToolRequest) -> BoxFuture<'_, ToolReply>;

    /// Calls another method and hands out its items as they come.
    fn open(
        self: Arc<Self>,
        method: &str,
        params: Params,
    ) -> BoxFuture<'_, Result<ItemStream, CallError>>;

    /// Runs work as a child call of its own name.
    fn scope<'a>(
        self: Arc<Self>,
        name: &'a str,
        work: ScopeWork<'a>,
    ) -> BoxFuture<'a, Result<Value, CallError>>;

    /// What the caller may call, by name.
    fn methods(&self) -> Vec<Arc<MethodDescriptor>>;

    /// Emits an item of this call.
    fn emit(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>>;

    /// Emits an item that is shown together with what follows it, if that comes soon.
    fn emit_with_next(&self, body: ItemBody) -> BoxFuture<'_, Result<(), CallError>>;
}

/// What a method gets beside its parameters. Cheap to clone.
#[derive(Clone)]
pub struct CallCtx(Arc<dyn Caller>);

impl CallCtx {
    /// Wraps what the hub made for one call.
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

    /// Calls another method and hands out its items, and those of everything below it, as they
    /// come. Dropping the stream cancels the call.
    pub async fn open(&self, method: &str, params: Params) -> Result<ItemStream, CallError> {
        Arc::clone(&self.0).open(method, params).await
    }

    /// What may be called, by name. Descriptors are shared and not copied.
    pub fn methods(&self) -> Vec<Arc<MethodDescriptor>> {
        self.0.methods()
    }

    /// Runs work as a child of this call under a name, so that its items have a path of their
    /// own (`agent.librarian`) and it can be cancelled alone.
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

    /// Tells whoever watches what is being done.
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

    /// Emits an item. Terminals are the hub's: a [`ItemBody::Done`] is refused.
    pub async fn emit(&self, body: ItemBody) -> Result<(), CallError> {
        self.0.emit(body).await
    }

    /// Emits an item that is shown together with what follows it, or a few milliseconds later where
    /// nothing does. For what is told in one go, such as the last items of a call: each that is
    /// shown by itself costs a commit.
    pub async fn emit_with_next(&self, body: ItemBody) -> Result<(), CallError> {
        self.0.emit_with_next(body).await
    }

    /// Whether the call should end. For loops that do not await.
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
