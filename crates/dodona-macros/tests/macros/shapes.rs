//! Every shape a method can have.

use std::sync::Arc;

use dodona_plugin::proto::{Approval, MethodDescriptor, MethodKind, Mutation, ToolCategory};
use dodona_plugin::{CallCtx, CallError, Emitter, plugin};
use futures_util::{Stream, stream};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Params {
    to: u32,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Tick {
    n: u32,
}

struct Shapes<T>(T);

#[plugin(name = "shapes")]
impl<T: Send + Sync + 'static> Shapes<T> {
    /// One result.
    ///
    ///   Indented, `code`, and more.
    #[method]
    async fn unary(&self, _ctx: &CallCtx, p: Params) -> Result<Tick, CallError> {
        Ok(Tick { n: p.to })
    }

    /// No parameters.
    #[method(scope = "shapes:use", timeout_ms = 5_000)]
    async fn bare(&self, _ctx: &CallCtx) -> Result<Tick, CallError> {
        Ok(self.tick())
    }

    /// Takes an emitter.
    #[method(scope = "shapes:use", mutates)]
    async fn emits(&self, _ctx: &CallCtx, p: Params, out: Emitter<Tick>) -> Result<(), CallError> {
        out.send(Tick { n: p.to }).await
    }

    /// Takes an emitter and nothing else.
    #[method(tool(category = "meta"))]
    async fn only_emits(&self, _ctx: &CallCtx, out: Emitter<Tick>) -> Result<(), CallError> {
        out.send(Tick { n: 1 }).await
    }

    /// Returns a stream.
    #[method(tool(category = "web", agents = ["oracle", "librarian"], approval))]
    fn returns(
        &self,
        _ctx: &CallCtx,
        p: Params,
    ) -> impl Stream<Item = Result<Tick, CallError>> + use<T> {
        stream::iter((0..p.to).map(|n| Ok(Tick { n })))
    }

    /// Returns a stream after a wait.
    #[dodona_plugin::method]
    async fn r#type(&self, _ctx: &CallCtx) -> impl Stream<Item = Result<Tick, CallError>> {
        stream::empty()
    }

    // Not a method.
    fn tick(&self) -> Tick {
        let _ = &self.0;
        Tick { n: 0 }
    }
}

#[test]
fn every_shape_of_a_method_is_described_as_it_is_written() {
    let methods = Arc::new(Shapes("anything"))
        .plugin_methods()
        .expect("they keep the contract");
    let described = |name: &str| -> &MethodDescriptor {
        let of = |method: &&dodona_plugin::Method| method.descriptor().name.as_str() == name;
        methods.iter().find(of).expect("it is there").descriptor()
    };
    assert_eq!(methods.len(), 6);
    let unary = described("shapes.unary");
    assert_eq!(
        unary.description,
        "One result.\n\n  Indented, `code`, and more."
    );
    assert_eq!(
        (unary.kind, unary.mutation),
        (MethodKind::Unary, Mutation::Reads)
    );
    assert_eq!(
        (&unary.scope, &unary.tool, unary.timeout),
        (&None, &None, None)
    );
    assert_eq!(unary.params["required"][0], "to");
    assert_eq!(unary.params["additionalProperties"], false);
    let bare = described("shapes.bare");
    assert_eq!(
        bare.scope.as_ref().map(|scope| scope.as_str()),
        Some("shapes:use")
    );
    assert_eq!(bare.timeout.map(|timeout| timeout.as_millis()), Some(5_000));
    assert_eq!(described("shapes.emits").mutation, Mutation::Mutates);
    for name in ["emits", "only_emits", "returns", "type"] {
        let method = described(&format!("shapes.{name}"));
        assert_eq!(method.kind, MethodKind::Streaming);
        assert_eq!(method.result["title"], "Tick");
    }
    let meta = described("shapes.only_emits")
        .tool
        .as_ref()
        .expect("it is a tool");
    assert_eq!(
        (meta.category, meta.approval),
        (ToolCategory::Meta, Approval::Never)
    );
    assert_eq!(meta.agents, ["oracle"]);
    let web = described("shapes.returns")
        .tool
        .as_ref()
        .expect("it is a tool");
    assert_eq!(
        (web.category, web.approval),
        (ToolCategory::Web, Approval::Always)
    );
    assert_eq!(web.agents, ["oracle", "librarian"]);
}
