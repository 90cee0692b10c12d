//! Questions that are larger than the conversation has room for, such as a piped diff.

use std::sync::Arc;

use dodona_llm::Model;
use dodona_plugin::{CallError, ToolText};

use super::cut;
use super::role::Role;
use crate::agent::Agent;
use crate::conversation::{DEFAULT_TOKEN_BUDGET, Owner, new_handle};

/// No question up to this many bytes is cut: it fits into the smallest budget.
const SMALL: usize = 2_000;

/// A question as the model is shown it.
pub(super) struct FittedQuestion {
    pub(super) text: String,
    /// Present if the text is only the beginning.
    pub(super) cut: Option<CutQuestion>,
}

pub(super) struct CutQuestion {
    /// Under which the whole question is read with `agent_result`.
    pub(super) handle: String,
    pub(super) whole: String,
    /// The notification for the user.
    pub(super) notice: String,
}

/// Cuts a question to half of what the conversation has room for. The model can read the rest.
pub(super) async fn fit(
    agent: &Agent,
    owner: &Owner,
    (model, role): (&Arc<dyn Model>, &Role),
    context: Option<&str>,
    question: String,
) -> Result<FittedQuestion, CallError> {
    if question.len() <= SMALL {
        return Ok(FittedQuestion {
            text: question,
            cut: None,
        });
    }
    let known = agent
        .conversations
        .find(owner, context, role.name())
        .await?;
    let budget = match known {
        Some(id) => {
            let context = agent.conversations.show(owner, Some(id.as_str())).await?;
            context.token_budget
        }
        None => role
            .token_budget(agent, model)
            .unwrap_or(DEFAULT_TOKEN_BUDGET),
    };
    let window = model.context_window().map_or(u64::MAX, u64::from);
    let room = budget.min(window / 2) / 2;
    let Some(bytes) = cut::fitting(&model.counter(), &question, room) else {
        return Ok(FittedQuestion {
            text: question,
            cut: None,
        });
    };
    let text = ToolText::plain(question);
    let whole = &text.head;
    let shown = cut::cut(&text, whole, bytes);
    let handle = new_handle();
    let note = cut::note(&text, whole, &shown, &handle);
    let all = whole.chars().count();
    let characters = whole[..shown.end].chars().count();
    let notice = format!(
        "the message has {all} characters; `{}` was sent the first {characters} and can read the rest with `agent_result`",
        model.name()
    );
    Ok(FittedQuestion {
        text: format!("{}\n{note}", whole[..shown.end].trim_end()),
        cut: Some(CutQuestion {
            handle,
            notice,
            whole: text.head,
        }),
    })
}
