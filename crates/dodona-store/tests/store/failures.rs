//! A full disk, a locked file, a folder that cannot be written.

use std::error::Error;

use dodona_store::{Db, DbError, StoreOptions};
use rusqlite::Connection;

use crate::support::{
    NOTES, Scratch, add_note, held_writer, note_bodies, options, queue, write_note,
};

fn small() -> Scratch {
    Scratch::with(StoreOptions {
        max_database_bytes: Some(64 << 10),
        ..options()
    })
}

async fn write_too_much(db: &Db) -> Result<(), DbError> {
    let big = "leaf ".repeat(1 << 15);
    db.write(move |tx| add_note(tx, &big).map(drop)).await
}

#[tokio::test]
async fn a_full_database_says_so_and_works_again_with_less() {
    let scratch = small();
    let db = scratch.notes().await;
    write_note(&db, "before").await.unwrap();
    let full = write_too_much(&db).await.unwrap_err();
    assert!(
        matches!(&full, DbError::Full { file, .. } if file == "notes.db"),
        "{full:?}"
    );
    assert_eq!(note_bodies(&db).await, ["before"]);
    write_note(&db, "after").await.unwrap();
    assert_eq!(note_bodies(&db).await, ["before", "after"]);
}

#[tokio::test]
async fn writes_that_shared_a_transaction_lost_to_a_full_disk_all_fail() {
    let scratch = small();
    let db = scratch.notes().await;
    let (plug, first) = held_writer(&db).await;
    let big = "leaf ".repeat(1 << 15);
    let culprit = queue(&db, move |tx| add_note(tx, &big)).await;
    let later = queue(&db, |tx| add_note(tx, "later")).await;
    plug.release();
    assert!(matches!(first.await.unwrap(), Err(DbError::Full { .. })));
    assert!(matches!(culprit.await.unwrap(), Err(DbError::Full { .. })));
    // It had not begun, so it was not lost.
    later.await.unwrap().unwrap();
    assert_eq!(note_bodies(&db).await, ["later"]);
}

#[tokio::test]
async fn a_full_database_does_not_disturb_its_neighbour() {
    let scratch = small();
    let db = scratch.notes().await;
    let neighbour = scratch.db("neighbour.db");
    write_too_much(&db).await.unwrap_err();
    neighbour
        .write(|tx| tx.execute("CREATE TABLE fine (id INTEGER)", ()))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_database_locked_by_another_process_is_busy_until_it_is_released() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let other = Connection::open(scratch.path("notes.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = write_note(&db, "too early").await.unwrap_err();
    assert!(matches!(&busy, DbError::Busy { file, .. } if file == "notes.db"));
    assert!(note_bodies(&db).await.is_empty());
    other.execute_batch("ROLLBACK").unwrap();
    write_note(&db, "in time").await.unwrap();
    assert_eq!(note_bodies(&db).await, ["in time"]);
}

#[tokio::test]
async fn a_folder_in_the_place_of_a_database_cannot_be_opened() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("folder.db")).unwrap();
    let error = scratch.db("folder.db").write(|_| Ok(())).await.unwrap_err();
    assert!(matches!(error, DbError::Open { .. }), "{error:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_may_not_be_written_is_reported_as_read_only() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    scratch.db("locked/old.db").migrate(NOTES).await.unwrap();
    let scratch = scratch.restart().await;
    let folder = scratch.path("locked");
    fs::set_permissions(&folder, Permissions::from_mode(0o500)).unwrap();
    if fs::write(folder.join("probe"), "").is_ok() {
        // The superuser may write anywhere; the kinds of error are mapped in a test of their own.
        return;
    }
    for file in ["locked/new.db", "locked/old.db"] {
        let error = scratch.db(file).write(|_| Ok(())).await.unwrap_err();
        assert!(
            matches!(error, DbError::ReadOnly { .. }),
            "{file}: {error:?}"
        );
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn an_error_says_once_what_happened_and_leaves_the_cause_to_its_source() {
    let scratch = small();
    let db = scratch.notes().await;
    let full = write_too_much(&db).await.unwrap_err();
    let cause = full.source().unwrap().to_string();
    assert!(!full.to_string().contains(&cause), "{full}: {cause}");
    let unknown = db
        .read(|tx| tx.query("SELECT absent", (), |_| Ok(())))
        .await
        .unwrap_err();
    let cause = unknown.source().unwrap().to_string();
    assert!(cause.contains("no such column"), "{cause}");
    assert!(!unknown.to_string().contains(&cause), "{unknown}: {cause}");
}
