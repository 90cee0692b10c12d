//! What a request to a process is about: what the process may use while it answers.

use std::sync::Arc;

use dodona_plugin::{Behalf, CallCtx};
use dodona_proto::Event;

use super::method::MethodInfo;
use crate::services::Whose;

/// What one request to a process is about.
#[derive(Clone)]
pub(super) enum Scope {
    /// Its start.
    Start,
    /// A call of one of its methods.
    Call(CallCtx, Arc<MethodInfo>),
    /// A hook, and for whom it fires.
    Hook {
        whose: Option<Whose>,
        /// The call that the hook is about.
        call: Option<String>,
    },
    /// An event.
    Event(Arc<Event>),
}

impl Scope {
    /// The user and the project, where there is a user.
    pub(super) fn whose(&self) -> Option<Whose> {
        match self {
            Self::Start => None,
            Self::Call(ctx, _) => {
                let project = ctx.project.as_ref().map(|project| project.id.clone());
                Some((ctx.principal.user.clone(), project))
            }
            Self::Hook { whose, .. } => whose.clone(),
            Self::Event(event) => Some((event.user.clone()?, event.project.clone())),
        }
    }

    /// On whose behalf something is published.
    pub(super) fn behalf(&self) -> Option<Behalf<'_>> {
        match self {
            Self::Call(ctx, _) => Some(Behalf::of(ctx)),
            Self::Hook {
                whose: Some((user, project)),
                ..
            } => Some(Behalf {
                user,
                project: project.as_ref(),
                call: None,
            }),
            Self::Event(event) => Some(Behalf {
                user: event.user.as_ref()?,
                project: event.project.as_ref(),
                call: None,
            }),
            Self::Start | Self::Hook { .. } => None,
        }
    }

    /// The event that something published here is caused by.
    pub(super) fn cause(&self) -> Option<&Event> {
        match self {
            Self::Event(event) => Some(event),
            _ => None,
        }
    }

    /// The id of the call that it belongs to.
    pub(super) fn call_id(&self) -> Option<String> {
        match self {
            Self::Call(ctx, _) => Some(ctx.call_id.to_string()),
            Self::Hook { call, .. } => call.clone(),
            Self::Start | Self::Event(_) => None,
        }
    }
}
