//! The plugin `hub`: methods about the hub itself.

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

pub(crate) fn name() -> PluginName {
    PluginName::new("hub").expect("a constant name")
}

/// The scope that shows the calls and streams of all users.
pub(crate) fn admin_scope() -> Scope {
    "hub:admin".parse().expect("a constant scope")
}

/// The plugin `hub`. Holds the hub weakly, because the hub holds the plugin.
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
            .ok_or_else(|| CallError::new(ErrorCode::Internal, "the server is stopping"))
    }
}

#[plugin(name = "hub")]
impl HubMethods {
    /// List plugins with their status and the reason for it.
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

    /// List the methods you may call, with descriptions and the JSON Schemas of parameters and results. Pass
    /// `plugin` to list only its methods.
    #[method(scope = "hub:read")]
    async fn methods(&self, ctx: &CallCtx, p: MethodsParams) -> Result<MethodsResult, CallError> {
        let mut methods = self.hub()?.methods(&ctx.principal, here(ctx));
        if let Some(plugin) = &p.plugin {
            methods.retain(|method| method.name.plugin() == plugin);
        }
        Ok(MethodsResult { methods })
    }

    /// Return a hash of the schemas of all methods you may call, or of one method. The hash changes exactly when
    /// a schema changes.
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

    /// List running calls, parents before children: your own, or those of all users with the scope `hub:admin`.
    #[method(scope = "hub:read")]
    async fn calls(&self, ctx: &CallCtx) -> Result<CallsResult, CallError> {
        let mut calls = self.hub()?.running_calls(&ctx.principal);
        calls.retain(|call| call.call_id != ctx.call_id);
        Ok(CallsResult { calls })
    }

    /// Cancel running calls by `call_id`, by `stream_id`, or by path prefix (`path`, in one stream or in all your
    /// streams). Returns the cancelled calls.
    #[method(scope = "hub:cancel", mutates)]
    async fn cancel(&self, ctx: &CallCtx, p: CancelParams) -> Result<CancelResult, CallError> {
        let stopped = self
            .hub()?
            .cancel(&ctx.principal, &target(p)?, ctx.call_id)
            .await?;
        Ok(CancelResult { stopped })
    }

    /// Show the state of the hub: uptime, running calls, plugins, journal backlog.
    #[method(scope = "hub:read")]
    async fn health(&self, _ctx: &CallCtx, _p: NoParams) -> Result<HealthResult, CallError> {
        Ok(HealthResult::from(self.hub()?.health()))
    }

    /// Show the limits of calls, and the size of the journal. Measuring the journal reads all of it and may take
    /// a moment.
    #[method(scope = "hub:read")]
    async fn limits(&self, _ctx: &CallCtx, _p: NoParams) -> Result<LimitsResult, CallError> {
        let hub = self.hub()?;
        let held = hub.journal.held().await.map_err(|error| {
            CallError::new(ErrorCode::Internal, "failed to measure the journal").log(error)
        })?;
        Ok(LimitsResult::new(&hub.config, held))
    }

    /// List the projects you are a member of.
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
        let rights = if ctx.principal.scopes.allow(&hub.admin) {
            Rights::Admin
        } else {
            Rights::Member
        };
        let project = hub.projects.register(&ctx.principal.user, rights, &p.root);
        let project = project.await?;
        if hub.manager.may_bring_plugins(&project.root) {
            hub.manager.reload(&hub.snapshot).await;
        }
        Ok(Project::clone(&project))
    }

    /// List tokens: your own, or those of all users with the scope `hub:admin`. The secret text is never shown.
    #[method(scope = "hub:tokens")]
    async fn tokens(&self, ctx: &CallCtx) -> Result<TokensResult, CallError> {
        let hub = self.hub()?;
        Ok(TokensResult {
            tokens: hub.accounts.list(hub.owner_filter(&ctx.principal)),
        })
    }

    /// Create a token for a user. The text of the token is returned once and cannot be shown again.
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

    /// Revoke a token at once: one of your own, or of any user with the scope `hub:admin`.
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
                format!("token `{}` not found", p.id),
            )),
        }
    }

    /// Create a one-time code that signs in to the page as you. Valid for five minutes.
    #[method(scope = "hub:login", mutates)]
    async fn login_code(&self, ctx: &CallCtx) -> Result<LoginCode, CallError> {
        Ok(LoginCode {
            code: self.hub()?.accounts.login_code(&ctx.principal)?,
        })
    }

    /// Read items of a running or finished stream, starting after item number `after`. Returns up to `limit`
    /// items and the position to continue from.
    #[method(scope = "hub:read")]
    async fn stream(&self, ctx: &CallCtx, p: StreamParams) -> Result<StreamResult, CallError> {
        let hub = self.hub()?;
        let missing = || {
            CallError::new(
                ErrorCode::NotFound,
                format!("stream `{}` not found", p.stream_id),
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

fn here(ctx: &CallCtx) -> Option<&ProjectId> {
    ctx.project.as_ref().map(|project| &project.id)
}

/// The target of a cancel: a call, a stream, or a path with or without a stream.
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
            "pass a `call_id`, a `stream_id`, or a `path` with an optional `stream_id`",
        )),
    }
}
