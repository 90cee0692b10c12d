//! How an endpoint reaches the hub.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dodona_hub::{CallStream, PluginHub, Request};
use dodona_plugin::hooks::Hooks;
use dodona_proto::{CallError, ErrorCode, HubStreamItem, MethodDescriptor, Scopes, UserId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalogue::{Catalogue, Catalogues};
use super::groups::Groups;
use super::parked::Parked;
use super::stdio::Connect;
use crate::auth::Caller;
use crate::client::RemoteStream;
use crate::rpc;

/// The hub in this process, and what is kept of its tools.
pub(super) struct Here {
    pub(super) hub: PluginHub,
    kept: Mutex<(Arc<Hooks>, Arc<Catalogues>)>,
    parked: Parked,
}

impl Here {
    pub(super) fn new(hub: PluginHub) -> Self {
        let kept = Mutex::new((hub.hooks(), Arc::default()));
        let parked = Parked::default();
        Self { hub, kept, parked }
    }

    /// What is kept of what is installed now. Another set of callbacks means another set of
    /// methods.
    fn catalogues(&self) -> Arc<Catalogues> {
        let installed = self.hub.hooks();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&kept.0, &installed) {
            *kept = (installed, Arc::default());
        }
        Arc::clone(&kept.1)
    }
}

/// A hub behind our own wire, and what is kept of its tools.
pub(super) struct There {
    pub(super) connect: Box<dyn Connect>,
    pub(super) kept: Mutex<Option<Arc<Catalogue>>>,
    pub(super) parked: Parked,
}

/// On whose behalf, and through what, a request is carried out.
#[derive(Clone)]
pub(super) enum Desk {
    /// By the hub in this process, for whoever made the request.
    Here(Arc<Here>, Caller),
    /// By the server that holds the home, for the user of this process.
    There(Arc<There>),
}

/// What is installed, to be compared with what was.
pub(super) enum Installed {
    Hooks(Arc<Hooks>),
    Schemas(String),
}

impl PartialEq for Installed {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Hooks(one), Self::Hooks(other)) => Arc::ptr_eq(one, other),
            (Self::Schemas(one), Self::Schemas(other)) => one == other,
            _ => false,
        }
    }
}

impl Desk {
    /// The tools that are offered.
    pub(super) async fn catalogue(&self, groups: &Groups) -> Result<Arc<Catalogue>, CallError> {
        match self {
            Self::Here(here, caller) => {
                let scopes: &Scopes = &caller.principal.scopes;
                let project = caller.project.as_ref();
                let methods = || here.hub.methods_in(&caller.principal, project);
                Ok(here.catalogues().get(scopes, project, groups, methods))
            }
            Self::There(there) => there.catalogue(groups).await,
        }
    }

    /// Makes sure that the next catalogue is a new one, where somebody might have missed that.
    pub(super) fn forget(&self) {
        if let Self::There(there) = self {
            *there.kept() = None;
        }
    }

    /// What is installed now.
    pub(super) async fn installed(&self) -> Result<Installed, CallError> {
        match self {
            Self::Here(here, _) => Ok(Installed::Hooks(here.hub.hooks())),
            Self::There(_) => {
                let answer = self.call("hub.schema_hash", json!({})).await?;
                Ok(Installed::Schemas(answer["hash"].to_string()))
            }
        }
    }

    /// Calls a method and waits for its result. In this process, dropping the future cancels it.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        match self {
            Self::Here(here, caller) => here.hub.call(rpc::request(caller, method, params)).await,
            Self::There(there) => there.connect.client().await?.call(method, params).await,
        }
    }

    /// Calls a method and hands out its items. Dropping them cancels it.
    pub(super) async fn open(&self, method: &str, params: Value) -> Result<Items, CallError> {
        match self {
            Self::Here(here, caller) => {
                let request: Request = rpc::request(caller, method, params);
                let stream = here.hub.open(request).await?;
                let ready = VecDeque::new();
                Ok(Items::Here { stream, ready })
            }
            Self::There(there) => {
                let client = there.connect.client().await?;
                let stream = client.open(method, params, None).await?;
                Ok(Items::There(stream))
            }
        }
    }

    /// The calls that wait for their client to come back.
    pub(super) fn parked(&self) -> &Parked {
        match self {
            Self::Here(here, _) => &here.parked,
            Self::There(there) => &there.parked,
        }
    }

    /// Who asks, where there can be several.
    pub(super) fn user(&self) -> Option<UserId> {
        match self {
            Self::Here(_, caller) => Some(caller.principal.user.clone()),
            Self::There(_) => None,
        }
    }

    /// How often it may be looked whether something else is installed: here that costs nothing, and
    /// elsewhere a small call.
    pub(super) fn pace(&self) -> Duration {
        match self {
            Self::Here(..) => Duration::from_millis(100),
            Self::There(_) => Duration::from_millis(300),
        }
    }

    /// Whether a call can be cancelled without being watched.
    pub(super) fn is_here(&self) -> bool {
        matches!(self, Self::Here(..))
    }
}

impl There {
    async fn catalogue(&self, groups: &Groups) -> Result<Arc<Catalogue>, CallError> {
        #[derive(Deserialize)]
        struct Methods {
            methods: Vec<Arc<MethodDescriptor>>,
        }
        if let Some(kept) = &*self.kept() {
            return Ok(Arc::clone(kept));
        }
        let client = self.connect.client().await?;
        let answer = client.call("hub.methods", json!({})).await?;
        let Methods { methods } = serde_json::from_value(answer).map_err(|error| {
            CallError::new(
                ErrorCode::Internal,
                "the server lists methods in a form of its own",
            )
            .log(error)
        })?;
        let made = Arc::new(Catalogue::new(&methods, groups));
        *self.kept() = Some(Arc::clone(&made));
        Ok(made)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Arc<Catalogue>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The items of a call, wherever it runs.
pub(super) enum Items {
    Here {
        stream: CallStream,
        ready: VecDeque<HubStreamItem>,
    },
    There(RemoteStream),
}

impl Items {
    /// The next item; `None` after the terminal. Safe to drop and call again.
    pub(super) async fn next(&mut self) -> Result<Option<HubStreamItem>, CallError> {
        let (stream, ready) = match self {
            Self::There(stream) => return stream.next().await,
            Self::Here { stream, ready } => (stream, ready),
        };
        while ready.is_empty() {
            let Some(items) = stream.next().await? else {
                return Ok(None);
            };
            for item in items {
                ready.push_back(item.to_item().map_err(|error| {
                    CallError::new(ErrorCode::Internal, "a stored item cannot be read").log(error)
                })?);
            }
        }
        Ok(ready.pop_front())
    }
}
