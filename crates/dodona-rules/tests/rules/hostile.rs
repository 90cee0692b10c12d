//! Files that nobody meant to write.

use dodona_rules::load::load_text;
use dodona_rules::{Origin, RuleContext, Scope, evaluate};
use dodona_script::Engine;
use dodona_testkit::Chance;
use serde_json::json;

const GOOD: &str = include_str!("../../../../rules/token-budget-warning.toml");

/// Pieces that break files in different ways.
const PIECES: [&str; 12] = [
    "[rule]",
    "\"",
    "\"\"\"",
    "=",
    "{{",
    "}}",
    "{% for x in context.history.tools %}",
    "\u{0}",
    "é",
    "1e999",
    "[[actions]]",
    "\n",
];

#[test]
fn a_text_that_was_cut_and_mixed_up_is_a_rule_or_has_an_error_and_never_panics() {
    let seed = Chance::seed();
    let mut chance = Chance::from_seed(seed);
    let mut below = |end: usize| {
        let end = u64::try_from(end).unwrap();
        usize::try_from(chance.below(end)).unwrap()
    };
    let (scripts, mut rules) = (Engine::new(1), 0);
    let context = RuleContext::from_json(&json!({}), &json!({})).unwrap();
    for _ in 0..2_000 {
        let mut text = GOOD.to_owned();
        for _ in 0..=below(3) {
            let from = text.floor_char_boundary(below(text.len() + 1));
            let to = text.floor_char_boundary((from + below(20)).min(text.len()));
            let piece = PIECES[below(PIECES.len())];
            text.replace_range(from..to.max(from), piece);
        }
        let origin = Origin {
            scope: Scope::Project,
            path: "a.toml".to_owned(),
        };
        let loaded = load_text(origin, &text, &|_| Err("no scripts".to_owned()));
        let has_error = loaded.problems.iter().any(|problem| problem.is_error());
        assert_eq!(loaded.rule.is_none(), has_error, "seed {seed}\n{text}");
        for problem in &loaded.problems {
            assert!(!problem.to_string().is_empty() && problem.excerpt().is_some());
        }
        if let Some(rule) = loaded.rule {
            rules += 1;
            evaluate(&rule, &context, &scripts);
        }
    }
    assert!(rules > 0, "seed {seed}: some survive");
}
