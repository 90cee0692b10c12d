//! Finding memories by the words of a question.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dodona_plugin::store::{DbError, Row, Tx};
use dodona_proto::Source;
use jiff::Timestamp;

use super::{Lines, MemoryKind, keep, source, title};
use crate::conversation::Conversations;
use crate::conversation::error::ConversationError;
use crate::conversation::id::ContextId;
use crate::conversation::rows::{self, Owner};
use crate::words;

/// How many words of a question count.
const MOST_WORDS: usize = 24;

/// Some of those words, a bit for each.
type Words = u32;

/// How many memories of one word are looked at, the latest.
const PER_WORD: usize = 2_000;

/// How many topics are looked at closely.
const TOPICS: usize = 24;

/// The least part of a question that a topic must have, by what its words are worth.
const LEAST: f32 = 0.3;

/// A memory that answers, and where it stands.
#[derive(Debug, Clone)]
pub struct Found {
    /// What sort of thing it is.
    pub kind: MemoryKind,
    /// In which conversation.
    pub context: ContextId,
    /// Where it stands.
    pub source: Source,
    /// What it says.
    pub text: String,
    /// How well it answers, from 0 to about 15.
    pub score: f32,
    /// When it was said.
    pub at: Timestamp,
}

/// A memory as it is stored.
struct Memory {
    id: i64,
    context: ContextId,
    topic: String,
    kind: MemoryKind,
    place: String,
    position: u64,
    text: String,
    lines: Lines,
    at: Timestamp,
    /// Of the conversation.
    name: Option<String>,
}

/// What a memory gains that has the words of a question in their order.
const IN_ORDER: f32 = 4.0;

/// The words of a question, what each is worth, and which memories have it.
struct Hits {
    /// The words that follow each other in it.
    pairs: HashSet<(String, String)>,
    /// By memory, which of the words it has.
    of: HashMap<i64, Words>,
    worth: Vec<f32>,
}

/// What a model is shown already.
struct InSight {
    context: ContextId,
    window_from: u64,
    summary: String,
}

impl Conversations {
    /// The memories that answer a question best, of all conversations that an owner has. Those that
    /// a conversation shows its model anyway are left out for it.
    pub async fn seek(
        &self,
        owner: &Owner,
        question: &str,
        limit: usize,
        within: Option<&ContextId>,
    ) -> Result<Vec<Found>, ConversationError> {
        let mut wanted = words::of(question);
        wanted.truncate(MOST_WORDS);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let seeking = Arc::new(Seeking {
            owner: owner.clone(),
            pairs: words::pairs(question),
            wanted,
            limit,
            within: within.cloned(),
        });
        let first = Arc::clone(&seeking);
        let attempt = move |tx: &Tx<'_>| {
            let behind = keep::behind(tx, &first.owner, first.within.as_ref())?;
            match behind.is_empty() {
                true => first.run(tx).map(Ok),
                false => Ok(Err(behind)),
            }
        };
        match self.read(attempt).await? {
            Ok(found) => Ok(found),
            Err(behind) => {
                for context in behind {
                    self.memorize(&context).await?;
                }
                self.read(move |tx| seeking.run(tx)).await
            }
        }
    }
}

/// What is sought.
struct Seeking {
    owner: Owner,
    wanted: Vec<String>,
    /// The words that follow each other in the question.
    pairs: HashSet<(String, String)>,
    limit: usize,
    /// The conversation that it is sought for.
    within: Option<ContextId>,
}

impl Seeking {
    fn run(&self, tx: &Tx<'_>) -> Result<Vec<Found>, ConversationError> {
        let sight = match &self.within {
            Some(context) => InSight::of(tx, context)?,
            None => None,
        };
        let hits = Hits {
            pairs: self.pairs.clone(),
            ..hits(tx, &self.owner, &self.wanted)?
        };
        let memories = topics(tx, &hits)?;
        Ok(best(memories, &hits, sight.as_ref(), self.limit))
    }
}

fn hits(tx: &Tx<'_>, owner: &Owner, wanted: &[String]) -> Result<Hits, ConversationError> {
    let sql = "select memory_id from memory_words
        where user_id = ?1 and project_id = ?2 and word = ?3 order by memory_id desc limit ?4";
    let (user, project) = (owner.user.as_str(), owner.project.as_str());
    let mut hits = Hits {
        pairs: HashSet::new(),
        of: HashMap::new(),
        worth: Vec::new(),
    };
    for (place, word) in wanted.iter().enumerate() {
        let found: Vec<i64> = tx.query(sql, (user, project, word.as_str(), PER_WORD), |row| {
            row.get(0)
        })?;
        hits.worth.push(worth(found.len()));
        for id in found {
            *hits.of.entry(id).or_default() |= 1 << place;
        }
    }
    Ok(hits)
}

/// What a word is worth that nobody has: it tells nothing apart, but what lacks it answers less.
const UNKNOWN: f32 = 3.0;

/// The fewer have a word, the more it is worth.
#[expect(
    clippy::cast_precision_loss,
    reason = "there are at most a few thousand"
)]
fn worth(having: usize) -> f32 {
    match having {
        0 => UNKNOWN,
        _ => (1.0 + PER_WORD as f32 / (1.0 + having as f32)).ln(),
    }
}

impl Hits {
    /// What part of the question these words are.
    fn share(&self, words: Words) -> f32 {
        let all: f32 = self.worth.iter().sum();
        let worths = self.worth.iter().enumerate();
        let some = worths.filter(|(place, _)| words >> place & 1 == 1);
        some.map(|(_, worth)| worth).sum::<f32>() / all.max(f32::EPSILON)
    }

    /// What part of the words that follow each other do so in a text too.
    #[expect(clippy::cast_precision_loss, reason = "a question has few words")]
    fn in_order(&self, text: &str) -> f32 {
        let pairs = words::pairs(text);
        let both = self
            .pairs
            .iter()
            .filter(|pair| pairs.contains(pair))
            .count();
        both as f32 / self.pairs.len().max(1) as f32
    }

    fn words(&self, id: i64) -> Words {
        self.of.get(&id).copied().unwrap_or_default()
    }
}

/// Every memory of the topics that have most of the question.
fn topics(tx: &Tx<'_>, hits: &Hits) -> Result<Vec<Memory>, ConversationError> {
    let mut ids: Vec<(f32, i64)> = hits
        .of
        .iter()
        .map(|(id, words)| (hits.share(*words), *id))
        .collect();
    ids.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(other.cmp(one)));
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (_, id) in ids {
        if seen.len() == TOPICS {
            break;
        }
        let sql = "select topic from memories where id = ?1";
        let topic: Option<String> = tx.query_opt(sql, (id,), |row| row.get(0))?;
        if let Some(topic) = topic.filter(|topic| seen.insert(topic.clone())) {
            found.extend(of_topic(tx, &topic)?);
        }
    }
    Ok(found)
}

fn of_topic(tx: &Tx<'_>, topic: &str) -> Result<Vec<Memory>, ConversationError> {
    let sql = "select m.id, m.context_id, m.topic, m.kind, m.place, m.position, m.text,
            m.line_start, m.line_end, m.hash, m.created_at, c.name
        from memories m join oracle_contexts c on c.id = m.context_id
        where m.topic = ?1 order by m.id";
    Ok(tx.query(sql, (topic,), Memory::read)?)
}

impl Memory {
    fn read(row: &Row<'_>) -> Result<Self, DbError> {
        Ok(Self {
            id: row.get(0)?,
            context: ContextId::stored(row.get(1)?),
            topic: row.get(2)?,
            kind: MemoryKind::parse(row.text(3)?)?,
            place: row.get(4)?,
            position: row.get(5)?,
            text: row.get(6)?,
            lines: Lines {
                from: row.get(7)?,
                to: row.get(8)?,
                hash: row.get(9)?,
            },
            at: rows::time(row, 10)?,
            name: row.get(11)?,
        })
    }

    fn found(self, score: f32) -> Found {
        let title = title(self.kind, self.name.as_deref(), self.at);
        Found {
            source: source(&self.context, &self.place, self.lines, title),
            kind: self.kind,
            context: self.context,
            text: self.text,
            score,
            at: self.at,
        }
    }
}

impl InSight {
    /// `None` of a conversation whose first question is not stored yet.
    fn of(tx: &Tx<'_>, context: &ContextId) -> Result<Option<Self>, ConversationError> {
        let sql = "select window_from, coalesce(compressed_summary, '') from oracle_contexts
            where id = ?1";
        let sight = tx.query_opt(sql, (context.as_str(),), |row| {
            Ok(Self {
                context: context.clone(),
                window_from: row.get(0)?,
                summary: row.get(1)?,
            })
        });
        Ok(sight?)
    }

    /// Whether a model is shown a memory anyway: in the window, in the summary, or in the prompt.
    fn has(&self, memory: &Memory) -> bool {
        let is_shown = || match memory.position {
            0 => true,
            position if position >= self.window_from => true,
            _ => memory.text.lines().all(|line| self.summary.contains(line)),
        };
        memory.context == self.context && is_shown()
    }
}

/// The best of them, each text once. What was recorded as such comes before what was merely said.
fn best(memories: Vec<Memory>, hits: &Hits, sight: Option<&InSight>, limit: usize) -> Vec<Found> {
    let mut of_topic: HashMap<String, Words> = HashMap::new();
    for memory in &memories {
        *of_topic.entry(memory.topic.clone()).or_default() |= hits.words(memory.id);
    }
    let score = |memory: &Memory| {
        let words = of_topic.get(&memory.topic).copied();
        let whole = hits.share(words.unwrap_or_default());
        let own = hits.share(hits.words(memory.id));
        let weight = match memory.kind {
            MemoryKind::Said => 10.0,
            _ => 13.0,
        };
        let in_order = IN_ORDER * hits.in_order(&memory.text);
        (whole, weight * whole * (0.6 + 0.4 * own) + in_order)
    };
    let mut found: Vec<Found> = memories
        .into_iter()
        .filter(|memory| memory.kind != MemoryKind::Asked)
        .filter(|memory| !sight.is_some_and(|sight| sight.has(memory)))
        .filter_map(|memory| {
            let (whole, score) = score(&memory);
            (whole >= LEAST).then(|| memory.found(score))
        })
        .collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
    let mut seen = HashSet::new();
    found.retain(|found| seen.insert(found.text.clone()));
    found.truncate(limit);
    found
}
