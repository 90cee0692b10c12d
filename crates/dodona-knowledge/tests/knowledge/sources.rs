use serde_json::json;

use crate::TestProject;

const RULES: &str = "\
/// Evaluates one rule against the context of a turn.
pub fn evaluate_rule(rule: &Rule, context: &Context) -> bool {
    rule.condition.holds(context)
}

pub struct Rule {
    condition: Condition,
}

fn caller() {
    evaluate_rule(&rule, &context);
}
";

#[tokio::test]
async fn questions_find_code_by_its_meaning_and_names_by_their_parts() {
    let project = TestProject::with(&[
        ("src/rules.rs", RULES),
        ("src/other.rs", "pub fn unrelated() {}\n"),
    ])
    .await;
    for query in [
        "how are rules evaluated?",
        "evaluate_rule",
        "evaluateRule",
        "evaluating rule",
    ] {
        assert_eq!(
            project.find(query).await.first().map(String::as_str),
            Some("src/rules.rs:1-4"),
            "{query}"
        );
    }
    assert!(project.find("zebra").await.is_empty());
}

#[tokio::test]
async fn definitions_and_references_are_exact() {
    let project = TestProject::with(&[("src/rules.rs", RULES)]).await;
    let found = project
        .call(
            "code.find_definition",
            json!({ "symbol": "rules::evaluate_rule" }),
        )
        .await
        .unwrap();
    let definition = &found["definitions"][0];
    assert_eq!(
        (&definition["path"], &definition["kind"]),
        (&json!("src/rules.rs"), &json!("function"))
    );
    let found = project
        .call("code.find_references", json!({ "symbol": "evaluate_rule" }))
        .await
        .unwrap();
    assert_eq!(
        found["references"],
        json!([{ "path": "src/rules.rs", "line": 11 }])
    );
    let map = project.call("code.repo_map", json!({})).await.unwrap();
    assert!(
        map["text"]
            .as_str()
            .unwrap()
            .contains("pub fn evaluate_rule"),
        "{map}"
    );
}

#[tokio::test]
async fn the_index_follows_the_files() {
    let project = TestProject::with(&[
        ("src/rules.rs", RULES),
        ("notes/a.md", "# Gardening\n\nTomatoes need water.\n"),
    ])
    .await;
    assert_eq!(
        project.index().await,
        json!({ "files": 2, "notes": 1, "changed": 2, "removed": 0, "commits": 0, "skipped": 0 })
    );
    assert_eq!(project.find("water the tomatoes").await, ["notes/a.md:1-3"]);
    project.write("notes/a.md", "# Gardening\n\nPumpkins need sun.\n");
    project.remove("src/rules.rs");
    assert_eq!(
        project.index().await,
        json!({ "files": 1, "notes": 1, "changed": 1, "removed": 1, "commits": 0, "skipped": 0 })
    );
    assert!(project.find("tomatoes").await.is_empty());
    assert!(project.find("evaluate rule").await.is_empty());
    assert_eq!(project.find("pumpkin").await, ["notes/a.md:1-3"]);
    assert_eq!(project.index().await["changed"], 0);
}

#[tokio::test]
async fn what_was_indexed_is_there_after_a_restart_and_sound() {
    let project = TestProject::with(&[("src/rules.rs", RULES)]).await;
    project.index().await;
    let project = project.restart().await;
    assert_eq!(project.index().await["changed"], 0);
    assert_eq!(
        project
            .find("evaluate rule")
            .await
            .first()
            .map(String::as_str),
        Some("src/rules.rs:1-4")
    );
    assert_eq!(
        project.call("search.status", json!({})).await.unwrap()["sound"],
        true
    );
}

#[tokio::test]
async fn a_citation_that_no_longer_stands_is_stale() {
    let project = TestProject::with(&[("src/rules.rs", RULES)]).await;
    let found = project
        .call("code.search", json!({ "query": "evaluate rule" }))
        .await
        .unwrap();
    let cited = json!({ "source": found["passages"][0]["source"] });
    assert_eq!(
        project.call("search.resolve", cited.clone()).await.unwrap()["stale"],
        false
    );
    project.write("src/rules.rs", &format!("// moved\n{RULES}"));
    assert_eq!(
        project.call("search.resolve", cited).await.unwrap()["stale"],
        true
    );
}

#[tokio::test]
async fn nothing_outside_of_the_project_is_read() {
    let project = TestProject::with(&[("a.md", "inside\n")]).await;
    std::fs::write(project.root().join("../secret.md"), "outside").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        project.root().join("../secret.md"),
        project.root().join("link.md"),
    )
    .unwrap();
    for path in [
        "../secret.md",
        "link.md",
        "/etc/hostname",
        "a.md\0",
        "x/../../secret.md",
        &"y".repeat(5000),
    ] {
        let refused = project.call("vault.read", json!({ "path": path })).await;
        assert!(refused.is_err(), "{path:?} was read");
        assert!(
            project
                .call("code.read", json!({ "path": path }))
                .await
                .is_err()
        );
    }
    assert!(
        project.find("outside").await.is_empty(),
        "a link was followed"
    );
    assert_eq!(
        project
            .call("vault.read", json!({ "path": "a.md" }))
            .await
            .unwrap()["text"],
        "inside"
    );
}

#[tokio::test]
async fn hostile_questions_are_answered_or_not_and_never_fail() {
    let project = TestProject::with(&[("a.md", "# Title\n\ntext\n")]).await;
    for query in [
        "",
        "\"",
        "AND OR NOT",
        "title:* ^ ~2 [a TO b]",
        "\0",
        "🦀",
        &"a ".repeat(50_000),
        "((((",
        "'; drop table",
    ] {
        project
            .call("search.query", json!({ "query": query }))
            .await
            .unwrap();
    }
}
