//! Commits in the catalogue.

use dodona_plugin::store::{DbError, Row};

use super::catalogue::Catalogue;
use super::git::Commit;

impl Catalogue {
    /// The newest commit whose history was taken in.
    pub(super) async fn head(&self) -> Result<Option<String>, DbError> {
        self.ask(|tx, project| {
            let sql = "select head from heads where project = ?1";
            tx.query_opt(sql, (project,), |row| row.get(0))
        })
        .await
    }

    /// Takes in commits, up to a head.
    pub(super) async fn add_commits(
        &self,
        commits: Vec<Commit>,
        head: Option<String>,
    ) -> Result<(), DbError> {
        self.change(move |tx, project| {
            for commit in &commits {
                tx.execute(
                    "insert or replace into commits (project, id, author, date, message) values (?1, ?2, ?3, ?4, ?5)",
                    (project, commit.id.as_str(), commit.author.as_str(), commit.date.as_str(), commit.message.as_str()),
                )?;
            }
            if let Some(head) = &head {
                let sql = "insert or replace into heads (project, head) values (?1, ?2)";
                tx.execute(sql, (project, head.as_str()))?;
            }
            Ok(())
        })
        .await
    }

    /// Every commit that was taken in.
    pub(super) async fn commit_ids(&self) -> Result<Vec<String>, DbError> {
        self.ask(|tx, project| {
            let sql = "select id from commits where project = ?1";
            tx.query(sql, (project,), |row| row.get(0))
        })
        .await
    }

    /// Lets go of every commit.
    pub(super) async fn drop_commits(&self) -> Result<(), DbError> {
        self.change(|tx, project| {
            for table in ["commits", "heads"] {
                let sql = format!("delete from {table} where project = ?1");
                tx.execute(&sql, (project,))?;
            }
            Ok(())
        })
        .await
    }

    /// A commit that was taken in.
    pub(crate) async fn commit(&self, id: &str) -> Result<Option<Commit>, DbError> {
        let id = id.to_owned();
        self.ask(move |tx, project| {
            let sql =
                "select id, author, date, message from commits where project = ?1 and id = ?2";
            tx.query_opt(sql, (project, id.as_str()), commit)
        })
        .await
    }
}

fn commit(row: &Row<'_>) -> Result<Commit, DbError> {
    Ok(Commit {
        id: row.get(0)?,
        author: row.get(1)?,
        date: row.get(2)?,
        message: row.get(3)?,
    })
}
