//! A vault of five thousand notes. Times are printed, not judged.

use std::time::Instant;

use serde_json::json;

use crate::TestProject;

const NOTES: usize = 5_000;

fn path(n: usize) -> String {
    format!("part{}/topic{}/note {n}.md", n % 10, n % 100)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_notes_are_listed_searched_linked_and_moved() {
    let project = TestProject::with(&[]).await;
    for n in 0..NOTES {
        let (near, far) = ((n + 1) % NOTES, (n * 7 + 3) % NOTES);
        let hub = if n % 10 == 7 {
            " Back to [hub](../../hub.md)."
        } else {
            ""
        };
        let text = format!(
            "---\ntags: [part{}]\n---\n# Note {n}\n\nAbout subject{n}, see [[note {near}]] and [[{}|far]].{hub}\n",
            n % 10,
            path(far).trim_end_matches(".md"),
        );
        project.write(&path(n), &text);
    }
    project.write("hub.md", "# Hub\n\nEverything comes here.\n");
    let mut begun = Instant::now();
    let mut lap = |what: &str| {
        println!("{what:<12} {:>8.1} ms", begun.elapsed().as_secs_f64() * 1e3);
        begun = Instant::now();
    };
    project.index().await;
    lap("first look");
    project.index().await;
    lap("next look");
    let listed = project.call("vault.list", json!({})).await.unwrap();
    lap("list");
    assert_eq!(listed["notes"].as_array().unwrap().len(), NOTES + 1);
    let found = project
        .call("vault.search", json!({ "query": "subject4321" }))
        .await
        .unwrap();
    lap("search");
    assert_eq!(found["passages"][0]["source"]["path"], path(4321));
    let links = project
        .call("vault.backlinks", json!({ "path": path(42) }))
        .await
        .unwrap();
    lap("backlinks");
    assert_eq!(links["backlinks"].as_array().unwrap().len(), 2);
    let params = json!({ "old_path": path(42), "new_path": "archive/The answer.md" });
    let moved = project.call("vault.move", params).await.unwrap();
    lap("move");
    assert_eq!(moved["notes"].as_array().unwrap().len(), 4);
    let written = json!({ "path": "archive/The answer.md", "body": "# Answer\n" });
    project.call("vault.write", written).await.unwrap();
    lap("write");
    // Many notes link to this one.
    let params = json!({ "old_path": "hub.md", "new_path": "deep/down/centre.md" });
    let moved = project.call("vault.move", params).await.unwrap();
    lap("move, 500");
    assert_eq!(moved["notes"].as_array().unwrap().len(), NOTES / 10 + 2);
    let graph = project.call("vault.graph", json!({})).await.unwrap();
    lap("graph");
    assert_eq!(graph["unresolved"], json!([]));
    project
        .call("vault.undo", json!({ "change": moved["change"] }))
        .await
        .unwrap();
    lap("undo, 500");
    assert!(project.read(&path(7)).contains("[hub](../../hub.md)"));
}
