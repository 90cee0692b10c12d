//! What a person says to calls that wait.

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
    /// Answered ones too, not only those that wait.
    #[serde(default)]
    all: bool,
    /// This one, however it stands.
    id: Option<ApprovalId>,
    /// How many at most.
    #[serde(default = "page")]
    #[schemars(range(max = 1000))]
    limit: NonZeroU32,
}

fn page() -> NonZeroU32 {
    const { NonZeroU32::new(100).expect("not zero") }
}

#[derive(Serialize, JsonSchema)]
struct ApprovalsResult {
    /// The newest first.
    approvals: Vec<ApprovalRecord>,
}

#[derive(Deserialize, JsonSchema)]
struct AnswerParams {
    /// Which question.
    id: ApprovalId,
    /// Why so; the caller is told.
    #[schemars(length(max = 1000))]
    reason: Option<String>,
}

impl ApprovalMethods {
    fn hub(&self) -> Result<Arc<HubInner>, CallError> {
        self.hub
            .upgrade()
            .ok_or_else(|| CallError::new(ErrorCode::Internal, "the hub is gone"))
    }

    /// Answers a question. Only a call from outside can: otherwise a tool, or the agent that uses
    /// it, could agree to its own wish.
    async fn answer(
        &self,
        ctx: &CallCtx,
        p: AnswerParams,
        state: ApprovalState,
    ) -> Result<ApprovalRecord, CallError> {
        if ctx.call_id.depth() > 0 {
            return Err(CallError::new(
                ErrorCode::Forbidden,
                "a person answers this, not a plugin",
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
    /// Lists the calls that wait for a person's agreement: the caller's own, or everybody's with
    /// `hub:admin`.
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

    /// Lets a waiting call go on. The first answer counts.
    #[method(scope = "hub:approve", mutates)]
    async fn approve(&self, ctx: &CallCtx, p: AnswerParams) -> Result<ApprovalRecord, CallError> {
        self.answer(ctx, p, ApprovalState::Approved).await
    }

    /// Refuses a waiting call. The first answer counts.
    #[method(scope = "hub:approve", mutates)]
    async fn deny(&self, ctx: &CallCtx, p: AnswerParams) -> Result<ApprovalRecord, CallError> {
        self.answer(ctx, p, ApprovalState::Denied).await
    }
}
