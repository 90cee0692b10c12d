//! Databases with bounds, for SQL of plugins from outside the program, and their removal.

use std::fs;
use std::time::Duration;

use dodona_store::{DatabaseLimits, Db, DbError, Durability, MigrateError, Migration};

use crate::support::{NOTES, Scratch, add_note, note_bodies, write_note};

const LIMITS: DatabaseLimits = DatabaseLimits {
    max_bytes: 256 << 10,
    statement_time: Duration::from_millis(200),
    max_value_bytes: 64 << 10,
};

async fn bounded(scratch: &Scratch) -> Db {
    let db = scratch
        .store
        .bounded_database("notes.db", Durability::Full, LIMITS);
    db.migrate(NOTES).await.unwrap();
    db
}

const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                       SELECT count(*) FROM n";

#[tokio::test]
async fn a_statement_without_end_is_stopped_and_the_database_goes_on() {
    let scratch = Scratch::new();
    let db = bounded(&scratch).await;
    write_note(&db, "kept").await.unwrap();
    let stopped = db.write(|tx| tx.query_one(ENDLESS, (), |row| row.get::<i64>(0)));
    assert!(matches!(stopped.await, Err(DbError::Timeout { .. })));
    let stopped = db.read(|tx| tx.query_one(ENDLESS, (), |row| row.get::<i64>(0)));
    assert!(matches!(stopped.await, Err(DbError::Timeout { .. })));
    // Each statement has the time for itself.
    let twice = db.write(|tx| {
        add_note(tx, "lost")?;
        tx.execute("INSERT INTO note (body) SELECT 'x' FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)", ())
    });
    assert!(twice.await.is_err());
    write_note(&db, "after").await.unwrap();
    assert_eq!(note_bodies(&db).await, ["kept", "after"]);
}

#[tokio::test]
async fn a_full_database_refuses_and_keeps_what_it_has() {
    let scratch = Scratch::new();
    let db = bounded(&scratch).await;
    write_note(&db, "kept").await.unwrap();
    let full = loop {
        let body = "x".repeat(16 << 10);
        let written =
            db.write(move |tx| tx.execute("INSERT INTO note (body) VALUES (?1)", (body,)));
        if let Err(error) = written.await {
            break error;
        }
    };
    assert!(matches!(full, DbError::Full { .. }), "{full}");
    let count =
        db.read(|tx| tx.query_one("SELECT count(*) FROM note", (), |row| row.get::<i64>(0)));
    assert!(count.await.unwrap() > 1);
    let large = db.read(|tx| tx.query_one("SELECT zeroblob(100000)", (), |_| Ok(())));
    assert!(matches!(large.await, Err(DbError::Statement { .. })));
}

#[tokio::test]
async fn a_failing_migration_names_its_line() {
    let scratch = Scratch::new();
    let first = &NOTES[0];
    for (sql, line) in [
        (
            "INSERT INTO note (body) VALUES ('a');\n-- A comment; with a semicolon.\n\nINSERT INTO nowhere VALUES (1);\n",
            4,
        ),
        ("SELECT 1;\nSELECT\n  nonsense\nFROM note;", 3),
        ("SELEC", 1),
        ("INSERT INTO note (body) VALUES ('ä; --');\n\nCOMMIT;", 3),
        (
            "INSERT INTO note (body) VALUES ('a');\n\n\nINSERT INTO note (body) VALUES (NULL);",
            4,
        ),
        (
            "CREATE TRIGGER t AFTER INSERT ON note BEGIN\n  SELECT 1;\nEND;\nDROP TABLE nowhere;",
            4,
        ),
    ] {
        let db = bounded(&scratch).await;
        let second = Migration {
            version: 2,
            name: "migrations/0002_second.sql".into(),
            sql: sql.into(),
        };
        let failed = db.migrate(vec![first.clone(), second]).await.unwrap_err();
        let MigrateError::Apply { line: found, .. } = &failed else {
            panic!("{failed}");
        };
        assert_eq!(*found, line, "{sql}");
        assert!(note_bodies(&db).await.is_empty());
    }
}

#[tokio::test]
async fn a_removed_database_is_gone_with_its_record_and_its_name_is_free() {
    let scratch = Scratch::new();
    let db = bounded(&scratch).await;
    write_note(&db, "gone").await.unwrap();
    scratch.store.remove("notes.db").await.unwrap();
    assert!(!scratch.path("notes.db").exists());
    assert!(matches!(
        write_note(&db, "late").await,
        Err(DbError::Closed { .. })
    ));
    let known = fs::read_to_string(scratch.path("databases.json")).unwrap();
    assert!(!known.contains("notes.db"), "{known}");
    assert!(scratch.store.check().await.is_empty());
    // The next use of the name creates an empty one, and no loss is reported.
    let db = bounded(&scratch).await;
    assert!(note_bodies(&db).await.is_empty());
    assert!(scratch.store.remove("../escape.db").await.is_err());
    scratch.store.remove("never-there.db").await.unwrap();
    let scratch = scratch.restart().await;
    assert!(note_bodies(&bounded(&scratch).await).await.is_empty());
}
