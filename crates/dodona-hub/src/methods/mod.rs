//! The plugin `hub`: what the hub tells about itself.

mod approvals;
mod limits;
mod trust;
mod types;

use std::sync::{Arc, Weak};
use std::time::Duration;

use dodona_plugin::activation::Activating;
use dodona_plugin::{
    CallCtx, CallError, Contribution, ErrorCode, NoParams, Plugin, PluginContext, plugin,
};
use dodona_proto::{CallId, PluginName, PluginPath, Project, ProjectId, Scope, StreamId};

use crate::cancel::CancelTarget;
use crate::hub::HubInner;
use crate::projects::Rights;
use approvals::ApprovalMethods;
use limits::LimitsResult;
use trust::TrustMethods;
use types::{
    CallsResult, CancelParams, CancelResult, HealthResult, LoginCode, MethodsParams, MethodsResult,
    PluginsResult, ProjectsResult, RegisterProjectParams, SchemaHashParams, SchemaHashResult,
    StreamParams, StreamResult, TokenCreateParams, TokenCreated, TokenRevokeParams, TokenRevoked,
    TokensResult,
};

/// The hub's own name among the plugins.
pub(crate) fn name() -> PluginName {
    PluginName::new("hub").expect("a constant name")
}

/// What shows everybody's calls and streams.
pub(crate) fn admin_scope() -> Scope {
    "hub:admin".parse().expect("a constant scope")
}

/// The plugin. It holds the hub weakly: the hub holds it.
pub(crate) struct HubPlugin {
    hub: Weak<HubInner>,
}

impl HubPlugin {
    pub(crate) fn new(hub: Weak<HubInner>) -> Self {
        Self { hub }
    }
}

impl Plugin for HubPlugin {
    fn name(&self) -> &str {
        "hub"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn description(&self) -> &str {
        "Calls, approvals, projects, tokens and health of the server."
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        let hub = self.hub.clone();
        let approvals = Arc::new(ApprovalMethods { hub: hub.clone() }).plugin_methods();
        let trust = Arc::new(TrustMethods { hub: hub.clone() }).plugin_methods();
        let methods = Arc::new(HubMethods { hub }).plugin_methods();
        Box::pin(async {
            let contribution = Contribution::new().methods(methods?);
            Ok(contribution.methods(approvals?).methods(trust?))
        })
    }
}

struct HubMethods {
    hub: Weak<HubInner>,
}

impl HubMethods {
    fn hub(&self) -> Result<Arc<HubInner>, CallError> {
        self.hub
            .upgrade()
            .ok_or_else(|| CallError::new(ErrorCode::Internal, "the hub is gone"))
    }
}

#[plugin(name = "hub")]
impl HubMethods {
    /// Lists the plugins: where each is in its life, and why.
    #[method(scope = "hub:read")]
    async fn plugins(&self, _ctx: &CallCtx) -> Result<PluginsResult, CallError> {
        Ok(PluginsResult {
            plugins: self
                .hub()?
                .snapshot
                .load()
                .plugins
                .values()
                .cloned()
                .collect(),
        })
    }

    /// Lists the methods the caller may use, with the schemas of their parameters and results.
    #[method(scope = "hub:read")]
    async fn methods(&self, ctx: &CallCtx, p: MethodsParams) -> Result<MethodsResult, CallError> {
        let mut methods = self.hub()?.methods(&ctx.principal, here(ctx));
        if let Some(plugin) = &p.plugin {
            methods.retain(|method| method.name.plugin() == plugin);
        }
        Ok(MethodsResult { methods })
    }

    /// Answers with a hash of all schemas the caller may see, or of one method's: it changes
    /// exactly when they do.
    #[method(scope = "hub:read")]
    async fn schema_hash(
        &self,
        ctx: &CallCtx,
        p: SchemaHashParams,
    ) -> Result<SchemaHashResult, CallError> {
        let hub = self.hub()?;
        let methods = hub.methods(&ctx.principal, here(ctx));
        match p.method {
            None => Ok(SchemaHashResult::of_all(&methods)),
            Some(name) => match methods.iter().find(|method| method.name.as_str() == name) {
                Some(method) => Ok(SchemaHashResult {
                    hash: method.schema_hash.clone(),
                }),
                None => Err(hub.snapshot.load().method_not_found(&name)),
            },
        }
    }

    /// Lists the calls that are running: the caller's own, or everybody's with `hub:admin`.
    #[method(scope = "hub:read")]
    async fn calls(&self, ctx: &CallCtx) -> Result<CallsResult, CallError> {
        let mut calls = self.hub()?.running_calls(&ctx.principal);
        calls.retain(|call| call.call_id != ctx.call_id);
        Ok(CallsResult { calls })
    }

    /// Stops calls, by call id, by stream, or by path prefix (in one stream or in all of the
    /// caller's), and answers with what was stopped.
    #[method(scope = "hub:cancel", mutates)]
    async fn cancel(&self, ctx: &CallCtx, p: CancelParams) -> Result<CancelResult, CallError> {
        let stopped = self
            .hub()?
            .cancel(&ctx.principal, &target(p)?, ctx.call_id)
            .await?;
        Ok(CancelResult { stopped })
    }

    /// Tells how the hub is.
    #[method(scope = "hub:read")]
    async fn health(&self, _ctx: &CallCtx, _p: NoParams) -> Result<HealthResult, CallError> {
        Ok(HealthResult::from(self.hub()?.health()))
    }

    /// Tells what calls are bounded by, and how much of its room the journal has used; that reads
    /// all of it.
    #[method(scope = "hub:read")]
    async fn limits(&self, _ctx: &CallCtx, _p: NoParams) -> Result<LimitsResult, CallError> {
        let hub = self.hub()?;
        let held = hub.journal.held().await.map_err(|error| {
            CallError::new(ErrorCode::Internal, "the journal could not be measured").log(error)
        })?;
        Ok(LimitsResult::new(&hub.config, held))
    }

    /// Lists the caller's projects.
    #[method(scope = "hub:projects")]
    async fn projects(&self, ctx: &CallCtx) -> Result<ProjectsResult, CallError> {
        let projects = self.hub()?.projects.of(&ctx.principal.user);
        Ok(ProjectsResult { projects })
    }

    /// Register a directory as a project of the caller and return it. A directory that is already
    /// registered is returned unchanged. Without `hub:admin` the directory must be below one of the
    /// setting `projects.roots`. Dodona's own directories, system directories and directories that
    /// overlap a project of other users are refused.
    #[method(scope = "hub:projects", mutates)]
    async fn register_project(
        &self,
        ctx: &CallCtx,
        p: RegisterProjectParams,
    ) -> Result<Project, CallError> {
        let hub = self.hub()?;
        let rights = match ctx.principal.scopes.allow(&hub.admin) {
            true => Rights::Admin,
            false => Rights::Member,
        };
        let project = hub.projects.register(&ctx.principal.user, rights, &p.root);
        let project = project.await?;
        if hub.manager.may_bring_plugins(&project.root) {
            hub.manager.reload(&hub.snapshot).await;
        }
        Ok(Project::clone(&project))
    }

    /// Lists tokens: the caller's own, or everybody's with `hub:admin`. Never their text.
    #[method(scope = "hub:tokens")]
    async fn tokens(&self, ctx: &CallCtx) -> Result<TokensResult, CallError> {
        let hub = self.hub()?;
        Ok(TokensResult {
            tokens: hub.accounts.list(hub.owner_filter(&ctx.principal)),
        })
    }

    /// Makes a token for a user. Its text is in this answer and nowhere else.
    #[method(scope = "hub:admin", mutates)]
    async fn token_create(
        &self,
        _ctx: &CallCtx,
        p: TokenCreateParams,
    ) -> Result<TokenCreated, CallError> {
        let lifetime = p.expires_in_s.map(Duration::from_secs);
        let (info, token) = self
            .hub()?
            .accounts
            .create(&p.user, &p.name, p.scopes, lifetime)
            .await?;
        Ok(TokenCreated { token, info })
    }

    /// Ends a token at once: one of the caller's own, or anybody's with `hub:admin`.
    #[method(scope = "hub:tokens", mutates)]
    async fn token_revoke(
        &self,
        ctx: &CallCtx,
        p: TokenRevokeParams,
    ) -> Result<TokenRevoked, CallError> {
        let hub = self.hub()?;
        match hub
            .accounts
            .revoke(&p.id, hub.owner_filter(&ctx.principal))
            .await?
        {
            true => Ok(TokenRevoked { id: p.id }),
            false => Err(CallError::new(
                ErrorCode::NotFound,
                format!("there is no token `{}`", p.id),
            )),
        }
    }

    /// Makes a code that signs a page in as the caller, once and within five minutes.
    #[method(scope = "hub:login", mutates)]
    async fn login_code(&self, ctx: &CallCtx) -> Result<LoginCode, CallError> {
        Ok(LoginCode {
            code: self.hub()?.accounts.login_code(&ctx.principal)?,
        })
    }

    /// Reads a page of a stream's items, running or finished, from after item `after`.
    #[method(scope = "hub:read")]
    async fn stream(&self, ctx: &CallCtx, p: StreamParams) -> Result<StreamResult, CallError> {
        let hub = self.hub()?;
        let missing = || {
            CallError::new(
                ErrorCode::NotFound,
                format!("there is no stream `{}`", p.stream_id),
            )
        };
        let head = hub.journal.head(p.stream_id).await?;
        let (_, end) = head
            .filter(|(head, _)| hub.may_see(&ctx.principal, &head.user))
            .ok_or_else(missing)?;
        let items = hub
            .journal
            .page(p.stream_id, p.after, p.limit.get())
            .await?;
        StreamResult::new(&items, p.after, end)
    }
}

/// The project of a call.
fn here(ctx: &CallCtx) -> Option<&ProjectId> {
    ctx.project.as_ref().map(|project| &project.id)
}

/// What a cancel names: exactly one of call and stream, or a path, alone or within a stream.
fn target(p: CancelParams) -> Result<CancelTarget, CallError> {
    let bad = |message: &str| CallError::new(ErrorCode::InvalidParams, message.to_owned());
    let wrong = |error: &dyn std::error::Error| bad(&error.to_string());
    let stream = p
        .stream_id
        .map(|id| id.parse::<StreamId>().map_err(|error| wrong(&error)))
        .transpose()?;
    match (p.call_id, stream, p.path) {
        (Some(call), None, None) => Ok(CancelTarget::Call(
            call.parse::<CallId>().map_err(|error| wrong(&error))?,
        )),
        (None, Some(stream), None) => Ok(CancelTarget::Stream(stream)),
        (None, within, Some(path)) => {
            let prefix = path
                .parse::<PluginPath>()
                .map_err(|_| bad(&format!("`{path}` is not a path")))?;
            Ok(CancelTarget::Path { prefix, within })
        }
        _ => Err(bad(
            "name a `call_id`, a `stream_id`, or a `path` with or without a `stream_id`",
        )),
    }
}
