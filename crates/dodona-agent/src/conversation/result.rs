//! Results that were too large for the window, kept to be read in parts.

use super::Conversations;
use super::error::{ConversationError, not_found};
use super::query::Query;
use super::rows::{self, Owner};

/// The most that is kept of one result, in bytes.
const MOST: usize = 4 << 20;

/// A handle for a text that is stored later.
pub(crate) fn new_handle() -> String {
    format!("r{}", &uuid::Uuid::now_v7().simple().to_string()[12..])
}

impl Query {
    /// Stores a whole result. Returns the handle under which it is read.
    pub async fn keep_result(
        &self,
        call_id: &str,
        text: String,
    ) -> Result<String, ConversationError> {
        let handle = new_handle();
        self.keep_text(&handle, call_id, text).await?;
        Ok(handle)
    }

    /// Stores a text under a handle.
    pub(crate) async fn keep_text(
        &self,
        handle: &str,
        call_id: &str,
        mut text: String,
    ) -> Result<(), ConversationError> {
        text.truncate(text.floor_char_boundary(MOST));
        let (facts, call_id, kept) = (self.facts.clone(), call_id.to_owned(), handle.to_owned());
        self.conversations
            .write(move |tx| {
                tx.execute(
                    "insert into results (handle, context_id, query_id, call_id, text, created_at)
                     values (?1, ?2, ?3, ?4, ?5, ?6)",
                    (
                        kept.as_str(),
                        facts.context.as_str(),
                        facts.query.as_str(),
                        call_id.as_str(),
                        text.as_str(),
                        rows::now(),
                    ),
                )?;
                Ok(())
            })
            .await
    }
}

impl Conversations {
    /// A whole result by its handle.
    pub async fn result(&self, owner: &Owner, handle: &str) -> Result<String, ConversationError> {
        let (owner, handle) = (owner.clone(), handle.to_owned());
        self.read(move |tx| {
            let sql = "select r.text from results r join oracle_contexts c on c.id = r.context_id
                where r.handle = ?1 and c.user_id = ?2 and c.project_id = ?3";
            let (user, project) = (owner.user.as_str(), owner.project.as_str());
            tx.query_opt(sql, (handle.as_str(), user, project), |row| row.get(0))?
                .ok_or_else(|| not_found("result", handle))
        })
        .await
    }
}
