//! What was used, summed up.

use std::collections::BTreeMap;

use dodona_plugin::store::{DbError, Row, ToValue, Tx};
use dodona_proto::Usage;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Conversations;
use super::error::ConversationError;
use super::rows::{self, Head, Owner};

/// What to sum up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// The day, in UTC.
    #[default]
    Day,
    /// The conversation.
    Context,
    /// The query.
    Query,
    /// The turn of a query.
    Turn,
    /// The tool: how often and how long it ran, what its results take in the conversation, and
    /// what requests made for it used.
    Tool,
    /// Every part of the paths of calls: `agent` has what `agent.librarian` has, and more.
    Path,
    /// The model.
    Model,
}

/// Which requests count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// Only those of one conversation, by id or name.
    pub context: Option<String>,
    /// Only those from then on.
    pub since: Option<Timestamp>,
    /// Only those before then.
    pub until: Option<Timestamp>,
    /// Only those of a path and of what is below it.
    pub path: Option<String>,
    /// The most rows, the latest first.
    pub limit: u32,
}

/// A sum.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// Of what: a day, an id, a name.
    pub key: String,
    /// The same for people, where the key is an id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
    /// How many requests to models.
    pub requests: u64,
    /// Their tokens.
    #[serde(flatten)]
    pub usage: Usage,
    /// What those with a known price cost, in millionths of a dollar; absent where none has one.
    pub cost_micros: Option<u64>,
    /// How many requests have no known price.
    pub unpriced: u64,
    /// For tools: how they ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool: Option<ToolUsage>,
}

/// How a tool ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUsage {
    /// How many times it was called.
    pub calls: u64,
    /// How many of those did not succeed.
    pub failed: u64,
    /// How long it ran in all.
    pub duration_ms: u64,
    /// The tokens of its results, as the models counted them that were shown them.
    pub result_tokens: u64,
}

/// Sums, and the sum of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// What was summed up by.
    pub by: UsageBy,
    /// The sums.
    pub rows: Vec<UsageRow>,
    /// All of it, also what is beyond the last row.
    pub total: UsageRow,
}

const SUMS: &str = "count(*), coalesce(sum(u.input_tokens), 0), coalesce(sum(u.output_tokens), 0),
    coalesce(sum(u.cached_input_tokens), 0), coalesce(sum(u.cache_write_tokens), 0),
    coalesce(sum(u.reasoning_tokens), 0), sum(u.cost_micros), count(*) - count(u.cost_micros)";

/// The filter, over parameters 1 to 6.
const WHERE: &str = "u.user_id = ?1 and u.project_id = ?2 and (?3 is null or u.context_id = ?3)
    and (?4 is null or u.at >= ?4) and (?5 is null or u.at < ?5)
    and (?6 is null or u.path = ?6 or substr(u.path, 1, length(?6) + 1) = ?6 || '.')";

impl Conversations {
    /// Sums up what requests to models used and cost.
    pub async fn usage(
        &self,
        owner: &Owner,
        by: UsageBy,
        filter: UsageFilter,
    ) -> Result<UsageReport, ConversationError> {
        let owner = owner.clone();
        self.read(move |tx| {
            let bound = Bound::new(tx, &owner, &filter)?;
            let rows = match by {
                UsageBy::Path => by_path(tx, &bound)?,
                UsageBy::Tool => by_tool(tx, &bound)?,
                _ => by_key(tx, by, &bound)?,
            };
            let total = format!("select 'total', null, {SUMS} from usage u where {WHERE}");
            let total = tx.query_one(&total, &bound.values()[..6], read)?;
            Ok(UsageReport { by, rows, total })
        })
        .await
    }
}

/// The filter as a statement gets it.
struct Bound {
    user: String,
    project: String,
    context: Option<String>,
    since: Option<String>,
    until: Option<String>,
    path: Option<String>,
    limit: u32,
}

impl Bound {
    fn new(tx: &Tx<'_>, owner: &Owner, filter: &UsageFilter) -> Result<Self, ConversationError> {
        let context = match &filter.context {
            Some(asked) => Some(Head::find(tx, owner, asked)?.id.to_string()),
            None => None,
        };
        Ok(Self {
            user: owner.user.to_string(),
            project: owner.project.to_string(),
            context,
            since: filter.since.map(rows::stamp),
            until: filter.until.map(rows::stamp),
            path: filter.path.clone(),
            limit: filter.limit,
        })
    }

    fn values(&self) -> [&dyn ToValue; 7] {
        [
            &self.user,
            &self.project,
            &self.context,
            &self.since,
            &self.until,
            &self.path,
            &self.limit,
        ]
    }
}

fn by_key(tx: &Tx<'_>, by: UsageBy, bound: &Bound) -> Result<Vec<UsageRow>, ConversationError> {
    let (key, label, join) = match by {
        UsageBy::Day => ("substr(u.at, 1, 10)", "null", ""),
        UsageBy::Model => ("u.model", "null", ""),
        UsageBy::Context => (
            "u.context_id",
            "max(c.name)",
            "join oracle_contexts c on c.id = u.context_id",
        ),
        UsageBy::Query => (
            "u.query_id",
            "max(substr(q.question, 1, 200))",
            "join queries q on q.id = u.query_id",
        ),
        UsageBy::Turn => (
            "u.query_id || '#' || u.turn",
            "max(substr(q.question, 1, 200))",
            "join queries q on q.id = u.query_id",
        ),
        UsageBy::Tool => ("u.tool", "null", ""),
        UsageBy::Path => ("u.path", "null", ""),
    };
    let sql = format!(
        "select {key}, {label}, {SUMS} from usage u {join}
         where {WHERE} and {key} is not null group by {key} order by max(u.id) desc limit ?7"
    );
    Ok(tx.query(&sql, &bound.values()[..], read)?)
}

fn read(row: &Row<'_>) -> Result<UsageRow, DbError> {
    Ok(UsageRow {
        key: row.get(0)?,
        label: row.get(1)?,
        requests: row.get(2)?,
        usage: Usage {
            input_tokens: row.get(3)?,
            output_tokens: row.get(4)?,
            cached_input_tokens: row.get(5)?,
            cache_write_tokens: row.get(6)?,
            reasoning_tokens: row.get(7)?,
        },
        cost_micros: row.get(8)?,
        unpriced: row.get(9)?,
        tool: None,
    })
}

/// Adds each path's sum to those of all paths it is below.
fn by_path(tx: &Tx<'_>, bound: &Bound) -> Result<Vec<UsageRow>, ConversationError> {
    let mut sums: BTreeMap<String, UsageRow> = BTreeMap::new();
    for row in by_key(tx, UsageBy::Path, bound)? {
        let ends = row.key.match_indices('.').map(|(end, _)| end);
        for end in ends.chain([row.key.len()]) {
            let prefix = &row.key[..end];
            let sum = sums.entry(prefix.to_owned()).or_insert_with(|| UsageRow {
                key: prefix.to_owned(),
                ..UsageRow::default()
            });
            sum.requests += row.requests;
            sum.usage += row.usage;
            sum.unpriced += row.unpriced;
            sum.cost_micros = match (sum.cost_micros, row.cost_micros) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
            };
        }
    }
    Ok(sums.into_values().collect())
}

/// What requests for tools used, and how the tools ran. Copies of calls, in forks and imports,
/// did not run.
fn by_tool(tx: &Tx<'_>, bound: &Bound) -> Result<Vec<UsageRow>, ConversationError> {
    let mut sums: BTreeMap<String, UsageRow> = by_key(tx, UsageBy::Tool, bound)?
        .into_iter()
        .map(|row| (row.key.clone(), row))
        .collect();
    let sql = "select t.name, count(*), sum(t.status = 'error'), coalesce(sum(t.duration_ms), 0),
            coalesce(sum(r.token_count), 0)
        from tool_calls t
        join exchanges e on e.id = t.exchange_id
        join oracle_contexts c on c.id = e.context_id
        left join exchanges r on r.query_id = t.query_id and r.turn = e.turn and r.role = 'tool'
            and r.tool_call_id = t.call_id
        where c.user_id = ?1 and c.project_id = ?2 and e.copied_from is null
            and (?3 is null or c.id = ?3)
            and (?4 is null or t.ended_at >= ?4) and (?5 is null or t.ended_at < ?5)
            and (?6 is null or t.plugin_path = ?6
                or substr(t.plugin_path, 1, length(?6) + 1) = ?6 || '.')
        group by t.name order by t.name";
    let ran = tx.query(sql, &bound.values()[..6], |row| {
        let name: String = row.get(0)?;
        Ok((
            name,
            ToolUsage {
                calls: row.get(1)?,
                failed: row.get(2)?,
                duration_ms: row.get(3)?,
                result_tokens: row.get(4)?,
            },
        ))
    })?;
    for (name, tool) in ran {
        let row = sums.entry(name.clone()).or_insert_with(|| UsageRow {
            key: name,
            ..UsageRow::default()
        });
        row.tool = Some(tool);
    }
    Ok(sums.into_values().collect())
}
