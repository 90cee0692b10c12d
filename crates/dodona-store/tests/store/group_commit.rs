//! Writes that share a commit.

use dodona_store::{ConstraintKind, Db, DbError, StoreOptions, Tx};

use crate::support::{
    FAMILY, Scratch, add_note, held_writer, note_bodies, options, plug, queue, write_note,
};

fn orphan(tx: &Tx<'_>) -> Result<u64, DbError> {
    tx.execute("INSERT INTO child (parent) VALUES (404)", ())
}

fn parent(tx: &Tx<'_>) -> Result<u64, DbError> {
    tx.execute("INSERT INTO parent DEFAULT VALUES", ())
}

async fn parents(db: &Db) -> i64 {
    db.read(|tx| tx.query_one("SELECT count(*) FROM parent", (), |row| row.get(0)))
        .await
        .unwrap()
}

fn is_foreign_key(error: &DbError) -> bool {
    matches!(
        error,
        DbError::Constraint {
            kind: ConstraintKind::ForeignKey,
            ..
        }
    )
}

fn is_refused_commit(result: &Result<u64, DbError>) -> bool {
    matches!(result, Err(DbError::Commit { source: Some(source), .. }) if is_foreign_key(source))
}

#[tokio::test]
async fn a_failing_write_undoes_only_itself() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let (plug, first) = held_writer(&db).await;
    let failing = queue(&db, |tx| {
        add_note(tx, "undone")?;
        Err::<(), _>(DbError::NoRow)
    })
    .await;
    let panicking = queue(&db, |tx| {
        add_note(tx, "undone as well")?;
        panic!("one of a group")
    })
    .await;
    let last = queue(&db, |tx| add_note(tx, "last")).await;
    plug.release();

    first.await.unwrap().unwrap();
    assert!(matches!(failing.await.unwrap(), Err(DbError::NoRow)));
    let panicked: Result<(), DbError> = panicking.await.unwrap();
    assert!(matches!(panicked, Err(DbError::Panicked { .. })));
    last.await.unwrap().unwrap();
    assert_eq!(note_bodies(&db).await, ["first", "last"]);
}

#[tokio::test]
async fn a_failing_first_write_leaves_those_behind_it_alone() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let (mut plug, hold) = plug();
    let failing = queue(&db, |tx| {
        hold();
        add_note(tx, "undone")?;
        Err::<(), _>(DbError::NoRow)
    })
    .await;
    plug.started().await;
    let second = queue(&db, |tx| add_note(tx, "second")).await;
    plug.release();
    assert!(matches!(failing.await.unwrap(), Err(DbError::NoRow)));
    second.await.unwrap().unwrap();
    assert_eq!(note_bodies(&db).await, ["second"]);
}

#[tokio::test]
async fn a_later_write_of_a_group_sees_the_earlier_ones() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let (plug, first) = held_writer(&db).await;
    let count = queue(&db, |tx| {
        tx.query_one("SELECT count(*) FROM note", (), |row| row.get::<i64>(0))
    })
    .await;
    plug.release();
    first.await.unwrap().unwrap();
    assert_eq!(count.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn no_write_is_acknowledged_before_the_commit() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    // The first read of a database waits for the writer to open it, which will be held below.
    assert!(note_bodies(&db).await.is_empty());
    let (outer, first) = held_writer(&db).await;
    let (mut inner, hold) = plug();
    let second = queue(&db, move |tx| {
        hold();
        add_note(tx, "second")
    })
    .await;
    outer.release();
    inner.started().await;
    // The first has run, but what it wrote is not stored yet.
    assert!(!first.is_finished());
    assert!(note_bodies(&db).await.is_empty());
    inner.release();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(note_bodies(&db).await, ["first", "second"]);
}

#[tokio::test]
async fn a_refused_commit_fails_every_write_of_its_group_and_no_later_one() {
    let scratch = Scratch::new();
    let db = scratch.db("family.db");
    db.migrate(FAMILY).await.unwrap();
    let (mut plug, hold) = plug();
    let first = queue(&db, |tx| {
        hold();
        parent(tx)
    })
    .await;
    plug.started().await;
    let culprit = queue(&db, orphan).await;
    let failing = queue(&db, |_| Err::<(), _>(DbError::NoRow)).await;
    let last = queue(&db, parent).await;
    plug.release();
    for write in [first, culprit, last] {
        assert!(is_refused_commit(&write.await.unwrap()));
    }
    // A write that had failed by itself is told its own error.
    assert!(matches!(failing.await.unwrap(), Err(DbError::NoRow)));
    assert_eq!(parents(&db).await, 0);
    db.write(parent).await.unwrap();
    assert_eq!(parents(&db).await, 1);
}

#[tokio::test]
async fn a_group_is_no_larger_than_asked_for() {
    let scratch = Scratch::with(StoreOptions {
        group_writes: 1,
        ..options()
    });
    let db = scratch.db("family.db");
    db.migrate(FAMILY).await.unwrap();
    let (mut plug, hold) = plug();
    let first = queue(&db, |tx| {
        hold();
        parent(tx)
    })
    .await;
    plug.started().await;
    let culprit = queue(&db, orphan).await;
    let last = queue(&db, parent).await;
    plug.release();
    first.await.unwrap().unwrap();
    assert!(is_refused_commit(&culprit.await.unwrap()));
    last.await.unwrap().unwrap();
    assert_eq!(parents(&db).await, 2);
}

#[tokio::test]
async fn a_transaction_undone_by_the_engine_fails_its_group_even_if_the_error_is_ignored() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "old").await.unwrap();
    let (plug, first) = held_writer(&db).await;
    let hiding = queue(&db, |tx| {
        let undo_all = "INSERT OR ROLLBACK INTO note (id, body) VALUES (1, 'again')";
        assert!(tx.execute(undo_all, ()).is_err());
        add_note(tx, "outside any transaction")
    })
    .await;
    plug.release();
    let failed = |result| matches!(result, Err(DbError::Commit { source: None, .. }));
    assert!(failed(first.await.unwrap()));
    assert!(failed(hiding.await.unwrap()));
    assert_eq!(note_bodies(&db).await, ["old"]);
}

#[tokio::test]
async fn a_write_ahead_tells_what_it_found_before_it_is_stored() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let (body, commit) = db
        .write_ahead(|tx| {
            add_note(tx, "ahead")?;
            tx.query_one("SELECT body FROM note", (), |row| row.get::<String>(0))
        })
        .await
        .unwrap();
    assert_eq!(body, "ahead");
    commit.done().await.unwrap();
    assert_eq!(note_bodies(&db).await, ["ahead"]);
    // Nobody has to wait for it.
    drop(db.write_ahead(|tx| add_note(tx, "unseen")).await.unwrap());
    write_note(&db, "after").await.unwrap();
    assert_eq!(note_bodies(&db).await, ["ahead", "unseen", "after"]);
}

#[tokio::test]
async fn a_write_ahead_that_fails_says_why_and_when() {
    let scratch = Scratch::new();
    let db = scratch.db("family.db");
    db.migrate(FAMILY).await.unwrap();
    let failed = db.write_ahead(|_| Err::<(), _>(DbError::NoRow)).await;
    assert!(matches!(failed.map(drop), Err(DbError::NoRow)));
    let panicked = db.write_ahead(|_| -> Result<(), DbError> { panic!("early") });
    let panicked = panicked.await.map(drop);
    assert!(matches!(panicked, Err(DbError::Panicked { .. })));
    let (_, commit) = db.write_ahead(orphan).await.unwrap();
    assert!(is_refused_commit(&commit.done().await.map(|()| 0)));
    db.write(parent).await.unwrap();
    assert_eq!(parents(&db).await, 1);
}
