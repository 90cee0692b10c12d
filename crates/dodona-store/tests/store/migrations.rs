//! Migrations and the copies made before them.

use std::fs;

use dodona_store::{Db, DbError, MigrateError, Migration};
use rusqlite::Connection;

use crate::support::{NOTES, Scratch, note_bodies, write_note};

const FIRST: Migration = Migration::new(
    1,
    "notes",
    "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",
);
const SECOND: Migration = Migration::new(
    2,
    "stars",
    "ALTER TABLE note ADD COLUMN stars INTEGER NOT NULL DEFAULT 0",
);
const BOTH: &[Migration] = &[FIRST, SECOND];

async fn version(db: &Db) -> u32 {
    let newest = "SELECT max(version) FROM dodona_migrations";
    db.read(move |tx| tx.query_one(newest, (), |row| row.get(0)))
        .await
        .unwrap()
}

fn backups(scratch: &Scratch) -> Vec<String> {
    let names = fs::read_dir(scratch.path("")).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name.contains(".db.before"));
    names.sort();
    names
}

#[tokio::test]
async fn only_pending_migrations_are_applied() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "old").await.unwrap();
    for _ in 0..2 {
        db.migrate(BOTH).await.unwrap();
        assert_eq!(version(&db).await, 2);
    }
    assert_eq!(note_bodies(&db).await, ["old"]);
}

#[tokio::test]
async fn migrations_may_be_made_at_run_time() {
    let scratch = Scratch::new();
    let db = scratch.db("made.db");
    let sql = format!("CREATE TABLE {} (id INTEGER)", "made");
    let made = Migration {
        version: 1,
        name: "made".into(),
        sql: sql.into(),
    };
    db.migrate(vec![made]).await.unwrap();
    assert_eq!(version(&db).await, 1);
}

#[tokio::test]
async fn versions_must_count_up_from_one() {
    let scratch = Scratch::new();
    let db = scratch.db("odd.db");
    let refused = db.migrate(vec![FIRST, FIRST]).await;
    assert!(matches!(
        refused,
        Err(MigrateError::Numbering {
            expected: 2,
            found: 1,
            ..
        })
    ));
    let refused = db.migrate(vec![SECOND]).await;
    assert!(matches!(
        refused,
        Err(MigrateError::Numbering {
            expected: 1,
            found: 2,
            ..
        })
    ));
    assert!(!scratch.path("odd.db").exists());
}

#[tokio::test]
async fn a_migration_changed_after_it_was_applied_is_named() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let edited = Migration {
        sql: "CREATE TABLE note (id INTEGER)".into(),
        ..FIRST
    };
    let refused = db.migrate(vec![edited, SECOND]).await.unwrap_err();
    assert!(matches!(&refused, MigrateError::Changed { version: 1, name, .. } if name == "notes"));
    assert!(
        refused
            .to_string()
            .contains("migration 1 (`notes`) of `notes.db`")
    );
    assert_eq!(version(&db).await, 1);
}

#[tokio::test]
async fn a_gap_in_the_record_is_reported() {
    let scratch = Scratch::new();
    let db = scratch.db("notes.db");
    db.migrate(BOTH).await.unwrap();
    db.write(|tx| tx.execute("DELETE FROM dodona_migrations WHERE version = 1", ()))
        .await
        .unwrap();
    let refused = db.migrate(BOTH).await;
    assert!(matches!(refused, Err(MigrateError::Gap { version: 1, .. })));
}

#[tokio::test]
async fn a_newer_database_is_refused_and_not_one_byte_of_it_changes() {
    let scratch = Scratch::new();
    scratch.db("notes.db").migrate(BOTH).await.unwrap();
    let scratch = scratch.restart().await;
    let before = fs::read(scratch.path("notes.db")).unwrap();

    let refused = scratch.db("notes.db").migrate(NOTES).await.unwrap_err();
    assert!(matches!(
        refused,
        MigrateError::Newer {
            found: 2,
            known: 1,
            ..
        }
    ));
    let text = refused.to_string();
    assert!(
        text.contains("version 2") && text.contains("version 1"),
        "{text}"
    );
    scratch.store.close().await;
    assert_eq!(fs::read(scratch.path("notes.db")).unwrap(), before);
    assert!(backups(&scratch).is_empty());
}

#[tokio::test]
async fn a_newer_database_that_had_crashed_keeps_its_log_too() {
    let origin = Scratch::new();
    let db = origin.db("notes.db");
    db.migrate(BOTH).await.unwrap();
    write_note(&db, "only in the log").await.unwrap();
    // A copy made while the database is open is what a crash would have left.
    let scratch = Scratch::new();
    for file in ["notes.db", "notes.db-wal"] {
        fs::copy(origin.path(file), scratch.path(file)).unwrap();
    }
    let before = ["notes.db", "notes.db-wal"].map(|file| fs::read(scratch.path(file)).unwrap());
    assert!(!before[1].is_empty());

    let refused = scratch.db("notes.db").migrate(NOTES).await;
    assert!(matches!(refused, Err(MigrateError::Newer { found: 2, .. })));
    scratch.store.close().await;
    let after = ["notes.db", "notes.db-wal"].map(|file| fs::read(scratch.path(file)).unwrap());
    assert_eq!(after, before);
}

/// The switch to the log is itself a transaction of the older kind; a process killed in it leaves
/// a file that cannot be read before something is undone.
#[tokio::test]
async fn a_database_killed_before_it_had_a_log_is_undone_and_migrated() {
    let scratch = Scratch::new();
    let killed = Connection::open(scratch.path("killed.db")).unwrap();
    killed
        .execute_batch(
            "CREATE TABLE early (body); INSERT INTO early VALUES ('kept');
             PRAGMA cache_size = 1;
             BEGIN; INSERT INTO early SELECT zeroblob(100000) FROM early, (VALUES (1), (2), (3))",
        )
        .unwrap();
    // A copy taken now is what a killed process leaves.
    for (from, to) in [
        ("killed.db", "notes.db"),
        ("killed.db-journal", "notes.db-journal"),
    ] {
        fs::copy(scratch.path(from), scratch.path(to)).unwrap();
    }
    let db = scratch.notes().await;
    let kept = db
        .read(|tx| tx.query("SELECT body FROM early", (), |row| row.get::<String>(0)))
        .await;
    assert_eq!(kept.unwrap(), ["kept"]);
}

#[tokio::test]
async fn a_failing_migration_leaves_the_schema_and_the_data_of_before() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "old").await.unwrap();
    let third = Migration::new(3, "broken", "DELETE FROM note; SELECT nonsense");
    let failed = db.migrate(vec![FIRST, SECOND, third]).await.unwrap_err();
    let MigrateError::Apply {
        version: 3,
        name,
        source,
        ..
    } = failed
    else {
        panic!("{failed}")
    };
    assert_eq!(name, "broken");
    assert!(matches!(source, DbError::Statement { .. }));
    assert_eq!(version(&db).await, 1);
    assert_eq!(note_bodies(&db).await, ["old"]);
    db.migrate(BOTH).await.unwrap();
    assert_eq!(version(&db).await, 2);
}

#[tokio::test]
async fn a_migration_cannot_commit_half_of_itself() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    let sly = Migration::new(2, "sly", "DROP TABLE note; COMMIT");
    let failed = db.migrate(vec![FIRST, sly]).await;
    assert!(matches!(
        failed,
        Err(MigrateError::Apply { version: 2, .. })
    ));
    assert!(note_bodies(&db).await.is_empty());
}

#[tokio::test]
async fn a_table_can_be_rebuilt_without_losing_what_points_to_it() {
    let scratch = Scratch::new();
    let db = scratch.db("rebuilt.db");
    let first = Migration::new(
        1,
        "trees",
        "CREATE TABLE tree (id INTEGER PRIMARY KEY);
         CREATE TABLE leaf (tree INTEGER NOT NULL REFERENCES tree (id) ON DELETE CASCADE);
         INSERT INTO tree VALUES (1);
         INSERT INTO leaf VALUES (1)",
    );
    let rebuild = Migration::new(
        2,
        "tall trees",
        "CREATE TABLE taller (id INTEGER PRIMARY KEY, height REAL);
         INSERT INTO taller (id) SELECT id FROM tree;
         DROP TABLE tree;
         ALTER TABLE taller RENAME TO tree",
    );
    let careless = Migration::new(3, "felled", "DELETE FROM tree");
    db.migrate(vec![first.clone(), rebuild.clone()])
        .await
        .unwrap();
    let leaves = "SELECT count(*) FROM leaf JOIN tree ON tree.id = leaf.tree";
    let count = |sql| db.read(move |tx| tx.query_one(sql, (), |row| row.get::<i64>(0)));
    assert_eq!(count(leaves).await.unwrap(), 1);

    let failed = db.migrate(vec![first, rebuild, careless]).await;
    assert!(matches!(failed, Err(MigrateError::Dangling { table, .. }) if table == "leaf"));
    assert_eq!(count(leaves).await.unwrap(), 1);
    // Outside of migrations the keys are enforced again.
    db.write(|tx| tx.execute("DELETE FROM tree", ()))
        .await
        .unwrap();
    assert_eq!(count("SELECT count(*) FROM leaf").await.unwrap(), 0);
}

#[tokio::test]
async fn a_new_database_is_not_backed_up() {
    let scratch = Scratch::new();
    scratch.db("notes.db").migrate(BOTH).await.unwrap();
    assert!(backups(&scratch).is_empty());
}

#[tokio::test]
async fn a_backup_holds_what_was_there_before_and_can_be_restored() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    write_note(&db, "precious").await.unwrap();
    db.migrate(BOTH).await.unwrap();
    db.write(|tx| tx.execute("DELETE FROM note", ()))
        .await
        .unwrap();
    assert_eq!(backups(&scratch), ["notes.db.before-v2.bak"]);

    scratch.store.close().await;
    fs::copy(
        scratch.path("notes.db.before-v2.bak"),
        scratch.path("notes.db"),
    )
    .unwrap();
    let scratch = scratch.restart().await;
    let db = scratch.notes().await;
    assert_eq!(version(&db).await, 1);
    assert_eq!(note_bodies(&db).await, ["precious"]);
    assert_eq!(scratch.store.check().await[0].problems, [""; 0]);
}

#[tokio::test]
async fn the_newest_three_backups_are_kept() {
    let scratch = Scratch::new();
    let db = scratch.db("many.db");
    let all: Vec<Migration> = (1..=6)
        .map(|version| Migration {
            version,
            name: format!("table {version}").into(),
            sql: format!("CREATE TABLE t{version} (id INTEGER)").into(),
        })
        .collect();
    for count in 1..=all.len() {
        db.migrate(all[..count].to_vec()).await.unwrap();
    }
    let expected = [4, 5, 6].map(|version| format!("many.db.before-v{version}.bak"));
    assert_eq!(backups(&scratch), expected);
}

#[tokio::test]
async fn a_backup_cut_short_earlier_is_no_obstacle() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    fs::write(scratch.path("notes.db.before-v2.bak.tmp"), "half a copy").unwrap();
    db.migrate(BOTH).await.unwrap();
    assert_eq!(backups(&scratch), ["notes.db.before-v2.bak"]);
}

#[tokio::test]
async fn a_migration_without_a_backup_does_not_happen() {
    let scratch = Scratch::new();
    let db = scratch.notes().await;
    fs::create_dir(scratch.path("notes.db.before-v2.bak")).unwrap();
    let failed = db.migrate(BOTH).await.unwrap_err();
    assert!(matches!(failed, MigrateError::Backup { .. }));
    assert_eq!(version(&db).await, 1);
}

#[tokio::test]
async fn a_database_from_before_there_was_a_record_is_backed_up_too() {
    let scratch = Scratch::new();
    let foreign = Connection::open(scratch.path("foreign.db")).unwrap();
    foreign
        .execute_batch("CREATE TABLE mine (id INTEGER)")
        .unwrap();
    foreign.close().unwrap();
    scratch.db("foreign.db").migrate(NOTES).await.unwrap();
    assert_eq!(backups(&scratch), ["foreign.db.before-v1.bak"]);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_a_backup() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    scratch.notes().await.migrate(BOTH).await.unwrap();
    let backup = fs::metadata(scratch.path("notes.db.before-v2.bak")).unwrap();
    assert_eq!(backup.permissions().mode() & 0o777, 0o600);
}
