//! What SQL may not do, and what the guards must not break.

use dodona_store::{DbError, Migration};

use crate::support::{Scratch, add_note, note_bodies, write_note};

const SEARCHABLE: &[Migration] = &[Migration::new(
    1,
    "searchable pages",
    "CREATE TABLE page (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
     CREATE VIRTUAL TABLE page_text USING fts5 (body, content = 'page', content_rowid = 'id');
     CREATE TRIGGER page_added AFTER INSERT ON page BEGIN
         INSERT INTO page_text (rowid, body) VALUES (new.id, new.body);
     END;
     CREATE TRIGGER page_removed AFTER DELETE ON page BEGIN
         INSERT INTO page_text (page_text, rowid, body) VALUES ('delete', old.id, old.body);
     END",
)];

#[tokio::test]
async fn a_write_cannot_end_its_transaction_or_reach_beyond_its_database() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let outside = scratch.path("outside.db");
    let attach = format!("ATTACH '{}' AS outside", outside.display());
    for sql in [
        "COMMIT",
        "ROLLBACK",
        "BEGIN IMMEDIATE",
        "/* hidden */ COMMIT",
        "SAVEPOINT mine",
        "RELEASE dodona_write",
        "ROLLBACK TO dodona_write",
        "PRAGMA foreign_keys = OFF",
        "PRAGMA journal_mode = DELETE",
        "DETACH main",
        attach.as_str(),
    ] {
        let text = sql.to_owned();
        let tried = db
            .write(move |tx| {
                add_note(tx, "undone")?;
                tx.execute(&text, ())
            })
            .await;
        assert!(matches!(tried, Err(DbError::Statement { .. })), "{sql}");
    }
    assert!(note_bodies(&db).await.is_empty());
    assert!(!outside.exists());
    write_note(&db, "still works").await.unwrap();
}

#[tokio::test]
async fn foreign_keys_are_enforced() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    db.write(|tx| {
        tx.execute(
            "CREATE TABLE tag (note INTEGER NOT NULL REFERENCES note (id))",
            (),
        )
    })
    .await
    .unwrap();
    let dangling = db
        .write(|tx| tx.execute("INSERT INTO tag VALUES (7)", ()))
        .await;
    assert!(matches!(dangling, Err(DbError::Constraint { .. })));
}

#[tokio::test]
async fn a_text_in_double_quotes_is_a_misspelt_column() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let tried = db
        .write(|tx| tx.execute("INSERT INTO note (body) VALUES (\"x\")", ()))
        .await;
    assert!(matches!(tried, Err(DbError::Statement { .. })));
}

#[tokio::test]
async fn full_text_search_kept_up_to_date_by_triggers_works() {
    let scratch = Scratch::new();
    let db = scratch.db("pages.db");
    db.migrate(SEARCHABLE).await.unwrap();
    db.write(|tx| {
        tx.execute(
            "INSERT INTO page (body) VALUES ('the oak leaves rustle')",
            (),
        )?;
        tx.execute("INSERT INTO page (body) VALUES ('the sea is silent')", ())?;
        tx.execute("DELETE FROM page WHERE id = 2", ())
    })
    .await
    .unwrap();
    let find = |word: &'static str| {
        let db = db.clone();
        async move {
            let sql = "SELECT rowid FROM page_text WHERE page_text MATCH ?1";
            db.read(move |tx| tx.query(sql, (word,), |row| row.get::<i64>(0)))
                .await
                .unwrap()
        }
    };
    assert_eq!(find("rustle").await, [1]);
    assert!(find("sea").await.is_empty());
}
