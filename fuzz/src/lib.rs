//! What the fuzz targets share: a host to evaluate against.
//!
//! # What it does not do
//!
//! It looks for panics, aborts, endless runs and answers that differ between two ways of asking. What
//! an answer should be, the tests of the crates know.

use std::sync::LazyLock;

use dodona_expr::Schema;
use dodona_proto::RULE_CONTEXT;
use serde_json::{Value, json};

/// What a rule may name.
pub static SCHEMA: LazyLock<Schema> =
    LazyLock::new(|| Schema::parse(RULE_CONTEXT).expect("the shape of a context is tested"));

/// A conversation in its third turn, with a bit of everything in it.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    SCHEMA.fill(&json!({
        "context": {
            "turn": {"number": 3, "token_usage": 0.41, "iteration_count": 2, "max_iterations": 30},
            "history": {
                "messages": [{"role": "user", "content": "Wie läuft die Anmeldung? 🦀"}],
                "tools": [
                    {"name": "vault_search", "arguments": {"query": "login", "limit": 5},
                     "result": "3 notes", "success": true, "timestamp": "2026-01-04T10:00:00Z"},
                    {"name": "code_search", "arguments": {}, "result": null, "success": false,
                     "timestamp": "2026-01-04T10:00:05Z"},
                ],
                "failures": {"code_search": 3},
                "total_tool_calls": 7,
            },
            "user": {"id": "alice", "settings": {"language": "en"}},
            "state": {"count": 2, "seen": ["a", "b"], "least": i64::MIN, "half": 0.5},
        },
        "settings": {"max_sources": 10},
    }))
});
