//! A hub in a temporary folder, plugins made of closures, and what must hold of any stream.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{HubConfig, LimitsConfig, PluginHub, Request, echo};
use dodona_plugin::activation::Activating;
use dodona_plugin::{
    ActivationError, CallCtx, CallError, Contribution, Emitter, Method, MethodSpec, Plugin,
    PluginContext,
};
use dodona_proto::{
    CallId, DoneStatus, ErrorCode, HubStreamItem, ItemBody, Principal, Scope, Scopes, Surface,
    UserId,
};
use serde_json::{Map, Value};
use tempfile::TempDir;

/// Longer than anything here takes on the slowest machine; only a fault gets there.
const FAR: Duration = Duration::from_secs(120);

/// Waits for something that must happen, so that a fault fails the test instead of hanging it.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(FAR, work)
        .await
        .expect("this should have happened long ago")
}

/// Asks again and again until it is so.
pub(crate) async fn until(mut so: impl FnMut() -> bool) {
    soon(async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

pub(crate) fn user(name: &str, scopes: &[&str]) -> Arc<Principal> {
    let scopes = scopes.iter().map(|scope| scope.parse::<Scope>().unwrap());
    Arc::new(Principal {
        user: UserId::new(name).unwrap(),
        scopes: Scopes::new(scopes),
        surface: Surface::Internal,
    })
}

/// Somebody who may use everything, and see only what is theirs.
pub(crate) fn alice() -> Arc<Principal> {
    user(
        "alice",
        &[
            "echo:*",
            "probe:*",
            "hub:read",
            "hub:approve",
            "hub:cancel",
            "hub:projects",
        ],
    )
}

/// Somebody else of the same kind.
pub(crate) fn bob() -> Arc<Principal> {
    let scopes = alice().scopes.clone();
    Arc::new(Principal {
        user: UserId::new("bob").unwrap(),
        scopes,
        surface: Surface::Internal,
    })
}

/// Somebody who sees everything.
pub(crate) fn root() -> Arc<Principal> {
    user("root", &["*"])
}

/// A hub that goes away with its folder.
pub(crate) struct Rig {
    pub(crate) hub: PluginHub,
    folder: TempDir,
}

impl Rig {
    /// With `echo` alone.
    pub(crate) async fn new() -> Self {
        Self::with(HubConfig::default(), Vec::new()).await
    }

    /// With `echo` and these.
    pub(crate) async fn with(config: HubConfig, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), config, plugins).await
    }

    pub(crate) async fn in_folder(
        folder: TempDir,
        mut config: HubConfig,
        mut plugins: Vec<Arc<dyn Plugin>>,
    ) -> Self {
        plugins.push(Arc::new(echo::EchoPlugin::default()));
        // Users of these tests have few rights, and register temporary directories.
        config.project_roots = vec![std::env::temp_dir()];
        let hub = PluginHub::start(folder.path(), config, plugins)
            .await
            .unwrap();
        Self { hub, folder }
    }

    /// With `echo` and a plugin `probe` that has these methods.
    pub(crate) async fn probe(methods: Vec<Method>) -> Self {
        Self::probe_with(HubConfig::default(), methods).await
    }

    pub(crate) async fn probe_with(config: HubConfig, methods: Vec<Method>) -> Self {
        Self::with(config, vec![probe(methods)]).await
    }

    /// Stops the hub and gives back its folder.
    pub(crate) async fn stop(self) -> TempDir {
        soon(self.hub.stop(Duration::from_secs(5))).await;
        self.folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        soon(self.hub.call(Request::new(alice(), method, params))).await
    }

    pub(crate) async fn open(&self, method: &str, params: Value) -> dodona_hub::CallStream {
        soon(self.hub.open(Request::new(alice(), method, params)))
            .await
            .unwrap()
    }

    /// Every item of a call, to its end.
    pub(crate) async fn items(&self, method: &str, params: Value) -> Vec<HubStreamItem> {
        let stream = self.open(method, params).await;
        soon(stream.collect()).await.unwrap()
    }
}

pub(crate) fn limits(change: impl FnOnce(&mut LimitsConfig)) -> HubConfig {
    let mut config = HubConfig::default();
    change(&mut config.limits);
    config
}

type Make = dyn Fn(PluginContext) -> Result<Contribution, ActivationError> + Send + Sync;

/// A plugin made of a closure.
struct Made {
    name: &'static str,
    make: Box<Make>,
}

impl Plugin for Made {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> &'static str {
        "0.0.1"
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { (self.make)(ctx) })
    }
}

pub(crate) fn plugin(
    name: &'static str,
    make: impl Fn(PluginContext) -> Result<Contribution, ActivationError> + Send + Sync + 'static,
) -> Arc<dyn Plugin> {
    let make = Box::new(make);
    Arc::new(Made { name, make })
}

/// A plugin `probe` with these methods.
pub(crate) fn probe(methods: Vec<Method>) -> Arc<dyn Plugin> {
    plugin("probe", move |_| {
        Ok(Contribution::new().methods(methods.clone()))
    })
}

pub(crate) type Object = Map<String, Value>;

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other} is not an object"),
    }
}

pub(crate) fn spec(name: &'static str) -> MethodSpec {
    MethodSpec {
        name,
        description: "For a test.",
        scope: Some("probe:use"),
        ..MethodSpec::default()
    }
}

/// A method that takes and gives any object.
pub(crate) fn unary<F>(
    spec: MethodSpec,
    run: impl Fn(CallCtx, Object) -> F + Send + Sync + 'static,
) -> Method
where
    F: Future<Output = Result<Object, CallError>> + Send + 'static,
{
    Method::unary(&spec, run).unwrap()
}

/// A method that takes any object and emits any objects.
pub(crate) fn streaming<F>(
    spec: MethodSpec,
    run: impl Fn(CallCtx, Object, Emitter<Object>) -> F + Send + Sync + 'static,
) -> Method
where
    F: Future<Output = Result<(), CallError>> + Send + 'static,
{
    Method::streaming(&spec, run).unwrap()
}

/// What must hold of every stream, however it ended: numbers without a hole, exactly one
/// terminal for each call and nothing of that call or of those below it after that, every call's
/// maker there too, and so the root's terminal last. Returns how the root ended.
#[track_caller]
pub(crate) fn check(items: &[HubStreamItem]) -> (DoneStatus, Option<String>) {
    let mut ended: BTreeSet<CallId> = BTreeSet::new();
    let mut seen: BTreeSet<CallId> = BTreeSet::new();
    for (item, seq) in items.iter().zip(1..) {
        assert_eq!(item.seq, seq, "a hole or a repetition: {items:#?}");
        let above = std::iter::successors(Some(item.call_id), CallId::parent);
        for call in above {
            assert!(!ended.contains(&call), "{item:?} follows the end of {call}");
        }
        seen.insert(item.call_id);
        if matches!(item.body, ItemBody::Done { .. }) {
            ended.insert(item.call_id);
        }
    }
    assert_eq!(seen, ended, "calls without a terminal: {items:#?}");
    for call in &seen {
        let parent = call.parent();
        assert!(
            parent.is_none_or(|parent| seen.contains(&parent)),
            "{call} has no maker"
        );
    }
    match items.last() {
        Some(HubStreamItem {
            call_id,
            body: ItemBody::Done { status, reason },
            ..
        }) if call_id.depth() == 0 => (*status, reason.clone()),
        other => panic!("the root's terminal should be last, not {other:?}"),
    }
}

/// How each call ended, by its id without the stream's.
pub(crate) fn endings(items: &[HubStreamItem]) -> BTreeMap<CallId, DoneStatus> {
    let done = |item: &HubStreamItem| match item.body {
        ItemBody::Done { status, .. } => Some((item.call_id, status)),
        _ => None,
    };
    items.iter().filter_map(done).collect()
}

/// The data of a stream, in order.
pub(crate) fn data(items: &[HubStreamItem]) -> Vec<Value> {
    let data = |item: &HubStreamItem| match &item.body {
        ItemBody::Data { data, .. } => Some(data.clone()),
        _ => None,
    };
    items.iter().filter_map(data).collect()
}

/// The error codes of a stream, in order.
pub(crate) fn codes(items: &[HubStreamItem]) -> Vec<ErrorCode> {
    let code = |item: &HubStreamItem| match &item.body {
        ItemBody::Error { code, .. } => Some(code.clone()),
        _ => None,
    };
    items.iter().filter_map(code).collect()
}
