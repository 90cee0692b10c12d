//! The methods `hub.approvals`, `hub.approve` and `hub.deny`.

use std::num::NonZeroU32;
use std::sync::{Arc, Weak};

use dodona_plugin::{CallCtx, CallError, ErrorCode, plugin};
use dodona_proto::{ApprovalId, ApprovalRecord, ApprovalState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approvals::{Filter, PersonsAnswer};
use crate::hub::HubInner;

pub(super) struct ApprovalMethods {
    pub(super) hub: Weak<HubInner>,
}

#[derive(Deserialize, JsonSchema)]
struct ApprovalsParams {
    /// Include answered requests. Default: pending requests only.
    #[serde(default)]
    all: bool,
    /// Only the request with this id, in any state.
    id: Option<ApprovalId>,
    /// Maximum number of requests.
    #[serde(default = "page")]
    #[schemars(range(max = 1000))]
    limit: NonZeroU32,
}

fn page() -> NonZeroU32 {
    const { NonZeroU32::new(100).expect("not zero") }
}

#[derive(Serialize, JsonSchema)]
struct ApprovalsResult {
    /// The requests, newest first.
    approvals: Vec<ApprovalRecord>,
}

#[derive(Deserialize, JsonSchema)]
struct AnswerParams {
    /// The id of the approval request.
    id: ApprovalId,
    /// The reason. It is shown to the caller.
    #[schemars(length(max = 1000))]
    reason: Option<String>,
}

impl ApprovalMethods {
    fn hub(&self) -> Result<Arc<HubInner>, CallError> {
        self.hub
            .upgrade()
            .ok_or_else(|| CallError::new(ErrorCode::Internal, "the server is stopping"))
    }

    /// Answers a request. Nested calls are rejected, because a tool or an agent could otherwise approve its own
    /// call.
    async fn answer(
        &self,
        ctx: &CallCtx,
        p: AnswerParams,
        state: ApprovalState,
    ) -> Result<ApprovalRecord, CallError> {
        if ctx.call_id.depth() > 0 {
            return Err(CallError::new(
                ErrorCode::Forbidden,
                "approvals can only be answered by a person, not by a plugin",
            ));
        }
        let hub = self.hub()?;
        let answer = PersonsAnswer {
            by: ctx.principal.user.clone(),
            state,
            reason: p.reason.filter(|reason| !reason.trim().is_empty()),
        };
        hub.approvals
            .answer(p.id, hub.owner_filter(&ctx.principal), answer)
            .await
    }
}

#[plugin(name = "hub")]
impl ApprovalMethods {
    /// List approval requests: your own, or those of all users with the scope `hub:admin`. Pending requests only,
    /// unless `all` or `id` is given.
    #[method(scope = "hub:read")]
    async fn approvals(
        &self,
        ctx: &CallCtx,
        p: ApprovalsParams,
    ) -> Result<ApprovalsResult, CallError> {
        let hub = self.hub()?;
        let everything = p.all || p.id.is_some();
        let filter = Filter {
            owner: hub.owner_filter(&ctx.principal).cloned(),
            id: p.id,
            state: (!everything).then_some(ApprovalState::Pending),
            limit: p.limit.get(),
        };
        Ok(ApprovalsResult {
            approvals: hub.approvals.list(filter).await?,
        })
    }

    /// Approve a pending call, so that it continues. The first answer counts.
    #[method(scope = "hub:approve", mutates)]
    async fn approve(&self, ctx: &CallCtx, p: AnswerParams) -> Result<ApprovalRecord, CallError> {
        self.answer(ctx, p, ApprovalState::Approved).await
    }

    /// Deny a pending call. The first answer counts.
    #[method(scope = "hub:approve", mutates)]
    async fn deny(&self, ctx: &CallCtx, p: AnswerParams) -> Result<ApprovalRecord, CallError> {
        self.answer(ctx, p, ApprovalState::Denied).await
    }
}
