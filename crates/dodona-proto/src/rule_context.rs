//! The shape of what a rule sees, as data.
//!
//! Conditions, scripts, templates and the workbench that tries them out share it, and none of
//! their crates may know another; so it is a text here, which each reads in its own way.

/// The fields and functions of a rule's context, in the form that `dodona_expr::Schema` reads.
/// Tags are the names in [`RULE_TRIGGERS`].
pub const RULE_CONTEXT: &str = include_str!("rule_context.schema");

/// The moments at which rules are asked.
pub const RULE_TRIGGERS: [&str; 7] = [
    "on_query_start",
    "on_turn_start",
    "on_turn_end",
    "on_tool_call",
    "on_tool_complete",
    "on_tool_failure",
    "on_session_end",
];
