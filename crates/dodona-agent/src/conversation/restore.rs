//! A document becomes a conversation.

use std::collections::HashMap;

use dodona_plugin::store::Tx;
use jiff::Timestamp;

use super::Conversations;
use super::archive::{Archive, ArchivedExchange};
use super::compact;
use super::context::is_reserved;
use super::decision::{self, DecisionKind, KeyDecision};
use super::error::{ConversationError, Invalid};
use super::exchange::{ExchangeRole, OracleExchange};
use super::history::{self, Place};
use super::id::{ContextId, ExchangeId, QueryId};
use super::lifecycle::{self, NewContext};
use super::query::{QueryInfo, QueryState};
use super::rows::{self, Owner};
use super::sources;
use super::summary::{self, LineKind, SummaryLine};
use super::tool_call::Ending;
use super::window::{self, Reach};

/// A conversation that was made from a document or from another conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Which one.
    pub context: ContextId,
    /// How many exchanges it has.
    pub exchanges: usize,
    /// The tokens of its window.
    pub tokens_used: u64,
}

impl Conversations {
    /// Makes a conversation from a document, under new ids and as the caller's own. Whatever was
    /// running when the document was written is interrupted in it. Without a name it gets the
    /// document's, unless that is taken.
    pub async fn import(
        &self,
        owner: &Owner,
        mut archive: Archive,
        name: Option<&str>,
    ) -> Result<Restored, ConversationError> {
        let (owner, name) = (owner.clone(), name.map(str::to_owned));
        self.write(move |tx| {
            take_window(&mut archive)?;
            take_decisions(&mut archive);
            archive.check()?;
            let name = match name {
                Some(name) => Some(name),
                None => free_name(tx, &owner, archive.context.name.take())?,
            };
            let new = NewContext {
                token_budget: archive.context.token_budget,
                agent_id: archive.context.agent_id.clone(),
                ..NewContext::named(name.as_deref())
            };
            restore(tx, &owner, &new, &archive)
        })
        .await
    }
}

fn free_name(
    tx: &Tx<'_>,
    owner: &Owner,
    name: Option<String>,
) -> Result<Option<String>, ConversationError> {
    let Some(name) = name.filter(|name| !is_reserved(name)) else {
        return Ok(None);
    };
    let sql = "select count(*) from oracle_contexts
        where user_id = ?1 and project_id = ?2 and name = ?3 and status <> 'closed'";
    let (user, project) = (owner.user.as_str(), owner.project.as_str());
    let taken: u64 = tx.query_one(sql, (user, project, name.as_str()), |row| row.get(0))?;
    Ok((taken == 0).then_some(name))
}

/// A document that has nothing but a window gets its queries from it: each question begins one.
fn take_window(archive: &mut Archive) -> Result<(), Invalid> {
    if !archive.exchanges.is_empty() || !archive.queries.is_empty() {
        return Ok(());
    }
    let window = checked(std::mem::take(&mut archive.context.recent_exchanges))?;
    for (index, exchange) in window.iter().enumerate() {
        let begins = exchange.role == ExchangeRole::User && archive.queries.is_empty();
        if exchange.is_question() || begins {
            archive.queries.push(asked(exchange));
        }
        let Some(query) = archive.queries.last_mut() else {
            let field = format!("context.recent_exchanges[{index}].role");
            return Err(Invalid::new(field, "a conversation begins with the user"));
        };
        let parts = match window.get(index + 1) {
            // The tools' answers, or what the model made of them, have exchanges of their own.
            Some(next) if next.role != ExchangeRole::User => vec![exchange.clone()],
            _ => parts(exchange),
        };
        query.turns += u32::from(exchange.role == ExchangeRole::Assistant);
        query.ended_at = Some(exchange.timestamp);
        query.state = match parts.last().is_some_and(OracleExchange::is_answer) {
            true => QueryState::Complete,
            false => QueryState::Interrupted,
        };
        let entries = parts.into_iter().map(|exchange| ArchivedExchange {
            position: 0,
            query_id: query.id.clone(),
            turn: query.turns,
            model: archive.context.last_model.clone(),
            opaque: None,
            rewound_at: None,
            exchange,
        });
        archive.exchanges.extend(entries);
    }
    Ok(())
}

/// A window whose exchanges keep the rules, with what each mentions where nobody has said so.
fn checked(mut window: Vec<OracleExchange>) -> Result<Vec<OracleExchange>, Invalid> {
    for (index, exchange) in window.iter_mut().enumerate() {
        let here = format!("context.recent_exchanges[{index}]");
        exchange.check().map_err(|invalid| invalid.within(&here))?;
        if exchange.mentioned_files.is_empty() && exchange.mentioned_symbols.is_empty() {
            history::find_mentions(exchange);
        }
    }
    Ok(window)
}

/// The data model knows the texts of decisions and nothing else of them.
fn take_decisions(archive: &mut Archive) {
    if archive.decisions.is_empty() {
        let texts = &archive.context.key_decisions;
        let decided = |text: &String| KeyDecision::new(DecisionKind::Decision, text);
        archive.decisions = texts.iter().map(decided).collect();
    }
}

/// The data model lets one exchange hold calls, their results and the answer made of them. A
/// provider knows these as messages of their own, and so do we.
fn parts(exchange: &OracleExchange) -> Vec<OracleExchange> {
    let ended = exchange.calls().iter().all(|call| !call.is_open());
    if exchange.calls().is_empty() || exchange.content.trim().is_empty() || !ended {
        return vec![exchange.clone()];
    }
    let asking = OracleExchange {
        id: ExchangeId::new(),
        content: String::new(),
        token_count: 1,
        key_insight: None,
        ..exchange.clone()
    };
    let answers = exchange.calls().iter().map(|call| OracleExchange {
        id: ExchangeId::new(),
        role: ExchangeRole::Tool,
        content: call.result.clone().unwrap_or_default(),
        tool_calls: None,
        tool_call_id: Some(call.id.clone()),
        token_count: 1,
        key_insight: None,
        ..exchange.clone()
    });
    let mut parts: Vec<OracleExchange> = std::iter::once(asking).chain(answers).collect();
    let counted = parts.len() as u64;
    parts.push(OracleExchange {
        tool_calls: None,
        token_count: exchange.token_count.saturating_sub(counted).max(1),
        ..exchange.clone()
    });
    parts
}

fn asked(question: &OracleExchange) -> QueryInfo {
    QueryInfo {
        id: QueryId::new(),
        question: question.content.clone(),
        state: QueryState::Interrupted,
        reason: None,
        started_at: question.timestamp,
        ended_at: None,
        turns: 0,
        model: None,
        call_id: None,
    }
}

/// Stores a document that was checked.
pub(super) fn restore(
    tx: &Tx<'_>,
    owner: &Owner,
    new: &NewContext,
    archive: &Archive,
) -> Result<Restored, ConversationError> {
    let context = lifecycle::create(tx, owner, new)?;
    let mut queries = HashMap::new();
    for query in &archive.queries {
        queries.insert(&query.id, restore_query(tx, &context, query)?);
    }
    let mut position = 0;
    let mut copies = HashMap::new();
    for entry in &archive.exchanges {
        position += 1;
        let query = queries
            .get(&entry.query_id)
            .ok_or_else(|| Invalid::new("query_id", "must be the id of one of the queries"))?;
        let place = Place {
            context: &context,
            query,
            position,
            turn: entry.turn,
            model: entry.model.as_deref(),
            opaque: entry.opaque.as_ref().map(ToString::to_string),
            rewound_at: entry.rewound_at,
            copied_from: Some(&entry.exchange.id),
        };
        let copy = copy(&entry.exchange);
        history::insert(tx, &place, &copy)?;
        copies.insert(&entry.exchange.id, (position, copy.id));
    }
    for decision in &archive.decisions {
        decision::add(tx, &context, decision)?;
    }
    sources::insert(tx, &context, &archive.sources)?;
    let state = &archive.context;
    tx.execute(
        "update oracle_contexts set last_position = ?2, last_model = ?3, compression_count = ?4,
             session_start = ?5
         where id = ?1",
        (
            context.as_str(),
            position,
            state.last_model.as_deref(),
            state.compression_count,
            rows::stamp(state.session_start),
        ),
    )?;
    restore_summary(tx, &context, archive, &copies)?;
    let fitted = window::refresh(tx, &context, Reach::All)?;
    Ok(Restored {
        context,
        exchanges: archive.exchanges.len(),
        tokens_used: fitted.tokens_used,
    })
}

/// Where the copy of an exchange stands, by the original's id.
type Copies<'a> = HashMap<&'a ExchangeId, (u64, ExchangeId)>;

/// Takes a summary over, where all that it stands for was copied; it is made anew otherwise.
fn restore_summary(
    tx: &Tx<'_>,
    context: &ContextId,
    archive: &Archive,
    copies: &Copies<'_>,
) -> Result<(), ConversationError> {
    let state = &archive.context;
    let end = archive.summarized_to.as_ref().and_then(|id| copies.get(id));
    let mut lines = match (&state.compressed_summary, archive.summary.is_empty()) {
        (Some(text), true) => earlier(text),
        _ => archive.summary.clone(),
    };
    let stays = |kind| matches!(kind, LineKind::Pinned | LineKind::Earlier);
    lines.retain(|line| end.is_some() || stays(line.kind));
    for line in &mut lines {
        let found = line.exchanges.iter().filter_map(|id| copies.get(id));
        let found: Vec<&(u64, ExchangeId)> = found.collect();
        line.position = found
            .iter()
            .map(|(position, _)| *position)
            .max()
            .unwrap_or(0);
        line.exchanges = found.into_iter().map(|(_, id)| id.clone()).collect();
        // Nobody can make a long line count for nothing.
        line.tokens = line.tokens.max(1 + line.text.len() as u64 / 8);
    }
    let all = lines.len();
    let mut kept = summary::fit_tokens(lines, compact::limit(state.token_budget));
    summary::sort(&mut kept);
    let sum: u64 = kept.iter().map(|line| line.tokens).sum();
    let tokens = match (kept.len(), state.summary_tokens) {
        (0, _) => 0,
        (count, known) if count == all && known >= sum / 2 => {
            known.min(compact::limit(state.token_budget))
        }
        _ => sum + summary::FRAME,
    };
    compact::write(tx, context, &kept, tokens)?;
    tx.execute(
        "update oracle_contexts set summarized_to = ?2 where id = ?1",
        (context.as_str(), end.map_or(0, |(position, _)| *position)),
    )?;
    Ok(())
}

/// The lines of a summary that came as a text. What it was made of is not known.
fn earlier(text: &str) -> Vec<SummaryLine> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let line = |text: &str| {
        let text = summary::one_line(text.trim_start_matches(['-', '*', ' ']), LONGEST_EARLIER);
        SummaryLine {
            // About four bytes make a token.
            tokens: 8 + text.len() as u64 / 4,
            ..SummaryLine::new(LineKind::Earlier, text)
        }
    };
    lines.map(line).collect()
}

/// The longest line of a summary that came as a text, in characters.
const LONGEST_EARLIER: usize = 1_000;

fn restore_query(
    tx: &Tx<'_>,
    context: &ContextId,
    query: &QueryInfo,
) -> Result<QueryId, ConversationError> {
    let id = QueryId::new();
    let (state, reason) = match query.state {
        QueryState::Running => (QueryState::Interrupted, Some("it was copied while it ran")),
        state => (state, query.reason.as_deref()),
    };
    let ended = query.ended_at.unwrap_or_else(Timestamp::now);
    tx.execute(
        "insert into queries (id, context_id, question, state, reason, started_at, ended_at, turns,
             model, copied_from, call_id)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        (
            id.as_str(),
            context.as_str(),
            query.question.as_str(),
            state.as_str(),
            reason,
            rows::stamp(query.started_at),
            rows::stamp(ended),
            query.turns,
            query.model.as_deref(),
            query.id.as_str(),
            query.call_id.map(|call| call.to_string()),
        ),
    )?;
    Ok(id)
}

/// The same under a new id. A call that has not ended never will.
fn copy(exchange: &OracleExchange) -> OracleExchange {
    let mut copy = exchange.clone();
    copy.id = ExchangeId::new();
    for call in copy.tool_calls.iter_mut().flatten() {
        if call.is_open() {
            call.end(
                Ending::Interrupted,
                Ending::Interrupted.result_text(true),
                None,
            );
        }
    }
    copy
}
