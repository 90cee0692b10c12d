//! Shortening a conversation: old turns become a summary, the originals stay.
//!
//! It is done in two steps, so that a model can be asked in between: a [`Plan`] says which turns
//! are folded and what they hold, and [`Conversations::compact`] puts the lines that were made of
//! them in their place, in one transaction.

use dodona_plugin::store::{Row, Tx};
use dodona_proto::ExchangeRange;

use super::context::overflow_limit;
use super::count::Counter;
use super::error::{ConversationError, Invalid, not_found};
use super::exchange::OracleExchange;
use super::id::{ContextId, QueryId};
use super::query::Query;
use super::rows::{self, Head, Owner};
use super::summary::{self, LineKind, SummaryLine};
use super::window::{self, Reach};
use super::{Conversations, lifecycle, memory};

/// A summary may take this many hundredths of the budget.
const SUMMARY_SHARE: u64 = 40;

/// The turns that stay may take this part of it, but for the last, which always stays.
const KEPT_SHARE: u64 = 2;

/// What is pinned may take this part of it.
const PIN_SHARE: u64 = 8;

/// How many tokens a summary may have.
pub(super) fn limit(budget: u64) -> u64 {
    budget * SUMMARY_SHARE / 100
}

/// How a conversation would be shortened.
#[derive(Debug, Clone)]
pub struct Plan {
    context: ContextId,
    /// The summary as it is.
    pub(crate) lines: Vec<SummaryLine>,
    /// What is folded into it, with the place of each.
    pub(crate) exchanges: Vec<(u64, OracleExchange)>,
    /// How far the summary reaches now.
    summarized_to: u64,
    /// Where the window would begin.
    window_from: u64,
    before: u64,
    kept: u64,
    limit: u64,
}

/// What shortening a conversation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// Tokens before, with what had left the window and was in no summary.
    pub before: u64,
    /// Tokens after.
    pub after: u64,
    /// What was folded.
    pub folded: ExchangeRange,
    /// How many exchanges that are.
    pub exchanges: usize,
    /// How many lines the summary has.
    pub lines: usize,
    /// How many times the conversation was shortened.
    pub count: u64,
}

/// What pinning something came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// In which conversation.
    pub context: ContextId,
    /// Whether it was not so before.
    pub changed: bool,
    /// All that is pinned in it now.
    pub pinned: Vec<String>,
}

impl Plan {
    /// The texts that must survive word for word.
    pub fn pinned(&self) -> Vec<String> {
        pins(&self.lines)
    }

    /// How many tokens the summary may have.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Further texts that must survive word for word. What there is no room for is left out, and
    /// answered.
    pub fn pin(&mut self, texts: Vec<String>, counter: &Counter) -> Vec<String> {
        let mut left_out = Vec::new();
        for text in texts {
            if add_pin(&mut self.lines, &text, self.limit / 2, counter) == Pinning::NoRoom {
                left_out.push(text);
            }
        }
        left_out
    }

    /// The summary's lines: what it said and what is folded into it. What a model told of that
    /// takes the place of what would be put together from it; facts are always found.
    pub fn fold(&self, told: Option<Vec<SummaryLine>>, counter: &Counter) -> Vec<SummaryLine> {
        let lines = summary::fold(self.lines.clone(), &self.exchanges, told);
        summary::fit(lines, self.limit, counter)
    }
}

impl Conversations {
    /// How a conversation would be shortened that keeps its last turns; `None` where there is
    /// nothing to fold.
    pub async fn plan_compaction(
        &self,
        context: &ContextId,
        keep_turns: u32,
    ) -> Result<Option<Plan>, ConversationError> {
        let context = context.clone();
        self.read(move |tx| plan(tx, &context, keep_turns as usize))
            .await
    }

    /// Puts a summary in the place of what was folded into it. `None` where that would not make
    /// the conversation shorter, or where somebody else has changed it since; nothing is changed
    /// then.
    pub async fn compact(
        &self,
        plan: &Plan,
        lines: Vec<SummaryLine>,
        counter: &Counter,
    ) -> Result<Option<Compaction>, ConversationError> {
        let tokens = summary::tokens(counter, &lines);
        let after = plan.kept + tokens;
        if after >= plan.before {
            return Ok(None);
        }
        let plan = plan.clone();
        self.write(move |tx| apply(tx, &plan, &lines, tokens)).await
    }

    /// Pins a text: a model is shown it word for word, however often the conversation is
    /// shortened. Or takes it off again.
    pub async fn pin(
        &self,
        owner: &Owner,
        context: Option<&str>,
        text: &str,
        to: PinTo,
        counter: &Counter,
    ) -> Result<Pinned, ConversationError> {
        let length = text.trim().chars().count();
        if !(1..=summary::LONGEST_PIN).contains(&length) {
            return Err(Invalid::new("text", "has 1 to 1000 characters").into());
        }
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        let (text, counter) = (text.to_owned(), Counter::clone(counter));
        self.write(move |tx| {
            let head = lifecycle::find_or_default(tx, &owner, asked.as_deref())?;
            change_pins(tx, &head, &text, to, &counter)
        })
        .await
    }

    /// An exchange as it was said, by its place in the conversation. What was taken back is not
    /// there.
    pub async fn original(
        &self,
        owner: &Owner,
        context: &str,
        position: u64,
    ) -> Result<OracleExchange, ConversationError> {
        let (owner, asked) = (owner.clone(), context.to_owned());
        self.read(move |tx| {
            let head = Head::find(tx, &owner, &asked)?;
            let sql = "select json from exchanges
                where context_id = ?1 and position = ?2 and rewound_at is null";
            let found: Option<String> =
                tx.query_opt(sql, (head.id.as_str(), position), |row| row.get(0))?;
            let text = found.ok_or_else(|| not_found("exchange", format!("#{position}")))?;
            rows::parse("exchange", &text)
        })
        .await
    }

    /// The lines of a conversation's summary, in the order in which a model reads them.
    pub async fn summary(
        &self,
        owner: &Owner,
        context: Option<&str>,
    ) -> Result<Vec<SummaryLine>, ConversationError> {
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        self.read(move |tx| lines(tx, &lifecycle::find(tx, &owner, asked.as_deref())?.id))
            .await
    }
}

/// What becomes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinTo {
    /// It is kept.
    Keep,
    /// It no longer needs to be.
    Release,
}

impl Query {
    /// Whether something has left the window that no summary stands for.
    pub fn has_gap(&self) -> bool {
        self.window.has_gap()
    }

    /// Counts tokens as the query's model does.
    pub fn counter(&self) -> &Counter {
        &self.counter
    }
}

/// An exchange that no summary stands for.
struct Entry {
    position: u64,
    query: QueryId,
    exchange: OracleExchange,
}

fn plan(
    tx: &Tx<'_>,
    context: &ContextId,
    keep_turns: usize,
) -> Result<Option<Plan>, ConversationError> {
    let head = Head::of(tx, context)?;
    let entries = entries(tx, &head)?;
    let budget = head.token_budget;
    let begins = summary::turns(entries.iter().map(|entry| (&entry.query, &entry.exchange)));
    let begin = begins.len().saturating_sub(keep_turns.max(1));
    let mut later = begins.iter().copied().skip(begin).peekable();
    let mut cut = later.next().unwrap_or_default();
    let mut kept = weigh(tx, &entries, cut)?;
    for next in later {
        if kept <= budget / KEPT_SHARE {
            break;
        }
        cut = next;
        kept = weigh(tx, &entries, cut)?;
    }
    if cut == 0 {
        return Ok(None);
    }
    let room = overflow_limit(budget).saturating_sub(kept);
    Ok(Some(Plan {
        context: context.clone(),
        lines: lines(tx, context)?,
        summarized_to: head.summarized_to,
        window_from: entries[cut].position,
        before: head.summary_tokens + weigh(tx, &entries, 0)?,
        kept,
        limit: limit(budget).min(room),
        exchanges: entries
            .into_iter()
            .take(cut)
            .map(|entry| (entry.position, entry.exchange))
            .collect(),
    }))
}

fn entries(tx: &Tx<'_>, head: &Head) -> Result<Vec<Entry>, ConversationError> {
    let sql = "select position, query_id, json from exchanges
        where context_id = ?1 and position > ?2 and rewound_at is null order by position";
    Ok(
        tx.query(sql, (head.id.as_str(), head.summarized_to), |row| {
            Ok(Entry {
                position: row.get(0)?,
                query: QueryId::stored(row.get(1)?),
                exchange: rows::parse("exchange", row.text(2)?)?,
            })
        })?,
    )
}

/// The tokens of what would be in a window that begins there, the question of its first query
/// included.
fn weigh(tx: &Tx<'_>, entries: &[Entry], cut: usize) -> Result<u64, ConversationError> {
    let kept: u64 = entries[cut..]
        .iter()
        .map(|entry| entry.exchange.token_count)
        .sum();
    let Some(first) = entries.get(cut) else {
        return Ok(kept);
    };
    let sql = "select position, token_count from exchanges
        where query_id = ?1 and rewound_at is null order by position limit 1";
    let question: Option<(u64, u64)> = tx.query_opt(sql, (first.query.as_str(),), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let before = question.filter(|(position, _)| *position < first.position);
    Ok(kept + before.map_or(0, |(_, tokens)| tokens))
}

fn apply(
    tx: &Tx<'_>,
    plan: &Plan,
    lines: &[SummaryLine],
    tokens: u64,
) -> Result<Option<Compaction>, ConversationError> {
    let head = Head::of(tx, &plan.context)?;
    if head.summarized_to != plan.summarized_to {
        return Ok(None);
    }
    write(tx, &plan.context, lines, tokens)?;
    for line in lines.iter().filter(|line| line.kind == LineKind::Pinned) {
        memory::keep_pin(tx, &plan.context, &line.text)?;
    }
    let count = tx.query_one(
        "update oracle_contexts set summarized_to = ?2, window_from = ?3,
             compression_count = compression_count + 1
         where id = ?1 returning compression_count",
        (
            plan.context.as_str(),
            plan.window_from - 1,
            plan.window_from,
        ),
        |row| row.get(0),
    )?;
    let fitted = window::refresh(tx, &plan.context, Reach::Window)?;
    let place = |entry: Option<&(u64, OracleExchange)>| entry.map_or(0, |(position, _)| *position);
    Ok(Some(Compaction {
        before: plan.before,
        after: fitted.tokens_used,
        folded: ExchangeRange {
            from: place(plan.exchanges.first()),
            to: place(plan.exchanges.last()),
        },
        exchanges: plan.exchanges.len(),
        lines: lines.len(),
        count,
    }))
}

/// Reads the lines of a summary, in the order in which a model does.
pub(super) fn lines(
    tx: &Tx<'_>,
    context: &ContextId,
) -> Result<Vec<SummaryLine>, ConversationError> {
    let sql = "select kind, text, exchanges, position, tokens from summary_lines
        where context_id = ?1 order by ordinal";
    Ok(tx.query(sql, (context.as_str(),), |row: &Row<'_>| {
        Ok(SummaryLine {
            kind: LineKind::parse(row.text(0)?)?,
            text: row.get(1)?,
            exchanges: rows::parse("summary", row.text(2)?)?,
            position: row.get(3)?,
            tokens: row.get(4)?,
        })
    })?)
}

/// Writes a summary in the place of the one there is.
pub(super) fn write(
    tx: &Tx<'_>,
    context: &ContextId,
    lines: &[SummaryLine],
    tokens: u64,
) -> Result<(), ConversationError> {
    tx.execute(
        "delete from summary_lines where context_id = ?1",
        (context.as_str(),),
    )?;
    for (ordinal, line) in lines.iter().enumerate() {
        tx.execute(
            "insert into summary_lines (context_id, ordinal, kind, text, exchanges, position, tokens)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                context.as_str(),
                ordinal,
                line.kind.as_str(),
                line.text.as_str(),
                rows::json("summary", &line.exchanges)?,
                line.position,
                line.tokens,
            ),
        )?;
    }
    let text = summary::render(lines);
    let sql = "update oracle_contexts set summary_tokens = ?2 where id = ?1
        returning compressed_summary";
    let was: Option<String> = tx.query_one(sql, (context.as_str(), tokens), |row| row.get(0))?;
    if was == text {
        return Ok(());
    }
    // A replay shows a model what it was shown then.
    let id: Option<i64> = match &text {
        None => None,
        Some(text) => Some(tx.query_one(
            "insert into summary_texts (context_id, text) values (?1, ?2) returning id",
            (context.as_str(), text.as_str()),
            |row| row.get(0),
        )?),
    };
    tx.execute(
        "update oracle_contexts set compressed_summary = ?2, summary_id = ?3 where id = ?1",
        (context.as_str(), text, id),
    )?;
    Ok(())
}

/// Makes a summary smaller that leaves too little room for what must be in the window: a question
/// that fills it, or a model that counts more. Answers the tokens it has then.
pub(super) fn shrink(tx: &Tx<'_>, head: &Head, room: u64) -> Result<u64, ConversationError> {
    let mut kept = summary::fit_tokens(lines(tx, &head.id)?, room);
    summary::sort(&mut kept);
    // What frames the lines was counted with them, and is no longer known apart.
    let tokens = match kept.is_empty() {
        true => 0,
        false => room.min(head.summary_tokens),
    };
    write(tx, &head.id, &kept, tokens)?;
    Ok(tokens)
}

/// Forgets what a summary says, because what it says was taken back. What is pinned stays.
pub(super) fn forget(tx: &Tx<'_>, head: &Head) -> Result<(), ConversationError> {
    let mut pinned = lines(tx, &head.id)?;
    pinned.retain(|line| line.kind == LineKind::Pinned);
    let tokens: u64 = pinned.iter().map(|line| line.tokens).sum();
    let framed = (tokens + PIN_FRAME).min(head.summary_tokens);
    let tokens = if pinned.is_empty() { 0 } else { framed };
    write(tx, &head.id, &pinned, tokens)?;
    tx.execute(
        "update oracle_contexts set summarized_to = 0 where id = ?1",
        (head.id.as_str(),),
    )?;
    Ok(())
}

/// What stands around pinned texts alone, in tokens, at most.
const PIN_FRAME: u64 = 64;

#[derive(PartialEq, Eq)]
enum Pinning {
    New,
    Known,
    NoRoom,
}

fn pins(lines: &[SummaryLine]) -> Vec<String> {
    let pinned = lines.iter().filter(|line| line.kind == LineKind::Pinned);
    pinned.map(|line| line.text.clone()).collect()
}

/// Adds a pinned text to a summary, as far as there is room.
fn add_pin(lines: &mut Vec<SummaryLine>, text: &str, room: u64, counter: &Counter) -> Pinning {
    let text = text.trim();
    let is_pinned = |line: &&SummaryLine| line.kind == LineKind::Pinned;
    let pinned = lines.iter().filter(is_pinned);
    if pinned.clone().any(|line| line.text == text) {
        return Pinning::Known;
    }
    let mut line = SummaryLine::new(LineKind::Pinned, text.to_owned());
    line.count(counter);
    let taken: u64 = pinned.map(|line| line.tokens).sum();
    let too_long = text.is_empty() || text.chars().count() > summary::LONGEST_PIN;
    if too_long || taken + line.tokens > room {
        return Pinning::NoRoom;
    }
    lines.push(line);
    Pinning::New
}

fn change_pins(
    tx: &Tx<'_>,
    head: &Head,
    text: &str,
    to: PinTo,
    counter: &Counter,
) -> Result<Pinned, ConversationError> {
    let mut all = lines(tx, &head.id)?;
    let count = all.len();
    match to {
        PinTo::Release => {
            all.retain(|line| line.kind != LineKind::Pinned || line.text != text.trim());
            memory::release_pin(tx, &head.id, text.trim())?;
        }
        PinTo::Keep => {
            let room = head.token_budget / PIN_SHARE;
            if add_pin(&mut all, text, room, counter) == Pinning::NoRoom {
                return Err(ConversationError::PinsFull { room });
            }
            memory::keep_pin(tx, &head.id, text.trim())?;
        }
    }
    let changed = all.len() != count;
    if changed {
        summary::sort(&mut all);
        write(tx, &head.id, &all, summary::tokens(counter, &all))?;
        window::refresh(tx, &head.id, Reach::Window)?;
    }
    Ok(Pinned {
        context: head.id.clone(),
        changed,
        pinned: pins(&all),
    })
}
