//! Pages as they were fetched, so that what cites them can be checked. In the database of the plugin
//! `web`.

use dodona_plugin::store::{Db, DbError, Migration};
use jiff::Timestamp;

/// How many pages are kept.
const MOST: u32 = 500;

pub(super) const MIGRATIONS: &[Migration] = &[Migration::new(
    1,
    "pages as they were fetched",
    "
    create table pages (
        id   integer primary key autoincrement,
        url  text not null,
        hash text not null,
        at   integer not null,
        text text not null,
        unique (url, hash)
    ) strict;
    ",
)];

/// Keeps a page, and forgets the oldest ones.
pub(super) async fn keep(db: &Db, url: String, hash: String, text: String) -> Result<(), DbError> {
    let at = Timestamp::now().as_millisecond();
    db.write(move |tx| {
        tx.execute(
            "insert or replace into pages (url, hash, at, text) values (?1, ?2, ?3, ?4)",
            (url.as_str(), hash.as_str(), at, text.as_str()),
        )?;
        let sql = "delete from pages where id <= (select max(id) from pages) - ?1";
        tx.execute(sql, (MOST,)).map(drop)
    })
    .await
}

/// The text that was cited.
pub(super) async fn find(db: &Db, url: &str, hash: &str) -> Result<Option<String>, DbError> {
    let (url, hash) = (url.to_owned(), hash.to_owned());
    db.read(move |tx| {
        let sql = "select text from pages where url = ?1 and hash = ?2";
        tx.query_opt(sql, (url.as_str(), hash.as_str()), |row| row.get(0))
    })
    .await
}
