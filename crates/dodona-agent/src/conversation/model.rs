//! Another model: suspended, counted anew, resumed.

use std::sync::Arc;

use dodona_plugin::store::Tx;
use serde_json::Value;

use super::Conversations;
use super::begin::not_busy;
use super::compact;
use super::context::ContextStatus;
use super::count::{self, Counter};
use super::error::ConversationError;
use super::exchange::OracleExchange;
use super::id::ContextId;
use super::rows::{self, Head, Owner};
use super::shown;
use super::summary::{self, SummaryLine};
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
        let mut suspended = self
            .write(move |tx| {
                not_busy(tx, &id, &live)?;
                suspend(tx, &id, &to)
            })
            .await?;
        let counter = Arc::clone(counter);
        // A large window takes a tokenizer long enough to hold up others.
        let counting = tokio::task::spawn_blocking(move || {
            suspended.count(&counter);
            suspended
        });
        let suspended = counting
            .await
            .map_err(|error| rows::unreadable("window", format!("counting it failed: {error}")))?;
        let (id, model) = (context.clone(), model.to_owned());
        self.write(move |tx| resume(tx, &id, &model, &suspended))
            .await
    }
}

/// An exchange, with what the new model wants to see again of it.
type Counted = (OracleExchange, Option<Value>);

/// What is counted anew.
struct Suspended {
    before: u64,
    exchanges: Vec<Counted>,
    summary: Vec<SummaryLine>,
    summary_tokens: u64,
}

/// The window of a conversation that nobody else changes from now on.
fn suspend(tx: &Tx<'_>, id: &ContextId, model: &str) -> Result<Suspended, ConversationError> {
    let head = Head::of(tx, id)?.open()?;
    if head.status != ContextStatus::Suspended {
        head.change(tx, ContextStatus::Suspended)?;
    }
    let sql = "select json, case when model = ?4 then opaque end from exchanges
        where context_id = ?1 and position between ?2 and ?3 and rewound_at is null
        order by position";
    let mut exchanges = Vec::new();
    for (first, last) in window::stretches(tx, id, head.window_from)? {
        let values = (id.as_str(), first, last, model);
        exchanges.extend(tx.query(sql, values, |row| {
            Ok((
                rows::parse("exchange", row.text(0)?)?,
                shown::opaque(row, 1)?,
            ))
        })?);
    }
    Ok(Suspended {
        before: head.tokens_used,
        exchanges,
        summary: compact::lines(tx, id)?,
        summary_tokens: head.summary_tokens,
    })
}

impl Suspended {
    fn count(&mut self, counter: &Counter) {
        count::recount(counter, &mut self.exchanges);
        for line in &mut self.summary {
            line.count(counter);
        }
        self.summary_tokens = summary::tokens(counter, &self.summary);
    }

    fn counted(&self) -> u64 {
        let exchanges = self.exchanges.iter();
        let tokens = exchanges.map(|(exchange, _)| exchange.token_count);
        self.summary_tokens + tokens.sum::<u64>()
    }
}

fn resume(
    tx: &Tx<'_>,
    id: &ContextId,
    model: &str,
    suspended: &Suspended,
) -> Result<Recounted, ConversationError> {
    let head = Head::of(tx, id)?.open()?;
    let exchanges = &suspended.exchanges;
    compact::write(tx, id, &suspended.summary, suspended.summary_tokens)?;
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
        before: suspended.before,
        counted: suspended.counted(),
        after: fitted.tokens_used,
        budget: head.token_budget,
        dropped: fitted.dropped,
    })
}
