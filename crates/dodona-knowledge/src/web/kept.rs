//! Pages as they were fetched, so that what cites them can be checked. In the database of the plugin
//! `web`.

use dodona_plugin::store::{Db, DbError, Migration};
use dodona_proto::UserId;
use jiff::Timestamp;

/// How many pages are kept for each user.
const MOST: u32 = 500;

pub(crate) const MIGRATIONS: &[Migration] = &[PAGES, BY_USER];

const PAGES: Migration = Migration::new(
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
);

/// A page may be private: its address can contain a token. Earlier pages have no user and are found
/// by every user who knows their address and hash.
const BY_USER: Migration = Migration::new(
    2,
    "pages by user",
    "
    create table pages_anew (
        id      integer primary key autoincrement,
        user_id text not null,
        url     text not null,
        hash    text not null,
        at      integer not null,
        text    text not null,
        unique (user_id, url, hash)
    ) strict;
    insert into pages_anew select id, '', url, hash, at, text from pages;
    drop table pages;
    alter table pages_anew rename to pages;
    ",
);

/// A page that a user fetched.
pub(super) struct Page {
    pub(super) user: UserId,
    pub(super) url: String,
    pub(super) hash: String,
    pub(super) text: String,
}

/// Keeps a page, and forgets the user's oldest ones.
pub(super) async fn keep(db: &Db, page: Page) -> Result<(), DbError> {
    let at = Timestamp::now().as_millisecond();
    db.write(move |tx| {
        let user = page.user.as_str();
        tx.execute(
            "insert or replace into pages (user_id, url, hash, at, text)
             values (?1, ?2, ?3, ?4, ?5)",
            (
                user,
                page.url.as_str(),
                page.hash.as_str(),
                at,
                page.text.as_str(),
            ),
        )?;
        let sql = "delete from pages where user_id = ?1 and id not in
            (select id from pages where user_id = ?1 order by id desc limit ?2)";
        tx.execute(sql, (user, MOST)).map(drop)
    })
    .await
}

/// The text that was cited.
pub(super) async fn find(
    db: &Db,
    user: &UserId,
    url: &str,
    hash: &str,
) -> Result<Option<String>, DbError> {
    let (user, url, hash) = (user.clone(), url.to_owned(), hash.to_owned());
    db.read(move |tx| {
        let sql = "select text from pages where user_id in (?1, '') and url = ?2 and hash = ?3";
        let params = (user.as_str(), url.as_str(), hash.as_str());
        tx.query_opt(sql, params, |row| row.get(0))
    })
    .await
}
