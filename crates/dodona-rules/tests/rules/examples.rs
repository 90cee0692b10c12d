//! Every rule that we show: bundled ones, the worked examples, the ones of the docs.

use std::path::{Path, PathBuf};

use dodona_rules::load::{bundled, load_directory, load_text};
use dodona_rules::{CompiledRule, Origin, Scope, Trigger, run_tests};
use dodona_script::Engine;
use serde_json::Map;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn passes(rule: &CompiledRule) {
    let tested = run_tests(rule, &Map::new(), &Engine::new(1));
    assert!(
        tested.len() >= 2,
        "{} shows when it fires and when not",
        rule.key
    );
    let failed: Vec<_> = tested
        .iter()
        .filter(|test| test.failure.is_some())
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let expected: Vec<bool> = rule
        .rule
        .tests
        .iter()
        .map(|test| test.expect.fired)
        .collect();
    assert!(
        expected.contains(&true),
        "{} is never shown firing",
        rule.key
    );
}

#[test]
fn the_tests_of_every_bundled_rule_pass() {
    let rules: Vec<_> = bundled()
        .into_iter()
        .filter_map(|loaded| loaded.rule)
        .collect();
    let ids: Vec<&str> = rules.iter().map(|rule| rule.rule.id.as_str()).collect();
    let expected = [
        "context-limit-warning",
        "iteration-budget-warning",
        "large-result-hint",
        "query-start-log",
        "repeated-failure-warning",
        "token-budget-warning",
    ];
    assert_eq!(ids, expected);
    for rule in &rules {
        passes(rule);
    }
}

#[test]
fn twelve_examples_load_without_a_word_and_their_tests_pass() {
    let directory = repository().join("docs/examples/rules");
    let loaded = load_directory(&directory, &Scope::User);
    assert_eq!(loaded.len(), 12);
    let mut triggers = Vec::new();
    for one in &loaded {
        assert!(one.problems.is_empty(), "{:#?}", one.problems);
        let rule = one.rule.as_ref().unwrap();
        let file = Path::new(&rule.origin.path).file_stem().unwrap();
        assert_eq!(
            file.to_string_lossy(),
            rule.rule.id,
            "a file is named after its rule"
        );
        passes(rule);
        triggers.push(rule.rule.trigger);
    }
    for trigger in Trigger::ALL {
        assert!(triggers.contains(&trigger), "no example is asked {trigger}");
    }
}

#[test]
fn the_reference_lists_every_example() {
    let text = std::fs::read_to_string(repository().join("docs/reference/rules.md")).unwrap();
    for one in load_directory(&repository().join("docs/examples/rules"), &Scope::User) {
        let id = &one.rule.unwrap().rule.id;
        assert!(
            text.contains(&format!("(../examples/rules/{id}.toml)")),
            "{id}"
        );
    }
}

#[test]
fn rules_in_the_docs_are_rules() {
    let mut found = 0;
    for page in ["reference/rules.md", "how-to/first-rule.md"] {
        let text = std::fs::read_to_string(repository().join("docs").join(page)).unwrap();
        let fences = text.split("```toml\n").skip(1);
        let blocks = fences.map(|rest| rest.split("```").next().unwrap());
        for block in blocks.filter(|block| block.contains("[rule]")) {
            let origin = Origin {
                scope: Scope::User,
                path: page.to_owned(),
            };
            let loaded = load_text(origin, block, &|_| Err("no scripts".to_owned()));
            assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);
            let rule = loaded.rule.unwrap();
            let tested = run_tests(&rule, &Map::new(), &Engine::new(1));
            assert!(
                tested.iter().all(|test| test.failure.is_none()),
                "{tested:#?}"
            );
            found += 1;
        }
    }
    assert_eq!(found, 2);
}
