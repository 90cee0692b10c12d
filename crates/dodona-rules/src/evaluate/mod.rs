//! Evaluating rules.
//!
//! [`TriggerEvaluation`] evaluates all rules of a trigger, [`evaluate`] a single one. Neither does I/O or
//! changes state, so that the engine, tests of rules, explain and backtest use the same code.

mod decisions;
mod index_set;
mod limiter;
mod outcome;
mod single_rule;
mod trigger_evaluation;

pub use decisions::Decisions;
pub use limiter::Limiter;
pub(crate) use limiter::PastFiring;
pub use outcome::{Decision, EvalError, Matched, Outcome, Stage, Suppressed};
pub use single_rule::{act, evaluate, matches};
pub use trigger_evaluation::{RuleResult, TriggerEvaluation};
