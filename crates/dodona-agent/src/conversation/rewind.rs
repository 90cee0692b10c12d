//! Taking back the end of a conversation.

use dodona_plugin::store::Tx;

use super::Conversations;
use super::begin::not_busy;
use super::compact;
use super::error::{ConversationError, not_found};
use super::exchange::ExchangeRole;
use super::history;
use super::id::ContextId;
use super::memory;
use super::rows::{self, Head, Owner};
use super::window::{self, Reach};

/// What was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewound {
    /// In which conversation.
    pub context: ContextId,
    /// How many exchanges.
    pub exchanges: u64,
    /// The tokens of the window now.
    pub tokens_used: u64,
}

impl Conversations {
    /// Moves the window back to before an exchange: it and everything after it is marked and no
    /// longer shown to a model; the originals stay. Earlier exchanges that had left the window
    /// come back where there is room. Before the answer of a tool is before the message that
    /// asked for it, so that the two are never parted.
    pub async fn rewind(
        &self,
        owner: &Owner,
        context: &str,
        exchange: &str,
    ) -> Result<Rewound, ConversationError> {
        let (owner, asked, live) = (owner.clone(), context.to_owned(), self.inner.live.clone());
        let exchange = exchange.to_owned();
        self.write(move |tx| {
            let head = Head::find(tx, &owner, &asked)?.open()?;
            not_busy(tx, &head.id, &live)?;
            rewind(tx, &head.id, &exchange)
        })
        .await
    }
}

fn rewind(tx: &Tx<'_>, context: &ContextId, exchange: &str) -> Result<Rewound, ConversationError> {
    let spot = Spot::find(tx, context, exchange)?;
    let from = match spot.role {
        ExchangeRole::Tool => spot.asked_at(tx)?,
        _ => spot.position,
    };
    let head = Head::of(tx, context)?;
    if from <= head.summarized_to {
        compact::forget(tx, &head)?;
    }
    let exchanges = tx.execute(
        "update exchanges set rewound_at = ?3
         where context_id = ?1 and position >= ?2 and rewound_at is null",
        (context.as_str(), from, rows::now()),
    )?;
    history::mention_again(tx, context)?;
    memory::take_back(tx, context, from)?;
    let fitted = window::refresh(tx, context, Reach::All)?;
    Ok(Rewound {
        context: context.clone(),
        exchanges,
        tokens_used: fitted.tokens_used,
    })
}

/// Where an exchange that was not taken back stands.
pub(super) struct Spot {
    pub(super) position: u64,
    pub(super) role: ExchangeRole,
    query: String,
}

impl Spot {
    /// By id, or by the end of one.
    pub(super) fn find(
        tx: &Tx<'_>,
        context: &ContextId,
        exchange: &str,
    ) -> Result<Self, ConversationError> {
        let sql = format!(
            "select id, position, role, query_id from exchanges
             where context_id = ?1 and rewound_at is null and (id = ?2 or {})
             order by id = ?2 desc limit 2",
            rows::ends_with(2)
        );
        let mut found = tx.query(&sql, (context.as_str(), exchange), |row| {
            let spot = Self {
                position: row.get(1)?,
                role: ExchangeRole::parse(row.text(2)?)?,
                query: row.get(3)?,
            };
            Ok((row.text(0)? == exchange, spot))
        })?;
        match found.len() {
            2 if !found[0].0 => Err(rows::ambiguous("exchange_id", exchange).into()),
            0 => Err(not_found("exchange", exchange)),
            _ => Ok(found.swap_remove(0).1),
        }
    }

    /// The position of the assistant's message that this one answers, or that is this one.
    pub(super) fn asked_at(&self, tx: &Tx<'_>) -> Result<u64, ConversationError> {
        let sql = "select max(position) from exchanges
            where query_id = ?1 and position <= ?2 and role = 'assistant'";
        let found: Option<u64> =
            tx.query_one(sql, (self.query.as_str(), self.position), |row| row.get(0))?;
        Ok(found.unwrap_or(self.position))
    }

    /// The position of the last answer of a tool that belongs to this message or to the one that
    /// it answers; its own where there is none.
    pub(super) fn answered_at(&self, tx: &Tx<'_>) -> Result<u64, ConversationError> {
        if self.role == ExchangeRole::User {
            return Ok(self.position);
        }
        let sql = "select max(e.position) from exchanges e
            where e.query_id = ?1 and e.role = 'tool' and e.position > ?2 and not exists (
                select 1 from exchanges n where n.query_id = e.query_id and n.role = 'assistant'
                    and n.position > ?2 and n.position < e.position)";
        let asked = self.asked_at(tx)?;
        let last: Option<u64> =
            tx.query_one(sql, (self.query.as_str(), asked), |row| row.get(0))?;
        Ok(last.unwrap_or(self.position).max(self.position))
    }
}
