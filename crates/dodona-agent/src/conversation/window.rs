//! The working window: which exchanges are in it.

use dodona_plugin::store::Tx;

use super::compact;
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
    /// From the first exchange that no summary stands for: what has left it may come back where
    /// there is room.
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
    /// With the question, where it comes before the first.
    tokens: u64,
    state: QueryState,
}

/// Exchanges, by their first and last position.
pub(super) type Stretch = (u64, u64);

/// Where the exchanges of a window are that begins at a position. Where that is in the middle of a
/// query, the query's question is in the window too: what follows would make no sense without.
pub(super) fn stretches(
    tx: &Tx<'_>,
    context: &ContextId,
    from: u64,
) -> Result<Vec<Stretch>, ConversationError> {
    let sql = "select min(f.position) from exchanges f
        where f.rewound_at is null and f.query_id = (
            select w.query_id from exchanges w
            where w.context_id = ?1 and w.position >= ?2 and w.rewound_at is null
            order by w.position limit 1)";
    let question: Option<u64> = tx.query_one(sql, (context.as_str(), from), |row| row.get(0))?;
    let before = question.filter(|question| *question < from);
    let all = before.map(|question| (question, question));
    Ok(all.into_iter().chain([(from, LAST)]).collect())
}

/// After every position.
pub(super) const LAST: u64 = i64::MAX as u64;

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
    let mut head = Head::of(tx, context)?;
    let groups = groups(tx, &head, reach)?;
    let newest = groups.first().map_or(0, |group| group.tokens);
    let room = overflow_limit(head.token_budget).saturating_sub(newest);
    if head.summary_tokens > room {
        head.summary_tokens = compact::shrink(tx, &head, room)?;
    }
    let (from, fitted) = fit(&groups, &head)?;
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
    let from = Head::of(tx, context)?.window_from;
    let sql = "select json from exchanges
        where context_id = ?1 and position between ?2 and ?3 and rewound_at is null
        order by position";
    let mut texts = Vec::new();
    for (first, last) in stretches(tx, context, from)? {
        texts.extend(tx.query(sql, (context.as_str(), first, last), |row| row.get(0))?);
    }
    Ok(texts)
}

/// The groups that are candidates, the newest first.
fn groups(tx: &Tx<'_>, head: &Head, reach: Reach) -> Result<Vec<Group>, ConversationError> {
    let from = match reach {
        Reach::Window => head.window_from,
        Reach::All => head.summarized_to + 1,
    };
    let sql = "select g.first, g.tokens + coalesce((
                select f.token_count from exchanges f
                where f.query_id = g.query_id and f.rewound_at is null and f.position < g.first
                order by f.position limit 1), 0), q.state
        from (select query_id, min(position) as first, sum(token_count) as tokens from exchanges
              where context_id = ?1 and position >= ?2 and rewound_at is null
              group by query_id) g
        join queries q on q.id = g.query_id
        order by g.first desc";
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
        tokens_used: head.summary_tokens,
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
