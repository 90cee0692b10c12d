//! Files that are damaged, or were never databases.

use std::fs::{self, OpenOptions};

use dodona_store::{Db, DbError, MigrateError};

use crate::support::{NOTES, Scratch, note_bodies, write_note};

fn assert_names_file_and_remedy(error: &DbError, file: &str) {
    assert!(matches!(error, DbError::Corrupt { .. }), "{error:?}");
    let text = error.to_string();
    for part in [file, "dodona doctor"] {
        assert!(text.contains(part), "{text}");
    }
}

async fn assert_unharmed(scratch: &Scratch) {
    let other = scratch.notes().await;
    write_note(&other, "fine").await.unwrap();
    assert_eq!(note_bodies(&other).await, ["fine"]);
}

#[tokio::test]
async fn a_file_of_garbage_fails_its_owner_alone() {
    let scratch = Scratch::new();
    let garbage = "neither oak nor leaf ".repeat(500);
    fs::write(scratch.path("garbage.db"), &garbage).unwrap();
    let db = scratch.db("garbage.db");

    let read = db.read(|_| Ok(())).await.unwrap_err();
    assert_names_file_and_remedy(&read, "garbage.db");
    let write = db.write(|_| Ok(())).await.unwrap_err();
    assert_names_file_and_remedy(&write, "garbage.db");
    let MigrateError::Inspect { source, .. } = db.migrate(NOTES).await.unwrap_err() else {
        panic!("a file of garbage was inspected");
    };
    assert_names_file_and_remedy(&source, "garbage.db");

    assert_unharmed(&scratch).await;
    scratch.store.close().await;
    assert_eq!(
        fs::read_to_string(scratch.path("garbage.db")).unwrap(),
        garbage
    );
}

/// A database of many pages of which the second half is missing.
async fn truncated(scratch: Scratch) -> Scratch {
    let db = scratch.db("torn.db");
    db.migrate(NOTES).await.unwrap();
    db.write(|tx| {
        let body = "leaf ".repeat(1000);
        for _ in 0..100 {
            tx.execute("INSERT INTO note (body) VALUES (?1)", (&body,))?;
        }
        Ok(())
    })
    .await
    .unwrap();
    let scratch = scratch.restart().await;
    let file = OpenOptions::new()
        .write(true)
        .open(scratch.path("torn.db"))
        .unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    scratch
}

async fn read_everything(db: &Db) -> Result<i64, DbError> {
    let sum = "SELECT sum(length(body)) FROM note";
    db.read(move |tx| tx.query_one(sum, (), |row| row.get(0)))
        .await
}

#[tokio::test]
async fn a_truncated_file_fails_its_owner_alone() {
    let scratch = truncated(Scratch::new()).await;
    let db = scratch.db("torn.db");
    let error = read_everything(&db).await.unwrap_err();
    assert_names_file_and_remedy(&error, "torn.db");
    assert_unharmed(&scratch).await;
}

#[tokio::test]
async fn the_doctor_tells_which_file_is_torn() {
    let scratch = truncated(Scratch::new()).await;
    scratch.notes().await;
    let reports = scratch.store.check().await;
    let [sound, torn] = reports.as_slice() else {
        panic!("{reports:?}")
    };
    assert_eq!((sound.file.as_str(), sound.problems.len()), ("notes.db", 0));
    assert_eq!(torn.file, "torn.db");
    assert!(!torn.problems.is_empty());
}
