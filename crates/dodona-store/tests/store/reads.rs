//! Reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dodona_store::{DbError, StoreOptions};
use tokio::task;

use crate::support::{NOTES, Scratch, note_bodies, options, plug, write_note};

#[tokio::test]
async fn a_read_sees_one_state_of_the_database_from_beginning_to_end() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "before").await.unwrap();
    let (mut plug, hold) = plug();
    let reading = tokio::spawn({
        let db = db.clone();
        async move {
            db.read(|tx| {
                let count = "SELECT count(*) FROM note";
                let before: i64 = tx.query_one(count, (), |row| row.get(0))?;
                hold();
                let after: i64 = tx.query_one(count, (), |row| row.get(0))?;
                Ok((before, after))
            })
            .await
        }
    });
    plug.started().await;
    write_note(&db, "meanwhile").await.unwrap();
    plug.release();
    assert_eq!(reading.await.unwrap().unwrap(), (1, 1));
    assert_eq!(note_bodies(&db).await, ["before", "meanwhile"]);
}

#[tokio::test]
async fn a_read_cannot_write() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let tried = db
        .read(|tx| tx.execute("INSERT INTO note (body) VALUES ('x')", ()))
        .await;
    assert!(matches!(tried, Err(DbError::Statement { .. })));
    assert!(note_bodies(&db).await.is_empty());
}

#[tokio::test]
async fn a_panicking_read_leaves_its_thread_working() {
    let scratch = Scratch::with(StoreOptions {
        reader_threads: 1,
        ..options()
    });
    let db = scratch.notes().await;
    let panicked: Result<(), DbError> = db.read(|_| panic!("no oracle today")).await;
    assert!(matches!(panicked, Err(DbError::Panicked { .. })));
    assert!(note_bodies(&db).await.is_empty());
}

#[tokio::test]
async fn a_missing_row_is_an_error_only_where_one_is_needed() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let select = "SELECT body FROM note WHERE id = ?1";
    let optional = db
        .read(move |tx| tx.query_opt(select, (1,), |row| row.get::<String>(0)))
        .await;
    assert_eq!(optional.unwrap(), None);
    let needed = db
        .read(move |tx| tx.query_one(select, (1,), |row| row.get::<String>(0)))
        .await;
    assert!(matches!(needed, Err(DbError::NoRow)));
}

#[tokio::test]
async fn one_thread_with_one_connection_serves_several_databases() {
    let one = StoreOptions {
        reader_threads: 1,
        reader_connections: 1,
        ..options()
    };
    let scratch = Scratch::with(one);
    let (oak, elm) = (scratch.db("oak.db"), scratch.db("elm.db"));
    for db in [&oak, &elm] {
        db.migrate(NOTES).await.unwrap();
    }
    write_note(&oak, "oak").await.unwrap();
    write_note(&elm, "elm").await.unwrap();
    for _ in 0..3 {
        assert_eq!(note_bodies(&oak).await, ["oak"]);
        assert_eq!(note_bodies(&elm).await, ["elm"]);
    }
}

#[tokio::test]
async fn the_first_use_of_a_database_may_be_a_read() {
    let scratch = Scratch::new();
    let tables = scratch
        .db("new.db")
        .read(|tx| {
            tx.query_one("SELECT count(*) FROM sqlite_schema", (), |row| {
                row.get::<i64>(0)
            })
        })
        .await;
    assert_eq!(tables.unwrap(), 0);
}

#[tokio::test]
async fn a_read_whose_caller_has_gone_is_skipped() {
    let scratch = Scratch::with(StoreOptions {
        reader_threads: 1,
        ..options()
    });
    let db = scratch.notes().await;
    note_bodies(&db).await;
    let (mut plug, hold) = plug();
    let holding = tokio::spawn({
        let db = db.clone();
        async move {
            db.read(|_| {
                hold();
                Ok(())
            })
            .await
        }
    });
    plug.started().await;
    let ran = Arc::new(AtomicBool::new(false));
    let skipped = tokio::spawn({
        let (db, ran) = (db.clone(), Arc::clone(&ran));
        async move {
            db.read(move |_| {
                ran.store(true, Ordering::SeqCst);
                Ok(())
            })
            .await
        }
    });
    task::yield_now().await;
    skipped.abort();
    assert!(skipped.await.unwrap_err().is_cancelled());
    plug.release();
    holding.await.unwrap().unwrap();
    note_bodies(&db).await;
    assert!(!ran.load(Ordering::SeqCst));
}
