//! The working window: which exchanges are in it.

use dodona_plugin::store::Tx;

use super::context::overflow_limit;
use super::error::ConversationError;
use super::exchange::OracleExchange;
use super::history;
use super::id::ContextId;
use super::query::QueryState;
use super::rows::{self, Head};

/// From where a window is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// From where it begins: what has left it stays out.
    Window,
    /// From the first exchange: what has left it may come back where there is room.
    All,
}

/// A window that was brought in step with the originals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) tokens_used: u64,
    /// How many queries do not fit.
    pub(super) dropped: usize,
    /// The tokens of the newest query, if it alone is too large.
    pub(super) too_large: Option<u64>,
}

/// The exchanges of one query that could be in the window.
struct Group {
    first: u64,
    tokens: u64,
    state: QueryState,
}

/// Makes room in the window for an exchange that was just added, where there is none.
pub(super) fn make_room(
    tx: &Tx<'_>,
    before: &Head,
    tokens: u64,
) -> Result<Fitted, ConversationError> {
    let tokens_used = before.tokens_used + tokens;
    // Whoever fits into the budget pushes nobody out, and nobody needs to be counted.
    if tokens_used > before.token_budget {
        return fit_in(tx, &before.id, Reach::Window);
    }
    tx.execute(
        "update oracle_contexts set tokens_used = ?2 where id = ?1",
        (before.id.as_str(), tokens_used),
    )?;
    Ok(Fitted {
        tokens_used,
        dropped: 0,
        too_large: None,
    })
}

/// Decides which exchanges are in the window.
///
/// Whole queries leave it, the oldest first, until the rest is within the budget; the newest may
/// use the tenth above it. So a tool call is never parted from its result.
pub(super) fn fit_in(
    tx: &Tx<'_>,
    context: &ContextId,
    reach: Reach,
) -> Result<Fitted, ConversationError> {
    let head = Head::of(tx, context)?;
    let (from, fitted) = fit(&groups(tx, &head, reach)?, &head)?;
    tx.execute(
        "update oracle_contexts set window_from = ?2, tokens_used = ?3 where id = ?1",
        (context.as_str(), from, fitted.tokens_used),
    )?;
    Ok(fitted)
}

/// Brings everything that is derived from the exchanges in step with them: which of them are in
/// the window, its tokens, and the copies of it and of the mentions in the conversation's row.
///
/// The copies are for those who read the file. They cost as much as the window is large, so that
/// they are made when a query has ended, and not with everything that is said in it.
pub(super) fn refresh(
    tx: &Tx<'_>,
    context: &ContextId,
    reach: Reach,
) -> Result<Fitted, ConversationError> {
    let fitted = fit_in(tx, context, reach)?;
    tx.execute(
        "update oracle_contexts set recent_exchanges_json = ?2, mentioned_files = ?3,
             mentioned_symbols = ?4
         where id = ?1",
        (
            context.as_str(),
            format!("[{}]", texts(tx, context)?.join(",")),
            history::mentioned(tx, context, "file")?,
            history::mentioned(tx, context, "symbol")?,
        ),
    )?;
    Ok(fitted)
}

/// The exchanges in the window.
pub(super) fn exchanges(
    tx: &Tx<'_>,
    context: &ContextId,
) -> Result<Vec<OracleExchange>, ConversationError> {
    let texts = texts(tx, context)?;
    let exchanges = texts.iter().map(|text| rows::parse("exchange", text));
    exchanges.collect()
}

fn texts(tx: &Tx<'_>, context: &ContextId) -> Result<Vec<String>, ConversationError> {
    let sql = "select e.json from oracle_contexts c join exchanges e on e.context_id = c.id
        where c.id = ?1 and e.position >= c.window_from and e.rewound_at is null
        order by e.position";
    Ok(tx.query(sql, (context.as_str(),), |row| row.get(0))?)
}

/// The groups that are candidates, the newest first.
fn groups(tx: &Tx<'_>, head: &Head, reach: Reach) -> Result<Vec<Group>, ConversationError> {
    let from = match reach {
        Reach::Window => head.window_from,
        Reach::All => 0,
    };
    let sql = "select min(e.position), sum(e.token_count), q.state
        from exchanges e join queries q on q.id = e.query_id
        where e.context_id = ?1 and e.position >= ?2 and e.rewound_at is null
        group by e.query_id order by min(e.position) desc";
    Ok(tx.query(sql, (head.id.as_str(), from), |row| {
        Ok(Group {
            first: row.get(0)?,
            tokens: row.get(1)?,
            state: QueryState::parse(row.text(2)?)?,
        })
    })?)
}

/// Where the window begins, and what that comes to.
fn fit(groups: &[Group], head: &Head) -> Result<(u64, Fitted), ConversationError> {
    let (budget, limit) = (head.token_budget, overflow_limit(head.token_budget));
    let mut from = head.last_position + 1;
    let mut fitted = Fitted {
        tokens_used: 0,
        dropped: groups.len(),
        too_large: None,
    };
    for (index, group) in groups.iter().enumerate() {
        let tokens = fitted.tokens_used + group.tokens;
        match index {
            0 if tokens > limit && group.state == QueryState::Running => {
                return Err(ConversationError::OverBudget {
                    tokens,
                    budget,
                    limit,
                });
            }
            0 if tokens > limit => {
                fitted.too_large = Some(tokens);
                break;
            }
            0 => {}
            _ if tokens > budget => break,
            _ => {}
        }
        (from, fitted.tokens_used) = (group.first, tokens);
        fitted.dropped -= 1;
    }
    Ok((from, fitted))
}
