use serde_json::json;

use crate::TestProject;

async fn vault() -> TestProject {
    TestProject::with(&[
        ("index.md", "---\ntitle: Start here\ntags: [home]\n---\n\nSee [[auth/Login|the login]] and [[nowhere]].\n"),
        ("auth/Login.md", "# Login\n\nTokens last a day. #security/tokens\n\n## Refresh\n\nDropped, see [[index]].\n"),
        ("auth/deep/note.md", "Back to [login](../Login.md#refresh).\n"),
    ])
    .await
}

#[tokio::test]
async fn backlinks_know_aliases_headings_paths_and_case() {
    let vault = vault().await;
    let found = vault
        .call("vault.backlinks", json!({ "path": "auth/Login.md" }))
        .await
        .unwrap();
    let from: Vec<&str> = found["backlinks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link["path"].as_str().unwrap())
        .collect();
    assert_eq!(from, ["auth/deep/note.md", "index.md"]);
}

#[tokio::test]
async fn a_link_may_use_any_name_of_a_note() {
    let vault = TestProject::with(&[
        (
            "people/ada.md",
            "---\naliases: [Ada Lovelace, the Countess]\n---\n# Ada\n",
        ),
        (
            "index.md",
            "By [[the countess]] and [[Ada Lovelace|her]].\n",
        ),
    ])
    .await;
    let found = vault
        .call("vault.backlinks", json!({ "path": "people/ada.md" }))
        .await
        .unwrap();
    assert_eq!(found["backlinks"].as_array().unwrap().len(), 2);
    let graph = vault.call("vault.graph", json!({})).await.unwrap();
    assert_eq!(graph["unresolved"], json!([]));
}

#[tokio::test]
async fn a_link_is_followed_from_the_note_it_stands_in() {
    let vault = vault().await;
    for (from, target, leads_to) in [
        ("auth/deep/note.md", "../Login.md", json!("auth/Login.md")),
        ("index.md", "login", json!("auth/Login.md")),
        ("", "auth/login", json!("auth/Login.md")),
        ("index.md", "nowhere", json!(null)),
        ("index.md", "../../etc/passwd", json!(null)),
    ] {
        let params = json!({ "from": from, "target": target });
        let found = vault.call("vault.follow", params).await.unwrap();
        assert_eq!(found["path"], leads_to, "{target} in {from}");
    }
}

#[tokio::test]
async fn versions_tell_whether_a_note_or_the_list_of_notes_is_another() {
    let vault = vault().await;
    let versions = async || {
        let params = json!({ "paths": ["index.md", "none.md"] });
        vault.call("vault.versions", params).await.unwrap()
    };
    let write = async |path: &str, body: &str| {
        let params = json!({ "path": path, "body": body });
        vault.call("vault.write", params).await.unwrap();
    };
    let before = versions().await;
    assert!(before["versions"]["index.md"].is_string(), "{before}");
    assert!(before["versions"]["none.md"].is_null(), "{before}");
    assert_eq!(versions().await, before);
    write("index.md", "# Index\n\nanother text\n").await;
    let after = versions().await;
    assert_ne!(
        after["versions"]["index.md"],
        before["versions"]["index.md"]
    );
    write("new.md", "# New\n").await;
    let more = versions().await;
    assert_eq!(more["versions"], after["versions"]);
    assert_ne!(more["list"], after["list"]);
}

#[tokio::test]
async fn the_graph_lists_links_that_lead_nowhere() {
    let graph = vault().await.call("vault.graph", json!({})).await.unwrap();
    assert_eq!(
        graph["unresolved"],
        json!([{ "path": "index.md", "line": 6, "target": "nowhere" }])
    );
    assert_eq!(graph["edges"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn notes_are_listed_with_titles_and_tags() {
    let vault = vault().await;
    let notes = vault
        .call("vault.list", json!({ "folder": "auth" }))
        .await
        .unwrap();
    assert_eq!(
        notes["notes"][0],
        json!({ "path": "auth/Login.md", "title": "Login" })
    );
    assert_eq!(notes["notes"].as_array().unwrap().len(), 2);
    let tags = vault.call("vault.tags", json!({})).await.unwrap();
    let names: Vec<&str> = tags["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["tag"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["home", "security/tokens"]);
}

#[tokio::test]
async fn a_section_is_found_by_its_heading() {
    let found = vault()
        .await
        .call("vault.search", json!({ "query": "refresh" }))
        .await
        .unwrap();
    let source = &found["passages"][0]["source"];
    assert_eq!(
        (&source["path"], &source["title"]),
        (&json!("auth/Login.md"), &json!("Refresh"))
    );
}
