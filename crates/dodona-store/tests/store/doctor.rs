//! The examination of all databases.

use std::fs;

use dodona_store::DatabaseReport;
use rusqlite::Connection;

use crate::support::{FAMILY, Scratch, write_note};

#[tokio::test]
async fn every_database_is_reported_whether_in_use_or_only_found() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("plugins")).unwrap();
    let found = Connection::open(scratch.path("plugins/found.db")).unwrap();
    found
        .execute_batch("CREATE TABLE mine (id INTEGER)")
        .unwrap();
    found.close().unwrap();
    fs::write(scratch.path("plugins/readme.txt"), "not a database").unwrap();
    let used = scratch.notes().await;
    write_note(&used, "read while in use").await.unwrap();

    let reports = scratch.store.check().await;
    let report = |file: &str, version| DatabaseReport {
        file: file.to_owned(),
        version: Some(version),
        size_bytes: fs::metadata(scratch.path(file)).unwrap().len(),
        problems: Vec::new(),
    };
    assert_eq!(
        reports,
        [report("notes.db", 1), report("plugins/found.db", 0)]
    );
}

#[tokio::test]
async fn garbage_and_missing_files_are_reported_beside_sound_ones() {
    let scratch = Scratch::new();
    fs::write(scratch.path("garbage.db"), "x".repeat(5000)).unwrap();
    let missing = scratch.db("missing.db");
    missing.read(|_| Ok(())).await.unwrap();
    fs::remove_file(scratch.path("missing.db")).unwrap();
    scratch.db("never-used.db");
    scratch.notes().await;

    let reports = scratch.store.check().await;
    let summary: Vec<_> = reports
        .iter()
        .map(|report| (report.file.as_str(), report.version, report.problems.len()))
        .collect();
    assert_eq!(
        summary,
        [
            ("garbage.db", None, 1),
            ("missing.db", None, 1),
            ("notes.db", Some(1), 0)
        ]
    );
    assert!(reports[0].problems[0].contains("damaged"));
}

#[tokio::test]
async fn rows_that_point_to_nothing_are_reported() {
    let scratch = Scratch::new();
    scratch.db("family.db").migrate(FAMILY).await.unwrap();
    let careless = Connection::open(scratch.path("family.db")).unwrap();
    careless
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO child (parent) VALUES (404), (405)",
        )
        .unwrap();
    let reports = scratch.store.check().await;
    assert_eq!(
        reports[0].problems,
        ["2 rows of `child` point to rows of `parent` that do not exist"]
    );
}
