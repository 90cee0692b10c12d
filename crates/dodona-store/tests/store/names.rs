//! Names of databases, and where their files come to lie.

use std::fs;

use dodona_store::{DbError, Durability, MigrateError, OpenError, Store};

use crate::support::{NOTES, Scratch, note_bodies, options, write_note};

#[tokio::test]
async fn a_name_that_leaves_the_data_directory_is_refused() {
    let scratch = Scratch::new();
    for name in [
        "",
        ".",
        "..",
        "../out.db",
        "a/../../out.db",
        "/tmp/out.db",
        "a//b.db",
        "./a.db",
        "a/.b.db",
        ".db",
        "a\\b.db",
        "c:out.db",
        "file:out.db",
        "a\0.db",
        "A.db",
        "hub",
        "hub.db-wal",
        "a.db/",
    ] {
        let db = scratch.db(name);
        assert_eq!(db.file(), name);
        let refused = db.read(|_| Ok(())).await;
        assert!(
            matches!(refused, Err(DbError::Refused { .. })),
            "read of {name:?}"
        );
        let refused = db.write(|_| Ok(())).await;
        assert!(
            matches!(refused, Err(DbError::Refused { .. })),
            "write of {name:?}"
        );
        let refused = db.migrate(NOTES).await;
        assert!(
            matches!(refused, Err(MigrateError::Handle { .. })),
            "migration of {name:?}"
        );
    }
    assert_eq!(fs::read_dir(scratch.path("")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_database_in_a_folder_of_its_own_gets_that_folder() {
    let scratch = Scratch::new();
    let db = scratch.db("plugins/echo/echo.db");
    db.migrate(NOTES).await.unwrap();
    assert!(scratch.path("plugins/echo/echo.db").is_file());
}

#[tokio::test]
async fn nothing_is_created_before_the_first_use() {
    let scratch = Scratch::new();
    scratch.db("lazy.db");
    assert!(!scratch.path("lazy.db").exists());
}

#[tokio::test]
async fn the_same_name_gives_the_same_database() {
    let scratch = Scratch::new();
    write_note(&scratch.notes().await, "shared").await.unwrap();
    assert_eq!(note_bodies(&scratch.db("notes.db")).await, ["shared"]);
}

#[tokio::test]
async fn another_durability_for_a_name_in_use_is_refused() {
    let scratch = Scratch::new();
    scratch.notes().await;
    let weaker = scratch.store.database("notes.db", Durability::Rebuildable);
    assert!(matches!(
        weaker.read(|_| Ok(())).await,
        Err(DbError::Refused { .. })
    ));
    write_note(&scratch.db("notes.db"), "still works")
        .await
        .unwrap();
}

#[test]
fn a_data_directory_that_cannot_be_created_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let occupied = folder.path().join("occupied");
    fs::write(&occupied, "a file").unwrap();
    let error = Store::open(&occupied.join("data"), options()).unwrap_err();
    assert!(matches!(&error, OpenError::CreateDir { dir, .. } if dir.ends_with("data")));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_what_the_store_creates() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("home/data");
    let store = Store::open(&data, options()).unwrap();
    let db = store.database("plugins/notes.db", Durability::Full);
    db.migrate(NOTES).await.unwrap();
    write_note(&db, "secret").await.unwrap();
    note_bodies(&db).await;

    let mode = |path: &str| fs::metadata(data.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("plugins"), 0o700);
    for file in [
        "plugins/notes.db",
        "plugins/notes.db-wal",
        "plugins/notes.db-shm",
    ] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
}
