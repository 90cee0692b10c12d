//! The schema version of a database that is not in use, read without changing any file.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// The newest migration recorded in a database file: 0 if none is, `None` if the file is missing or cannot
/// be read as a database.
///
/// No process may have the database open for writing. Neither the file nor the directory is changed: a
/// usual reader would create the files of the write-ahead log next to the database.
pub fn recorded_version(path: &Path) -> Option<u32> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let connection = match fs::metadata(log) {
        // A crash left changes in the log. Only a usual reader sees them.
        Ok(log) if log.len() > 0 => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(path, flags)
        }
        _ => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path)?, flags)
        }
    };
    let connection = connection.ok()?;
    let has_record = "SELECT count(*) FROM sqlite_schema WHERE name = 'dodona_migrations'";
    let tables: u32 = connection
        .query_row(has_record, (), |row| row.get(0))
        .ok()?;
    if tables == 0 {
        return Some(0);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM dodona_migrations";
    connection.query_row(newest, (), |row| row.get(0)).ok()
}

/// The file as a URI that marks it as immutable for SQLite.
fn immutable_uri(path: &Path) -> Option<String> {
    if !fs::metadata(path).is_ok_and(|file| file.is_file()) {
        return None;
    }
    let mut uri = String::from("file:");
    // On Windows, `C:\data` becomes `/C:/data`.
    let path = path.to_str()?.replace('\\', "/");
    if !path.starts_with('/') {
        uri.push('/');
    }
    for c in path.chars() {
        match c {
            '%' => uri.push_str("%25"),
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            c => uri.push(c),
        }
    }
    uri.push_str("?immutable=1");
    Some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Migration, Store, StoreOptions};

    const MIGRATIONS: &[Migration] = &[
        Migration::new(1, "one", "CREATE TABLE one (id INTEGER) STRICT"),
        Migration::new(2, "two", "CREATE TABLE two (id INTEGER) STRICT"),
    ];

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn reads_the_version_and_creates_no_file() {
        let folder = tempfile::tempdir().unwrap();
        // Characters that mean something in a URI.
        let data = folder.path().join("a b#c%20?d");
        let store = Store::open(&data, StoreOptions::default()).unwrap();
        let db = store.database("oak.db", Durability::Full);
        db.migrate(MIGRATIONS).await.unwrap();
        store.close().await;
        let before = names(&data);
        assert_eq!(recorded_version(&data.join("oak.db")), Some(2));
        assert_eq!(names(&data), before);
    }

    #[test]
    fn missing_empty_and_damaged_files_have_no_newer_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oak.db");
        assert_eq!(recorded_version(&path), None);
        fs::write(&path, "").unwrap();
        assert_eq!(recorded_version(&path), Some(0));
        fs::write(&path, "x".repeat(8192)).unwrap();
        assert_eq!(recorded_version(&path), None);
    }
}
