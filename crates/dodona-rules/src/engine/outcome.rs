//! What comes of asking a rule.

use std::fmt;

use dodona_proto::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decisions::Decisions;

/// What an evaluation came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Whether the condition holds and nothing kept the rule from acting.
    pub fired: bool,
    /// What it decided, in order. Of several actions, one that fails keeps no other from it.
    pub decisions: Decisions,
    /// The first thing that went wrong. It seldom does, so that most outcomes have no room for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<EvalError>>,
    /// What kept it from acting although its condition holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<Suppressed>,
    /// Whether a notification was dropped because the project's rules sent too many.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

impl Outcome {
    /// It went wrong.
    pub(crate) fn failed(error: EvalError) -> Self {
        Self {
            error: Some(Box::new(error)),
            ..Self::default()
        }
    }
}

impl Outcome {
    /// Leaves only decisions to deny or to ask: all that covers calls outside of a query.
    pub(crate) fn keep_refusals(&mut self) {
        let is_refusal = |decision: &&Decision| {
            matches!(
                decision,
                Decision::Deny { .. } | Decision::RequireApproval { .. }
            )
        };
        if self.decisions.iter().all(|decision| is_refusal(&decision)) {
            return;
        }
        let mut kept = Decisions::default();
        for decision in self.decisions.iter().filter(is_refusal) {
            kept.push(decision.clone());
        }
        self.fired &= !kept.is_empty();
        self.decisions = kept;
    }
}

/// Something a rule decided, with its texts rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    /// The tool does not run.
    Deny {
        /// Why.
        message: String,
    },
    /// A person must agree first.
    RequireApproval {
        /// To what.
        message: String,
    },
    /// Something to be done.
    #[serde(untagged)]
    Effect(Effect),
}

impl Decision {
    /// The text that people or models read, where it has one.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Effect(Effect::NotifySelf(notification)) => Some(&notification.message),
            Self::Effect(Effect::Log { message, .. })
            | Self::Deny { message }
            | Self::RequireApproval { message } => Some(message),
            Self::Effect(Effect::SetState { .. } | Effect::EmitEvent { .. }) => None,
        }
    }
}

/// A condition that was asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Matched {
    /// It does not hold.
    No,
    /// It holds: the rule's own actions.
    Yes,
    /// It holds, and the script says itself what to do: tables as it returned them.
    Actions(Vec<Value>),
}

impl Matched {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        *self != Self::No
    }
}

/// Why an evaluation has no clean result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvalError {
    /// In what.
    pub stage: Stage,
    /// What went wrong.
    pub message: String,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stage {
            Stage::Condition => write!(f, "its condition: {}", self.message),
            Stage::Action(index) => write!(f, "its action {}: {}", index + 1, self.message),
        }
    }
}

/// A part of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Asking whether it holds.
    Condition,
    /// Making an action, counted from 0.
    Action(usize),
}

/// What kept a rule from acting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Suppressed {
    /// Its file says `enabled = false`.
    Disabled,
    /// The user switched it off.
    SwitchedOff,
    /// It fired not long ago.
    Cooldown,
    /// It fired in this query already.
    OncePerQuery,
    /// It fired in this session already.
    OncePerSession,
}

impl fmt::Display for Suppressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "its file says `enabled = false`",
            Self::SwitchedOff => "the user switched it off",
            Self::Cooldown => "it fired within its cooldown",
            Self::OncePerQuery => "it fired in this query already",
            Self::OncePerSession => "it fired in this session already",
        })
    }
}
