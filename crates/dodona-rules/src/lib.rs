//! The plugin `rules`: rules in TOML that react to what agents and tools do.
//!
//! A rule has a trigger, a condition and actions. [`format`](mod@format) parses a file, [`CompiledRule`] is
//! ready for evaluation, [`load`] merges the rules of the program, the user, plugins and a project into a
//! [`RuleSet`](load::RuleSet), and [`evaluate`] evaluates one for a [`RuleContext`].
//!
//! The running engine is `engine::RuleEngine`; start reading at `RuleEngine::evaluate`. The methods for
//! authors are in `analysis` (explain, backtest, tests, doctor) and `editor` (read and write rule files).
//!
//! ```
//! use dodona_rules::{Origin, RuleContext, Scope, evaluate, load};
//! use dodona_script::Engine;
//! use serde_json::json;
//!
//! let text = r#"
//!     [rule]
//!     id = "token-warning"
//!     trigger = "on_turn_start"
//!     [condition]
//!     expression = "context.turn.token_usage > 0.8"
//!     [action]
//!     type = "notify_self"
//!     message = "Token usage at {{ (context.turn.token_usage * 100) | int }}%"
//! "#;
//! let origin = Origin { scope: Scope::User, path: "rules/token-warning.toml".to_owned() };
//! let loaded = load::load_text(origin, text, &|_| Err("no scripts here".to_owned()));
//! let rule = loaded.rule.expect("it has no faults");
//!
//! let context = RuleContext::from_json(&json!({"turn": {"token_usage": 0.91}}), &json!({}))?;
//! let outcome = evaluate(&rule, &context, &Engine::new(1));
//! assert!(outcome.fired);
//! assert_eq!(outcome.decisions[0].message(), Some("Token usage at 91%"));
//! # Ok::<(), String>(())
//! ```
//!
//! # What it does not do
//!
//! Rules call neither the agent nor the hub. Decisions are returned as verdicts and effects, which the
//! caller that fired the hook point applies; only state is stored directly. A condition does no I/O.
//! Nothing that a rule reads is rendered as a template, parsed as a rule, or run.

mod analysis;
mod compile;
pub mod context;
pub mod draft;
mod editor;
mod engine;
mod evaluate;
pub mod explain;
pub mod format;
mod identity;

pub mod load;
pub mod log;
mod methods;
mod plugin;
mod problem;
mod reads;
pub mod replay;
pub mod schema;
pub mod settings;
mod testing;

/// The database of this crate and its newest schema version.
pub const SCHEMAS: &[(&str, usize)] = &[("plugins/rules/rules.db", log::MIGRATIONS.len())];

pub use compile::{CompiledCondition, CompiledRule, Origin, ScriptSource};
pub use context::{Facts, Occurrence, RuleContext};
pub use evaluate::{
    Decision, Decisions, EvalError, Limiter, Matched, Outcome, RuleResult, Stage, Suppressed,
    TriggerEvaluation, act, evaluate, matches,
};
pub use format::{Action, Rule, Trigger};
pub use identity::{NoRuleKey, RuleKey, STANDALONE, Scope};
pub use plugin::{RulesOptions, RulesPlugin};
pub use problem::{Problem, ProblemSeverity};
pub use reads::Reads;
pub use testing::{Tested, run_tests};
