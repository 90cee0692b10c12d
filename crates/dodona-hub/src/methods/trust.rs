//! Methods of the plugin `hub` about trust in projects.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use dodona_plugin::{CallCtx, CallError, ErrorCode, NoParams, plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hub::HubInner;
use crate::trust::{self, Contents, FileChange, Follow, Pin, TrustItem, TrustState};

pub(super) struct TrustMethods {
    pub(super) hub: Weak<HubInner>,
}

#[derive(Deserialize, JsonSchema)]
struct AcceptParams {
    /// The hash that `hub.trust` returned. Only the contents with this hash are trusted.
    hash: String,
    /// Which later changes are trusted too: `nothing`, `rules` (with their scripts) or
    /// `everything`. Use it for a project that only you change.
    #[serde(default)]
    follow: Follow,
    /// Trust only these files, as paths below `.dodona/`. Default: all files.
    #[serde(default)]
    only: Option<Vec<String>>,
}

/// What a project would run, and whether it is trusted.
#[derive(Serialize, JsonSchema)]
struct TrustResult {
    /// Path of the project's directory.
    root: PathBuf,
    /// Trust status of the project.
    state: TrustState,
    /// Hash of all files that need trust. It changes with any of them.
    hash: Option<String>,
    /// The files and plugins that need trust.
    items: Vec<TrustItem>,
    /// Files that changed since the project was trusted.
    changes: Vec<FileChange>,
    /// Who trusted the project, and when.
    granted: Option<Pin>,
    /// Why the project cannot be trusted.
    problem: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct TrustedResult {
    /// The projects, sorted by directory.
    projects: Vec<Pin>,
}

impl TrustMethods {
    fn hub(&self) -> Result<Arc<HubInner>, CallError> {
        self.hub
            .upgrade()
            .ok_or_else(|| CallError::new(ErrorCode::Internal, "the server is stopping"))
    }
}

#[plugin(name = "hub")]
impl TrustMethods {
    /// Show what the project would run from its `.dodona/` directory (plugins, rules, prompts, agents), whether
    /// its current contents are trusted, and what changed since. Nothing is run or compiled.
    #[method(scope = "hub:projects")]
    async fn trust(&self, ctx: &CallCtx) -> Result<TrustResult, CallError> {
        let hub = self.hub()?;
        shown(&hub, &root(ctx)?).await
    }

    /// Trust the contents of the project's `.dodona/` with the given hash. Its plugins are activated
    /// with the capabilities they use, and its rules are in force when this returns.
    #[method(scope = "hub:admin", mutates, timeout_ms = 180_000)]
    async fn trust_accept(&self, ctx: &CallCtx, p: AcceptParams) -> Result<TrustResult, CallError> {
        let (hub, root) = (self.hub()?, root(ctx)?);
        let contents = read(&root).await?.map_err(|why| {
            CallError::new(
                ErrorCode::InvalidRequest,
                format!("the project cannot be trusted: {why}"),
            )
        })?;
        if contents.hash() != p.hash {
            let message = "the project has changed since it was reviewed";
            let error = CallError::new(ErrorCode::InvalidRequest, message);
            return Err(error.hint("review it again with `dodona trust`"));
        }
        let user = &ctx.principal.user;
        match p.only {
            None => hub.trust.accept(&root, &contents, user, p.follow).await?,
            Some(paths) => {
                let hash = |path: String| {
                    let hash = contents.files.get(&path).cloned();
                    (path, hash)
                };
                let written = paths.into_iter().map(hash).collect();
                hub.trust.accept_written(&root, user, written).await?;
            }
        }
        hub.manager.reload(&hub.snapshot).await;
        shown(&hub, &root).await
    }

    /// Withdraw trust from the project. Its plugins are deactivated at once.
    #[method(scope = "hub:admin", mutates)]
    async fn trust_revoke(&self, ctx: &CallCtx) -> Result<TrustResult, CallError> {
        let (hub, root) = (self.hub()?, root(ctx)?);
        hub.trust.revoke(&root).await?;
        hub.manager.reload(&hub.snapshot).await;
        shown(&hub, &root).await
    }

    /// List the trusted projects.
    #[method(scope = "hub:admin")]
    async fn trusted(&self, _ctx: &CallCtx, _p: NoParams) -> Result<TrustedResult, CallError> {
        let projects = self.hub()?.trust.all();
        Ok(TrustedResult { projects })
    }
}

/// The directory of the call's project.
fn root(ctx: &CallCtx) -> Result<PathBuf, CallError> {
    Ok(ctx.require_project()?.root.clone())
}

async fn read(root: &Path) -> Result<Result<Contents, String>, CallError> {
    let root = root.to_owned();
    let read = tokio::task::spawn_blocking(move || Contents::read(&root)).await;
    read.map_err(|_| CallError::new(ErrorCode::Internal, "failed to read the project"))
}

async fn shown(hub: &HubInner, root: &Path) -> Result<TrustResult, CallError> {
    let granted = hub.trust.pin(root);
    let mut result = TrustResult {
        root: root.to_owned(),
        state: TrustState::Untrusted,
        hash: None,
        items: Vec::new(),
        changes: Vec::new(),
        granted,
        problem: None,
    };
    match read(root).await? {
        Err(problem) => result.problem = Some(problem),
        Ok(contents) => {
            result.state = hub.trust.state(root, &contents);
            result.hash = Some(contents.hash());
            result.items = trust::items(root, &contents);
            let changes = result.granted.as_ref().map(|pin| pin.changes(&contents));
            result.changes = changes.unwrap_or_default();
        }
    }
    Ok(result)
}
