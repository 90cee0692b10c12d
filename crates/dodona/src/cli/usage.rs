//! `dodona usage`.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use clap::{Args, ValueEnum};
use dodona_proto::Usage as Tokens;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::layout;
use crate::paint::{Paint, one_line};
use crate::quantity;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona usage                          by day
  dodona usage --by model --since 30d
  dodona usage --by turn --context login
  dodona usage --by path --path agent.librarian
  dodona usage --json | jq .total.cost_micros";

/// The longest label that is shown where the output is no terminal.
const LONGEST: usize = 120;

/// Show tokens and cost by day, model, query, turn, tool or path
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Usage {
    /// What to group by
    #[arg(long, value_name = "WHAT", default_value = "day")]
    by: By,

    /// Only this period, such as `7d`
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    since: Option<Duration>,

    /// Only one conversation, by name or id
    #[arg(long)]
    context: Option<String>,

    /// Only this path of calls and nested calls
    #[arg(long)]
    path: Option<String>,

    /// Maximum number of rows, latest first
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What to sum up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Day,
    Context,
    Query,
    Turn,
    Tool,
    Path,
    Model,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Context => "context",
            Self::Query => "query",
            Self::Turn => "turn",
            Self::Tool => "tool",
            Self::Path => "path",
            Self::Model => "model",
        }
    }
}

#[derive(Deserialize)]
struct Report {
    rows: Vec<Row>,
    total: Row,
}

#[derive(Deserialize)]
struct Row {
    key: String,
    label: Option<String>,
    requests: u64,
    #[serde(flatten)]
    tokens: Tokens,
    cost_micros: Option<u64>,
    unpriced: u64,
    tool: Option<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    calls: u64,
    failed: u64,
    duration_ms: u64,
    result_tokens: u64,
}

impl Usage {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let params = self.params()?;
        let session = shell.session_in_project().await?;
        let answer = session.ask::<Value>("agent.usage", params).await;
        session.close().await;
        let answer = answer?;
        if self.json {
            return super::print(&format!("{answer}\n"));
        }
        let report: Report = serde_json::from_value(answer).map_err(|error| {
            let message = format!("could not read what `agent.usage` answered: {error}");
            Failure::new(dodona_proto::ExitKind::Failed, message)
        })?;
        let stdout = io::stdout();
        let text = table(self.by, &report, Paint::of(&stdout), layout::width(&stdout));
        super::print(&text)
    }

    fn params(&self) -> Result<Value, Failure> {
        let since = self
            .since
            .map(|time| Timestamp::now().checked_sub(time))
            .transpose()
            .map_err(|_| Failure::usage("`--since` goes back too far"))?;
        Ok(json!({
            "by": self.by.word(), "since": since, "context_id": self.context,
            "path": self.path, "limit": self.limit,
        }))
    }
}

const TITLES: [&str; 7] = ["requests", "in", "cached", "out", "reasoning", "cost", ""];
const TOOL_TITLES: [&str; 5] = ["calls", "failed", "time", "result tokens", ""];

/// A line for each sum and one for all, numbers to the right.
fn table(by: By, report: &Report, paint: Paint, width: Option<usize>) -> String {
    let ran = report.rows.iter().any(|row| row.tool.is_some());
    if report.total.requests == 0 && !ran {
        return "no model requests\n".to_owned();
    }
    let tools = by == By::Tool;
    let mut rows: Vec<Vec<String>> = vec![titles(by)];
    rows.extend(report.rows.iter().map(|row| cells(row, tools)));
    if !tools {
        rows.push(cells(&report.total, false));
    }
    let columns = rows[0].len() - 1;
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).filter_map(wide).collect();
    let before = widths.iter().sum::<usize>() + 2 * columns;
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let mut line = format!("{:1$}", row[0], widths[0]);
        for (cell, width) in row[1..columns].iter().zip(&widths[1..]) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let label = layout::cut(&row[columns], before, width.or(Some(before + LONGEST)));
        let line = format!("{line}  {label}");
        let _ = match index {
            0 => writeln!(text, "{}", paint.dim(line.trim_end())),
            _ => writeln!(text, "{}", line.trim_end()),
        };
    }
    match report.total.unpriced {
        0 => {}
        1 => text.push_str("1 request has no known price\n"),
        count => {
            let _ = writeln!(text, "{count} requests have no known price");
        }
    }
    text
}

fn titles(by: By) -> Vec<String> {
    let titles: &[&str] = if by == By::Tool {
        &TOOL_TITLES
    } else {
        &TITLES
    };
    let titles = titles.iter().map(|title| (*title).to_owned());
    std::iter::once(by.word().to_owned())
        .chain(titles)
        .collect()
}

fn cells(row: &Row, tools: bool) -> Vec<String> {
    let label = row.label.as_deref().map(one_line).unwrap_or_default();
    let key = key(&row.key);
    if tools {
        let Some(tool) = &row.tool else {
            let [none, nothing, time, tokens] = [const { String::new() }; 4];
            return vec![key, none, nothing, time, tokens, requests(row)];
        };
        let time = quantity::show_elapsed(Duration::from_millis(tool.duration_ms));
        return vec![
            key,
            tool.calls.to_string(),
            tool.failed.to_string(),
            time,
            tool.result_tokens.to_string(),
            requests(row),
        ];
    }
    vec![
        key,
        row.requests.to_string(),
        row.tokens.input_tokens.to_string(),
        row.tokens.cached_input_tokens.to_string(),
        row.tokens.output_tokens.to_string(),
        row.tokens.reasoning_tokens.to_string(),
        row.cost_micros.map_or_else(|| "-".to_owned(), dollars),
        label,
    ]
}

/// What requests that a tool made used, if it made any.
fn requests(row: &Row) -> String {
    match row.requests {
        0 => String::new(),
        count => {
            let cost = row.cost_micros.map(|cost| format!(" · {}", dollars(cost)));
            let tokens = row.tokens.input_tokens + row.tokens.output_tokens;
            format!(
                "{count} requests · {tokens} tokens{}",
                cost.unwrap_or_default()
            )
        }
    }
}

/// An id by its end, which is enough to name it, and the turn after it.
fn key(key: &str) -> String {
    let (id, turn) = key
        .split_once('#')
        .map_or((key, None), |(id, turn)| (id, Some(turn)));
    let is_id = id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let id = if is_id { &id[28..] } else { id };
    match turn {
        Some(turn) if is_id => format!("{id} turn {turn}"),
        _ => one_line(id),
    }
}

/// Money to the hundredth of a cent, and small sums to the millionth of a dollar.
fn dollars(micros: u64) -> String {
    match micros {
        0..10_000 => format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000),
        _ => format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_keeps_the_digits_that_matter() {
        let shown = [0, 412, 9_999, 10_000, 1_234_567, 25_000_000].map(dollars);
        assert_eq!(
            shown,
            [
                "$0.000000",
                "$0.000412",
                "$0.009999",
                "$0.0100",
                "$1.2345",
                "$25.0000"
            ]
        );
    }

    #[test]
    fn a_report_is_a_table_with_its_sum() {
        let report: Report = serde_json::from_value(json!({
            "rows": [
                { "key": "2026-11-16", "requests": 12, "input_tokens": 81_412, "output_tokens": 1_204,
                  "cached_input_tokens": 60_000, "reasoning_tokens": 300, "cost_micros": 41_234, "unpriced": 0 },
                { "key": "2026-11-15", "requests": 1, "input_tokens": 900, "output_tokens": 20,
                  "cost_micros": null, "unpriced": 1 },
            ],
            "total": { "key": "total", "requests": 13, "input_tokens": 82_312, "output_tokens": 1_224,
                "cached_input_tokens": 60_000, "reasoning_tokens": 300, "cost_micros": 41_234, "unpriced": 1 },
        }))
        .unwrap();
        insta::assert_snapshot!(table(By::Day, &report, Paint::plain(), None), @r"
        day         requests     in  cached   out  reasoning     cost
        2026-11-16        12  81412   60000  1204        300  $0.0412
        2026-11-15         1    900       0    20          0        -
        total             13  82312   60000  1224        300  $0.0412
        1 request has no known price
        ");
    }

    #[test]
    fn tools_have_columns_of_their_own() {
        let report: Report = serde_json::from_value(json!({
            "rows": [
                { "key": "agent_delegate", "requests": 2, "input_tokens": 900, "output_tokens": 20,
                  "cost_micros": 412, "unpriced": 0 },
                { "key": "code_search", "requests": 0, "cost_micros": null, "unpriced": 0,
                  "tool": { "calls": 7, "failed": 1, "duration_ms": 2_345, "result_tokens": 8_100 } },
            ],
            "total": { "key": "total", "requests": 2, "cost_micros": 412, "unpriced": 0 },
        }))
        .unwrap();
        insta::assert_snapshot!(table(By::Tool, &report, Paint::plain(), None), @r"
        tool            calls  failed   time  result tokens
        agent_delegate                                       2 requests · 920 tokens · $0.000412
        code_search         7       1  2.3 s           8100
        ");
    }

    #[test]
    fn an_id_is_shown_by_its_end() {
        assert_eq!(key("0192f0c1-2233-7455-8677-8899aabbccdd"), "aabbccdd");
        assert_eq!(
            key("0192f0c1-2233-7455-8677-8899aabbccdd#3"),
            "aabbccdd turn 3"
        );
        assert_eq!(key("agent.librarian"), "agent.librarian");
    }
}
