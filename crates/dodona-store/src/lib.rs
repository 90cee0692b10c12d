//! The databases of a server: one file each for the hub and for every plugin.
//!
//! Start from [`Store`], which owns a data directory, and ask it for a [`Db`]. A database is
//! brought up to date with a list of [`Migration`]s, and then used through functions that are
//! given a [`Tx`]: [`Db::read`] runs one on a consistent snapshot, [`Db::write`] in a
//! transaction. Once a write has answered it is stored, whatever happens to the process or, with
//! [`Durability::Full`], to the power.
//!
//! ```
//! use dodona_store::{Durability, Migration, Store, StoreOptions};
//!
//! const MIGRATIONS: &[Migration] = &[Migration::new(
//!     1,
//!     "leaves",
//!     "CREATE TABLE leaf (id INTEGER PRIMARY KEY, said TEXT NOT NULL) STRICT",
//! )];
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let store = Store::open(folder.path(), StoreOptions::default())?;
//! let db = store.database("oak.db", Durability::Full);
//! db.migrate(MIGRATIONS).await?;
//!
//! let id = db
//!     .write(|tx| {
//!         tx.execute("INSERT INTO leaf (said) VALUES (?1)", ("turn back",))?;
//!         Ok(tx.last_insert_id())
//!     })
//!     .await?;
//! let said: String = db
//!     .read(move |tx| tx.query_one("SELECT said FROM leaf WHERE id = ?1", (id,), |row| row.get(0)))
//!     .await?;
//! assert_eq!(said, "turn back");
//! store.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Each database has a thread for its writes, which lets writes that wait together share a
//! commit; the reads of all databases share a few threads. Both start with the first request.
//! Every queue is bounded, and a caller beyond the bound waits. A database that is damaged, full
//! or locked fails the requests for it and no others; [`DbError`] has a variant for each thing a
//! caller can do about it.
//!
//! # What it does not do
//!
//! - It hands out no connection and no type of the engine. SQLite is what runs today; the same
//!   functions over [`Tx`] are to run on Postgres.
//! - It maps no rows to structs and builds no SQL.
//! - It makes no transaction across two databases. What another owner must learn is a row in an
//!   outbox, applied there in a way that bears repetition.
//! - It repairs nothing but databases that are derived from other data. [`Store::check`] reports;
//!   restoring a [`backup`] is the user's decision.
//! - It does not keep a second process out; the owner of the data directory holds a lock for that.

pub mod backup;
mod check;
mod classify;
mod client;
mod clock;
mod db;
mod error;
mod files;
mod guard;
mod job;
pub mod journal;
mod migrate;
mod options;
mod params;
mod readers;
mod rebuild;
mod recorded;
mod redact;
mod registry;
mod row;
mod session;
mod store;
mod target;
mod tx;
mod value;
mod worker;
mod writer;

pub use check::DatabaseReport;
pub use db::{Commit, Db};
pub use error::{Cause, ConstraintKind, DbError};
pub use migrate::{MigrateError, Migration};
pub use options::{DataLoss, DatabaseLimits, Durability, StoreOptions};
pub use params::{Binder, Params};
pub use recorded::recorded_version;
pub use redact::{Redactor, StreamRedactor};
pub use row::Row;
pub use store::{OpenError, Store};
pub use tx::Tx;
pub use value::{FromValue, ToValue, ValueError, ValueRef};
