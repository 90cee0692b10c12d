//! Another model: suspended, counted anew, resumed.

use std::sync::Arc;

use dodona_plugin::store::Tx;
use serde_json::Value;

use super::Conversations;
use super::begin::not_busy;
use super::context::ContextStatus;
use super::count::{self, Counter};
use super::error::ConversationError;
use super::exchange::OracleExchange;
use super::id::ContextId;
use super::rows::{self, Head, Owner};
use super::shown;
use super::window::{self, Reach};

/// What a model change came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recounted {
    /// The tokens of the window before.
    pub before: u64,
    /// The same exchanges, as the new model counts them.
    pub counted: u64,
    /// The tokens of the window now.
    pub after: u64,
    /// How many it may have.
    pub budget: u64,
    /// How many queries left the window because they no longer fit.
    pub dropped: usize,
}

impl Recounted {
    /// Whether the window was too large for its budget when the new model had counted it.
    pub fn over_budget(&self) -> bool {
        self.counted > self.budget
    }
}

impl Conversations {
    /// Changes the model of a conversation: suspends it, counts the tokens of its window as the
    /// new model does, and resumes it. What no longer fits leaves the window, the oldest queries
    /// first, and is reported; the originals stay.
    ///
    /// If the process ends halfway the conversation stays suspended, and the next change or query
    /// counts again.
    pub async fn change_model(
        &self,
        owner: &Owner,
        context: &str,
        model: &str,
        counter: &Counter,
    ) -> Result<Recounted, ConversationError> {
        let (owner, context) = (owner.clone(), context.to_owned());
        let head = self
            .read(move |tx| Head::find(tx, &owner, &context)?.open())
            .await?;
        self.recount(&head.id, model, counter).await
    }

    pub(super) async fn recount(
        &self,
        context: &ContextId,
        model: &str,
        counter: &Counter,
    ) -> Result<Recounted, ConversationError> {
        let (id, live, to) = (context.clone(), self.inner.live.clone(), model.to_owned());
        let (before, mut exchanges) = self
            .write(move |tx| {
                not_busy(tx, &id, &live)?;
                suspend(tx, &id, &to)
            })
            .await?;
        let counter = Arc::clone(counter);
        // A large window takes a tokenizer long enough to hold up others.
        let counting = tokio::task::spawn_blocking(move || {
            count::recount(&counter, &mut exchanges);
            exchanges
        });
        let exchanges = counting
            .await
            .map_err(|error| rows::unreadable("window", format!("counting it failed: {error}")))?;
        let (id, model) = (context.clone(), model.to_owned());
        self.write(move |tx| resume(tx, &id, &model, before, &exchanges))
            .await
    }
}

/// An exchange, with what the new model wants to see again of it.
type Counted = (OracleExchange, Option<Value>);

/// The window of a conversation that nobody else changes from now on.
fn suspend(
    tx: &Tx<'_>,
    id: &ContextId,
    model: &str,
) -> Result<(u64, Vec<Counted>), ConversationError> {
    let head = Head::of(tx, id)?.open()?;
    if head.status != ContextStatus::Suspended {
        head.change(tx, ContextStatus::Suspended)?;
    }
    let sql = "select json, case when model = ?3 then opaque end from exchanges
        where context_id = ?1 and position >= ?2 and rewound_at is null order by position";
    let exchanges = tx.query(sql, (id.as_str(), head.window_from, model), |row| {
        Ok((
            rows::parse("exchange", row.text(0)?)?,
            shown::opaque(row, 1)?,
        ))
    })?;
    Ok((head.tokens_used, exchanges))
}

fn resume(
    tx: &Tx<'_>,
    id: &ContextId,
    model: &str,
    before: u64,
    exchanges: &[Counted],
) -> Result<Recounted, ConversationError> {
    let head = Head::of(tx, id)?.open()?;
    for (exchange, _) in exchanges {
        tx.execute(
            "update exchanges set token_count = ?2, json = ?3 where id = ?1",
            (
                exchange.id.as_str(),
                exchange.token_count,
                rows::json("exchange", exchange)?,
            ),
        )?;
    }
    let fitted = window::refresh(tx, id, Reach::Window)?;
    if head.status == ContextStatus::Suspended {
        head.change(tx, ContextStatus::Active)?;
    }
    tx.execute(
        "update oracle_contexts set last_model = ?2 where id = ?1",
        (id.as_str(), model),
    )?;
    Ok(Recounted {
        before,
        counted: exchanges
            .iter()
            .map(|(exchange, _)| exchange.token_count)
            .sum(),
        after: fitted.tokens_used,
        budget: head.token_budget,
        dropped: fitted.dropped,
    })
}
