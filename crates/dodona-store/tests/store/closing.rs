//! The end of a store.

use dodona_store::{DbError, MigrateError};

use crate::support::{NOTES, Scratch, add_note, held_writer, note_bodies, queue, write_note};

#[tokio::test]
async fn closing_serves_what_is_queued() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let (plug, first) = held_writer(&db).await;
    let second = queue(&db, |tx| add_note(tx, "second")).await;
    let closing = tokio::spawn({
        let store = scratch.store.clone();
        async move { store.close().await }
    });
    tokio::task::yield_now().await;
    plug.release();
    closing.await.unwrap();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    let scratch = scratch.restart().await;
    assert_eq!(
        note_bodies(&scratch.db("notes.db")).await,
        ["first", "second"]
    );
}

#[tokio::test]
async fn a_closed_database_is_one_file() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "in the log").await.unwrap();
    note_bodies(&db).await;
    assert!(scratch.path("notes.db-wal").exists());
    scratch.store.close().await;
    assert!(!scratch.path("notes.db-wal").exists());
    assert!(!scratch.path("notes.db-shm").exists());
}

#[tokio::test]
async fn a_closed_store_refuses_further_requests() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "last").await.unwrap();
    scratch.store.close().await;
    scratch.store.close().await;
    for db in [db, scratch.db("another.db")] {
        assert!(matches!(
            db.read(|_| Ok(())).await,
            Err(DbError::Closed { .. })
        ));
        assert!(matches!(
            db.write(|_| Ok(())).await,
            Err(DbError::Closed { .. })
        ));
        let migrated = db.migrate(NOTES).await;
        let closed = |error: &MigrateError| {
            matches!(
                error,
                MigrateError::Handle {
                    source: DbError::Closed { .. },
                    ..
                }
            )
        };
        assert!(migrated.is_err_and(|error| closed(&error)));
    }
    assert!(!scratch.path("another.db").exists());
}
