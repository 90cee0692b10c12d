//! The result of evaluating a rule.

use std::fmt;

use dodona_proto::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decisions::Decisions;

/// The result of evaluating a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// The condition is true and no limit suppressed the rule.
    pub fired: bool,
    /// The decisions of its actions, in order. An action that fails does not affect the others.
    pub decisions: Decisions,
    /// The first failure. Boxed, because it is rare and outcomes are many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<EvalError>>,
    /// The limit that suppressed the rule although its condition is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<Suppressed>,
    /// A notification was dropped because the project's rules sent too many.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

impl Outcome {
    pub(crate) fn failed(error: EvalError) -> Self {
        Self {
            error: Some(Box::new(error)),
            ..Self::default()
        }
    }
}

impl Outcome {
    /// Removes all decisions except `deny` and `require_approval`. Only these apply to calls outside a
    /// query.
    pub(crate) fn keep_verdicts(&mut self) {
        let is_verdict = |decision: &&Decision| {
            matches!(
                decision,
                Decision::Deny { .. } | Decision::RequireApproval { .. }
            )
        };
        if self.decisions.iter().all(|decision| is_verdict(&decision)) {
            return;
        }
        let mut kept = Decisions::default();
        for decision in self.decisions.iter().filter(is_verdict) {
            kept.push(decision.clone());
        }
        self.fired &= !kept.is_empty();
        self.decisions = kept;
    }
}

/// A decision of a rule, with its texts rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    /// The tool does not run.
    Deny {
        /// The reason for the denial.
        message: String,
    },
    /// A person must agree first.
    RequireApproval {
        /// The question for the person.
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

/// The value of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Matched {
    /// The condition is false.
    No,
    /// The condition is true; the rule's own actions apply.
    Yes,
    /// The script returned actions, which replace those of the rule.
    Actions(Vec<Value>),
}

impl Matched {
    /// Whether the condition is true.
    pub fn holds(&self) -> bool {
        *self != Self::No
    }
}

/// Why an evaluation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvalError {
    /// The part that failed.
    pub stage: Stage,
    pub message: String,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stage {
            Stage::Condition => write!(f, "condition: {}", self.message),
            Stage::Action(index) => write!(f, "action {}: {}", index + 1, self.message),
        }
    }
}

/// A part of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Condition,
    /// Running an action; the index starts at 0.
    Action(usize),
}

/// Why a rule whose condition is true did not fire.
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
            Self::Disabled => "`enabled = false` in its file",
            Self::SwitchedOff => "disabled by the user",
            Self::Cooldown => "cooldown",
            Self::OncePerQuery => "already fired in this query",
            Self::OncePerSession => "already fired in this session",
        })
    }
}
