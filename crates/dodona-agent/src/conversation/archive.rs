//! A conversation as one document.

use std::collections::{HashMap, HashSet};

use dodona_plugin::store::{DbError, Row, Tx};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Conversations;
use super::compact;
use super::context::{OracleContext, check_budget, check_name, overflow_limit};
use super::decision::{self, KeyDecision};
use super::error::{ConversationError, Invalid};
use super::exchange::{ExchangeRole, OracleExchange};
use super::id::{ContextId, ExchangeId, QueryId, check};
use super::lifecycle::find;
use super::query::{INFO, QueryInfo};
use super::rows::{self, Owner};
use super::shown;
use super::sources::{self, NumberedSource};
use super::summary::{LONGEST_PIN, SummaryLine};

/// What the document says it is.
const FORMAT: &str = "dodona.conversation";

/// The form of the document.
const VERSION: u32 = 1;

/// The most exchanges a document may have.
const MOST_EXCHANGES: usize = 20_000;

/// The most text a document may have, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// The most lines a summary may have.
const MOST_LINES: usize = 10_000;

/// The highest number that a citation can have.
const MOST_SOURCES: usize = 9_999;

/// A conversation with all that was ever said in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Archive {
    /// Always `dodona.conversation`.
    #[serde(default = "format")]
    pub format: String,
    /// The form of this document: 1.
    #[serde(default = "version")]
    pub version: u32,
    /// When it was written.
    #[serde(default)]
    pub exported_at: Option<Timestamp>,
    /// The state. Where there are `exchanges` its window is empty: it is derived from them. A
    /// document without them is taken by its window.
    pub context: OracleContext,
    /// The queries, in the order they were asked.
    #[serde(default)]
    pub queries: Vec<QueryInfo>,
    /// Everything that was said, in order; what was taken back too.
    #[serde(default)]
    pub exchanges: Vec<ArchivedExchange>,
    /// What must not be forgotten.
    #[serde(default)]
    pub decisions: Vec<KeyDecision>,
    /// What stands for exchanges that have left the window, and what is pinned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<SummaryLine>,
    /// The last exchange that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarized_to: Option<ExchangeId>,
    /// What models were shown, by the numbers under which they cite it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<NumberedSource>,
}

/// An exchange, with what belongs to it beside the data model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArchivedExchange {
    /// Where it stands; a document has them in order instead.
    #[serde(skip)]
    pub(super) position: u64,
    /// The query it belongs to.
    pub query_id: QueryId,
    /// The turn of the query; 0 for the question.
    pub turn: u32,
    /// The model it was said to or by.
    #[serde(default)]
    pub model: Option<String>,
    /// What the model's provider wants to see again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewound_at: Option<Timestamp>,
    /// The exchange.
    pub exchange: OracleExchange,
}

fn format() -> String {
    FORMAT.to_owned()
}

fn version() -> u32 {
    VERSION
}

impl Conversations {
    /// A conversation as a document that [`import`](Conversations::import) accepts.
    pub async fn export(
        &self,
        owner: &Owner,
        context: Option<&str>,
    ) -> Result<Archive, ConversationError> {
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        self.read(move |tx| read(tx, &find(tx, &owner, asked.as_deref())?.id))
            .await
    }
}

/// Reads a whole conversation.
pub(super) fn read(tx: &Tx<'_>, id: &ContextId) -> Result<Archive, ConversationError> {
    let mut context = rows::context(tx, id)?;
    context.recent_exchanges = Vec::new();
    let queries = format!("select {INFO} from queries where context_id = ?1 order by id");
    let exchanges = "select query_id, turn, model, opaque, rewound_at, json, position
        from exchanges
        where context_id = ?1 order by position";
    Ok(Archive {
        format: format(),
        version: VERSION,
        exported_at: Some(Timestamp::now()),
        context,
        queries: tx.query(&queries, (id.as_str(),), QueryInfo::read)?,
        exchanges: tx.query(exchanges, (id.as_str(),), read_exchange)?,
        decisions: decision::of(tx, id)?,
        summary: compact::lines(tx, id)?,
        summarized_to: summarized_to(tx, id)?,
        sources: sources::read(tx, id)?,
    })
}

fn summarized_to(tx: &Tx<'_>, id: &ContextId) -> Result<Option<ExchangeId>, ConversationError> {
    let sql = "select e.id from exchanges e join oracle_contexts c on c.id = e.context_id
        where c.id = ?1 and e.position <= c.summarized_to and e.rewound_at is null
        order by e.position desc limit 1";
    let id = tx.query_opt(sql, (id.as_str(),), |row| row.get(0))?;
    Ok(id.map(ExchangeId::stored))
}

fn read_exchange(row: &Row<'_>) -> Result<ArchivedExchange, DbError> {
    Ok(ArchivedExchange {
        position: row.get(6)?,
        query_id: QueryId::stored(row.get(0)?),
        turn: row.get(1)?,
        model: row.get(2)?,
        opaque: shown::opaque(row, 3)?,
        rewound_at: rows::time_opt(row, 4)?,
        exchange: rows::parse("exchange", row.text(5)?)?,
    })
}

impl Archive {
    /// A document that has nothing but a state with its window.
    pub(super) fn of_window(context: OracleContext) -> Self {
        Self {
            format: format(),
            version: VERSION,
            exported_at: None,
            context,
            queries: Vec::new(),
            exchanges: Vec::new(),
            decisions: Vec::new(),
            summary: Vec::new(),
            summarized_to: None,
            sources: Vec::new(),
        }
    }

    /// Everything that must hold before any of it is stored.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        if self.format != FORMAT {
            return Err(Invalid::new("format", "must be `dodona.conversation`"));
        }
        if self.version != VERSION {
            let rule = format!("must be {VERSION}: this version knows no other form");
            return Err(Invalid::new("version", rule));
        }
        self.check_size()?;
        self.check_context()
            .map_err(|invalid| invalid.within("context"))?;
        for (index, decision) in self.decisions.iter().enumerate() {
            let here = format!("decisions[{index}]");
            decision.check().map_err(|invalid| invalid.within(&here))?;
        }
        self.check_summary()?;
        let mut known = HashSet::new();
        for (index, query) in self.queries.iter().enumerate() {
            let here = format!("queries[{index}]");
            check("id", query.id.as_str()).map_err(|invalid| invalid.within(&here))?;
            if !known.insert(&query.id) {
                return Err(Invalid::new("id", "must differ from those before it").within(&here));
            }
        }
        Sequence::new(&known).check(&self.exchanges)
    }

    fn check_size(&self) -> Result<(), Invalid> {
        let most = Invalid::new(
            "exchanges",
            format!("there may be at most {MOST_EXCHANGES}"),
        );
        if self.sources.len() > MOST_SOURCES {
            let rule = format!("there may be at most {MOST_SOURCES}");
            return Err(Invalid::new("sources", rule));
        }
        if let Some(wrong) = self.sources.iter().find(|entry| entry.number == 0) {
            let rule = format!("`{}` must be numbered from 1", wrong.source.path);
            return Err(Invalid::new("sources", rule));
        }
        if self.exchanges.len() > MOST_EXCHANGES || self.queries.len() > MOST_EXCHANGES {
            return Err(most);
        }
        let bytes: usize = self.exchanges.iter().map(size).sum();
        if bytes > MOST_BYTES {
            let rule = format!("{bytes} bytes of text are more than the {MOST_BYTES} allowed");
            return Err(Invalid::new("exchanges", rule));
        }
        Ok(())
    }

    fn check_summary(&self) -> Result<(), Invalid> {
        if self.summary.len() > MOST_LINES {
            let rule = format!("there may be at most {MOST_LINES} lines");
            return Err(Invalid::new("summary", rule));
        }
        for (index, line) in self.summary.iter().enumerate() {
            let length = line.text.chars().count();
            if !(1..=LONGEST_PIN).contains(&length) {
                let rule = format!("has 1 to {LONGEST_PIN} characters");
                return Err(Invalid::new("text", rule).within(&format!("summary[{index}]")));
            }
        }
        Ok(())
    }

    fn check_context(&self) -> Result<(), Invalid> {
        let context = &self.context;
        check_budget(context.token_budget)?;
        let limit = overflow_limit(context.token_budget);
        if context.tokens_used > limit {
            let rule = format!(
                "cannot exceed token_budget by more than a tenth: {} is more than {limit}",
                context.tokens_used
            );
            return Err(Invalid::new("tokens_used", rule));
        }
        context.name.as_deref().map_or(Ok(()), check_name)
    }
}

fn size(entry: &ArchivedExchange) -> usize {
    let results = entry.exchange.calls().iter().map(|call| {
        let result = call.result.as_ref().map_or(0, String::len);
        result + call.name.len() + call.id.len()
    });
    entry.exchange.content.len() + results.sum::<usize>()
}

/// Whether exchanges can have followed each other.
struct Sequence<'a> {
    queries: &'a HashSet<&'a QueryId>,
    ids: HashSet<&'a str>,
    /// The queries whose exchanges have come, and whether the last of each was taken back.
    seen: HashMap<&'a QueryId, bool>,
    current: Option<&'a QueryId>,
    /// The calls of the last message that has some, which wait for an answer.
    open: Vec<&'a str>,
}

impl<'a> Sequence<'a> {
    fn new(queries: &'a HashSet<&'a QueryId>) -> Self {
        Self {
            queries,
            ids: HashSet::new(),
            seen: HashMap::new(),
            current: None,
            open: Vec::new(),
        }
    }

    fn check(mut self, exchanges: &'a [ArchivedExchange]) -> Result<(), Invalid> {
        for (index, entry) in exchanges.iter().enumerate() {
            self.next(entry)
                .map_err(|invalid| invalid.within(&format!("exchanges[{index}]")))?;
        }
        Ok(())
    }

    fn next(&mut self, entry: &'a ArchivedExchange) -> Result<(), Invalid> {
        let exchange = &entry.exchange;
        let inner = |invalid: Invalid| invalid.within("exchange");
        exchange.check().map_err(inner)?;
        if !self.ids.insert(exchange.id.as_str()) {
            return Err(inner(Invalid::new(
                "id",
                "must differ from those before it",
            )));
        }
        self.enter(entry)?;
        match exchange.role {
            ExchangeRole::User => {}
            ExchangeRole::Assistant => {
                self.open = exchange.calls().iter().map(|call| &*call.id).collect();
            }
            ExchangeRole::Tool => {
                let id = exchange.tool_call_id.as_deref().unwrap_or_default();
                let open = self.open.iter().position(|open| *open == id);
                let open = open.ok_or_else(|| {
                    let rule = "must be a call of the assistant's message before it, and answer it only once";
                    inner(Invalid::new("tool_call_id", rule))
                })?;
                self.open.swap_remove(open);
            }
        }
        Ok(())
    }

    /// Goes on with a query, or to the next one.
    fn enter(&mut self, entry: &'a ArchivedExchange) -> Result<(), Invalid> {
        let query = &entry.query_id;
        let rewound = entry.rewound_at.is_some();
        if self.current != Some(query) {
            let rule = if !self.queries.contains(query) {
                "must be the id of one of the queries"
            } else if self.seen.contains_key(query) {
                "the exchanges of a query must follow each other"
            } else if entry.exchange.role != ExchangeRole::User {
                "a query must begin with the user's question"
            } else {
                ""
            };
            if !rule.is_empty() {
                return Err(Invalid::new("query_id", rule));
            }
            self.current = Some(query);
            self.open.clear();
        } else if self.seen.get(query) == Some(&true) && !rewound {
            let rule = "what follows something that was taken back must be taken back too";
            return Err(Invalid::new("rewound_at", rule));
        }
        self.seen.insert(query, rewound);
        Ok(())
    }
}
