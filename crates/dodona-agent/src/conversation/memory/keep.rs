//! Making memories.

use dodona_plugin::store::{ToValue, Tx};

use super::{Lines, MemoryKind, Place};
use crate::conversation::Conversations;
use crate::conversation::compact;
use crate::conversation::decision::{self, KeyDecision};
use crate::conversation::error::ConversationError;
use crate::conversation::exchange::{ExchangeRole, OracleExchange};
use crate::conversation::id::ContextId;
use crate::conversation::rows::{self, Owner};
use crate::conversation::summary::{self, LineKind, SummaryLine};
use crate::words;

/// The longest text of a memory, in characters.
const LONGEST: usize = 1_500;

/// How much of a question goes with what was answered to it.
const LONGEST_QUESTION: usize = 240;

/// How many words a memory is found by at most.
const MOST_WORDS: usize = 120;

/// How many exchanges one transaction takes in.
const STEP: usize = 200;

/// A memory before it is stored.
struct Draft<'a> {
    context: &'a ContextId,
    topic: &'a str,
    kind: MemoryKind,
    place: Place,
    text: String,
    /// What it is found by beside its text.
    beside: &'a str,
    lines: Lines,
    at: String,
}

impl Conversations {
    /// Makes memories of what was said in a conversation since that was last done.
    pub async fn memorize(&self, context: &ContextId) -> Result<(), ConversationError> {
        loop {
            let context = context.clone();
            let more = self.write(move |tx| memorize(tx, &context)).await?;
            if !more {
                return Ok(());
            }
        }
    }
}

/// The conversations in which queries have ended that are no memories yet. In the one that they are
/// sought for, what its window shows need not be one.
pub(super) fn behind(
    tx: &Tx<'_>,
    owner: &Owner,
    within: Option<&ContextId>,
) -> Result<Vec<ContextId>, ConversationError> {
    let sql = "select c.id from oracle_contexts c
        where c.user_id = ?1 and c.project_id = ?2 and c.memorized_to < c.last_position
          and (c.id is not ?3 or c.memorized_to + 1 < c.window_from)
          and exists (select 1 from exchanges e join queries q on q.id = e.query_id
                      where e.context_id = c.id and e.position > c.memorized_to
                        and q.state <> 'running')";
    let (user, project) = (owner.user.as_str(), owner.project.as_str());
    let within = within.map(ContextId::as_str);
    Ok(tx.query(sql, (user, project, within), |row| {
        Ok(ContextId::stored(row.get(0)?))
    })?)
}

/// The model that quotes: what it says stands in the project, and is found there.
const QUOTING: &str = "offline";

/// One exchange, and the query it belongs to.
struct Entry {
    position: u64,
    query: String,
    model: Option<String>,
    exchange: OracleExchange,
}

impl Entry {
    fn is_quote(&self) -> bool {
        let is_answer = self.exchange.role == ExchangeRole::Assistant;
        is_answer && self.model.as_deref() == Some(QUOTING)
    }
}

/// Takes in the next exchanges. Answers whether there are more.
fn memorize(tx: &Tx<'_>, context: &ContextId) -> Result<bool, ConversationError> {
    let sql = "select memorized_to from oracle_contexts where id = ?1";
    let from: u64 = tx.query_one(sql, (context.as_str(),), |row| row.get(0))?;
    if from == 0 {
        // What was decided and pinned before there were memories.
        for (id, decision) in decision::with_ids(tx, context)? {
            keep_decision(tx, context, &id, &decision)?;
        }
        for line in compact::lines(tx, context)? {
            if line.kind == LineKind::Pinned {
                keep_pin(tx, context, &line.text)?;
            }
        }
    }
    // A query that is running ends what can be taken in.
    let sql = "select e.position, e.query_id, e.json, e.model from exchanges e
        where e.context_id = ?1 and e.position > ?2 and e.rewound_at is null
          and e.position < coalesce((
              select min(r.position) from exchanges r join queries q on q.id = r.query_id
              where r.context_id = ?1 and q.state = 'running'), ?3)
        order by e.position limit ?4";
    let last = i64::MAX;
    let mut entries = tx.query(sql, (context.as_str(), from, last, STEP), |row| {
        Ok(Entry {
            position: row.get(0)?,
            query: row.get(1)?,
            exchange: rows::parse("exchange", row.text(2)?)?,
            model: row.get(3)?,
        })
    })?;
    let is_full = entries.len() == STEP;
    // The rest of the last query comes with the next step, unless it is all there is room for.
    if is_full && let Some(cut) = last_query(&entries) {
        entries.truncate(cut);
    }
    let Some(to) = entries.last().map(|entry| entry.position) else {
        return Ok(false);
    };
    for topic in entries.chunk_by(|one, next| one.query == next.query) {
        keep_topic(tx, context, topic)?;
    }
    tx.execute(
        "update oracle_contexts set memorized_to = ?2 where id = ?1",
        (context.as_str(), to),
    )?;
    Ok(is_full)
}

/// Where the last query of some begins, if it is not the only one.
fn last_query(entries: &[Entry]) -> Option<usize> {
    let last = &entries.last()?.query;
    let cut = entries.iter().position(|entry| entry.query == *last)?;
    (cut > 0).then_some(cut)
}

/// Makes memories of a question and of what was answered to it, if there is a fact in either.
fn keep_topic(
    tx: &Tx<'_>,
    context: &ContextId,
    entries: &[Entry],
) -> Result<(), ConversationError> {
    let facts: Vec<Vec<SummaryLine>> = entries
        .iter()
        .map(|entry| match entry.is_quote() {
            true => Vec::new(),
            false => summary::facts_in_text(&entry.exchange),
        })
        .collect();
    if facts.iter().all(Vec::is_empty) {
        return Ok(());
    }
    for (entry, facts) in entries.iter().zip(facts) {
        let is_question = entry.exchange.is_question();
        if facts.is_empty() && !is_question {
            continue;
        }
        let content = &entry.exchange.content;
        let (kind, mut text) = match facts.is_empty() {
            true => (
                MemoryKind::Asked,
                summary::one_line(content, LONGEST_QUESTION),
            ),
            false => (MemoryKind::Said, String::new()),
        };
        let pieces = facts.iter().map(|fact| fact.text.as_str());
        for piece in pieces.clone() {
            if !text.contains(piece) && text.len() + piece.len() < LONGEST {
                text.push_str(if text.is_empty() { "" } else { "\n" });
                text.push_str(piece);
            }
        }
        let draft = Draft {
            context,
            topic: &entry.query,
            kind,
            place: Place::Exchange(entry.position),
            text,
            beside: match is_question {
                true => &content[..content.floor_char_boundary(LONGEST)],
                false => "",
            },
            lines: Lines::holding(content, pieces),
            at: rows::stamp(entry.exchange.timestamp),
        };
        store(tx, &draft)?;
    }
    Ok(())
}

/// Makes a memory of something that was recorded.
pub(in crate::conversation) fn keep_decision(
    tx: &Tx<'_>,
    context: &ContextId,
    id: &str,
    decision: &KeyDecision,
) -> Result<(), ConversationError> {
    let place = Place::Decision(id.to_owned());
    let draft = Draft {
        context,
        topic: id,
        kind: decision.kind.into(),
        lines: Lines::whole(&decision.text),
        text: decision.text.clone(),
        beside: "",
        place,
        at: rows::stamp(decision.created_at),
    };
    store(tx, &draft)
}

/// Makes a memory of a text that was pinned.
pub(in crate::conversation) fn keep_pin(
    tx: &Tx<'_>,
    context: &ContextId,
    text: &str,
) -> Result<(), ConversationError> {
    let place = Place::pin(text);
    let draft = Draft {
        context,
        topic: &format!("{context}#{place}"),
        kind: MemoryKind::Pinned,
        place: place.clone(),
        text: text.to_owned(),
        beside: "",
        lines: Lines::whole(text),
        at: rows::now(),
    };
    store(tx, &draft)
}

/// A text that is no longer pinned is no memory.
pub(in crate::conversation) fn release_pin(
    tx: &Tx<'_>,
    context: &ContextId,
    text: &str,
) -> Result<(), ConversationError> {
    tx.execute(
        "delete from memories where context_id = ?1 and place = ?2",
        (context.as_str(), Place::pin(text).to_string()),
    )?;
    Ok(())
}

/// What was taken back is no memory.
pub(in crate::conversation) fn take_back(
    tx: &Tx<'_>,
    context: &ContextId,
    from: u64,
) -> Result<(), ConversationError> {
    tx.execute(
        "delete from memories where context_id = ?1 and position >= ?2",
        (context.as_str(), from),
    )?;
    tx.execute(
        "update oracle_contexts set memorized_to = min(memorized_to, ?2) where id = ?1",
        (context.as_str(), from - 1),
    )?;
    Ok(())
}

/// Stores a memory with the words it is found by. One that is there already stays as it is.
fn store(tx: &Tx<'_>, draft: &Draft<'_>) -> Result<(), ConversationError> {
    let place = draft.place.to_string();
    let values: [&dyn ToValue; 10] = [
        &draft.context.as_str(),
        &draft.topic,
        &draft.kind.as_str(),
        &place,
        &draft.place.position(),
        &draft.text,
        &draft.lines.from,
        &draft.lines.to,
        &draft.lines.hash,
        &draft.at,
    ];
    let sql = "insert into memories (context_id, user_id, project_id, topic, kind, place, position,
             text, line_start, line_end, hash, created_at)
         select ?1, user_id, project_id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
         from oracle_contexts where id = ?1
         on conflict (context_id, place) do nothing returning id, user_id, project_id";
    type Stored = (i64, String, String);
    let stored: Option<Stored> = tx.query_opt(sql, &values[..], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let Some((id, user, project)) = stored else {
        return Ok(());
    };
    let found_by = format!("{} {}", draft.text, draft.beside);
    for word in words::of(&found_by).iter().take(MOST_WORDS) {
        tx.execute(
            "insert into memory_words (user_id, project_id, word, memory_id)
             values (?1, ?2, ?3, ?4)",
            (user.as_str(), project.as_str(), word.as_str(), id),
        )?;
    }
    Ok(())
}
