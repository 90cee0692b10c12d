//! Writes, one at a time.

use dodona_store::{ConstraintKind, DbError};

use crate::support::{Scratch, add_note, held_writer, note_bodies, options, queue, write_note};

#[tokio::test]
async fn a_write_is_seen_by_the_next_read_and_after_a_restart() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    assert_eq!(write_note(&db, "kept").await.unwrap(), 1);
    assert_eq!(note_bodies(&db).await, ["kept"]);

    let scratch = scratch.restart().await;
    assert_eq!(note_bodies(&scratch.db("notes.db")).await, ["kept"]);
}

#[tokio::test]
async fn a_write_that_fails_stores_nothing() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let failed: Result<(), DbError> = db
        .write(|tx| {
            add_note(tx, "half")?;
            Err(DbError::abort(std::fmt::Error))
        })
        .await;
    assert!(matches!(failed, Err(DbError::Abort { .. })));
    assert!(note_bodies(&db).await.is_empty());
}

#[tokio::test]
async fn a_panicking_write_stores_nothing_and_the_next_one_works() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let failed: Result<(), DbError> = db
        .write(|tx| {
            add_note(tx, "half")?;
            panic!("out of leaves")
        })
        .await;
    assert!(matches!(failed, Err(DbError::Panicked { message }) if message == "out of leaves"));
    write_note(&db, "whole").await.unwrap();
    assert_eq!(note_bodies(&db).await, ["whole"]);
}

#[tokio::test]
async fn a_broken_rule_is_named_by_its_kind() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "one").await.unwrap();
    let twice = db
        .write(|tx| tx.execute("INSERT INTO note (id, body) VALUES (1, 'two')", ()))
        .await;
    assert!(matches!(
        twice,
        Err(DbError::Constraint {
            kind: ConstraintKind::Unique,
            ..
        })
    ));
    let empty = db
        .write(|tx| tx.execute("INSERT INTO note (body) VALUES (?1)", (None::<String>,)))
        .await;
    assert!(matches!(
        empty,
        Err(DbError::Constraint {
            kind: ConstraintKind::NotNull,
            ..
        })
    ));
}

#[tokio::test]
async fn execute_tells_how_many_rows_changed() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "a").await.unwrap();
    write_note(&db, "b").await.unwrap();
    let changed = db
        .write(|tx| tx.execute("UPDATE note SET body = 'c'", ()))
        .await;
    assert_eq!(changed.unwrap(), 2);
}

#[tokio::test]
async fn a_queued_write_runs_although_its_caller_has_gone() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let (plug, first) = held_writer(&db).await;
    let gone = queue(&db, |tx| add_note(tx, "orphan")).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    plug.release();
    first.await.unwrap().unwrap();
    write_note(&db, "last").await.unwrap();
    assert_eq!(note_bodies(&db).await, ["first", "orphan", "last"]);
}

#[tokio::test]
async fn a_full_queue_makes_callers_wait_and_lets_them_withdraw() {
    let scratch = Scratch::with(dodona_store::StoreOptions {
        queue_length: 1,
        ..options()
    });
    let db = scratch.notes().await;
    let (plug, first) = held_writer(&db).await;
    let second = queue(&db, |tx| add_note(tx, "second")).await;
    let withdrawn = queue(&db, |tx| add_note(tx, "withdrawn")).await;
    let third = queue(&db, |tx| add_note(tx, "third")).await;
    withdrawn.abort();
    assert!(withdrawn.await.unwrap_err().is_cancelled());
    plug.release();
    for write in [first, second, third] {
        write.await.unwrap().unwrap();
    }
    assert_eq!(note_bodies(&db).await, ["first", "second", "third"]);
}
