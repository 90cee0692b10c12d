//! Asking rules.
//!
//! [`evaluate`] asks one rule about one context and touches nothing: the live engine, the tests of
//! a rule and a backtest all come by here.

mod decisions;
mod evaluate;
mod limiter;
mod outcome;
mod places;
mod round;

pub use decisions::Decisions;
pub use evaluate::{act, evaluate, matches};
pub use limiter::Limiter;
pub(crate) use limiter::PastFiring;
pub use outcome::{Decision, EvalError, Matched, Outcome, Stage, Suppressed};
pub use round::{Answer, Round};
