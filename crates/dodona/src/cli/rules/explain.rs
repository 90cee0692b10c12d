//! `dodona rules explain`.

use std::fmt::Write as _;

use clap::Args;
use dodona_proto::ExitKind;
use serde_json::{Value, json};

use super::list::{apart, origin};
use super::{Done, Form, answer, short, text};
use crate::failure::Failure;
use crate::layout;
use crate::paint::{Paint, harmless, one_line};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  dodona rules explain token-budget-warning              the last time that it was asked
  dodona rules explain token-budget-warning --last 5     the last five times
  dodona rules explain large-result-hint --query 8f2c    in one query
  dodona rules explain large-result-hint --tree          every term with its value";

/// Explain why a rule fired or did not fire
///
/// The rule is asked again, as its file is now, about what the journal has, with state and limits as
/// they were then.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Explain {
    /// The rule: its id, or `plugin/id`
    rule: String,

    /// The last N evaluations [default: 1]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u32).range(1..=100))]
    last: Option<u32>,

    /// The evaluation for one event, by its id
    #[arg(long, value_name = "ID", conflicts_with_all = ["last", "query"])]
    event: Option<String>,

    /// Evaluations in one query, by its id or the beginning or end of it
    #[arg(long, value_name = "ID")]
    query: Option<String>,

    /// Show the value of every term of the condition
    #[arg(long)]
    tree: bool,

    #[command(flatten)]
    form: Form,
}

impl Explain {
    pub(super) async fn ask(self, session: &Session) -> Result<Done, Failure> {
        let limit = match (self.last, &self.query) {
            (Some(last), _) => last,
            (None, Some(_)) => 100,
            (None, None) => 1,
        };
        let params = json!({
            "rule": self.rule, "event": self.event, "query": self.query, "limit": limit,
        });
        let explained: Value = answer(session, "rules.explain", params).await?;
        let events = explained["events"].as_array().map_or(0, Vec::len);
        // Nothing to explain is no answer to the question.
        let failure = (events == 0).then_some(Failure::Told(ExitKind::Failed));
        let tree = self.tree;
        let text = self
            .form
            .text(&explained, |explained, paint| words(explained, tree, paint));
        Ok(Done { text, failure })
    }
}

fn words(explained: &Value, tree: bool, paint: Paint) -> String {
    let mut out = String::new();
    for event in explained["events"].as_array().into_iter().flatten() {
        out.push_str(&one(event, tree, paint));
    }
    if let Some(note) = explained["note"].as_str() {
        let _ = writeln!(out, "{}", harmless(note));
    }
    let place = format!("{}:{}", origin(explained), explained["line"]);
    let _ = writeln!(
        out,
        "{}",
        paint.dim(format!("{}  {place}", short(text(explained, "rule"))))
    );
    if let Some(apart) = apart(&explained["liveness"]) {
        let _ = writeln!(out, "{}", paint.dim(apart));
    }
    out
}

/// What became of one event: a line, and what it takes to understand it.
fn one(event: &Value, tree: bool, paint: Paint) -> String {
    let verdict = text(event, "verdict");
    let word = match verdict {
        "fired" => paint.good("fired").to_string(),
        "failed" | "dropped" => paint.bad(verdict).to_string(),
        _ => verdict.replace('_', " "),
    };
    let condition = &event["condition"];
    let line = match condition["line"].as_str() {
        Some(line) => harmless(line).into_owned(),
        None => one_line(text(event, "why")),
    };
    let mut out = format!("{word}   {line}      {}\n", paint.dim(place(event)));
    if !matches!(verdict, "fired" | "not_fired") && condition["line"].is_string() {
        let _ = writeln!(out, "    {}", one_line(text(event, "why")));
    }
    if tree && let Some(tree) = condition["tree"].as_str() {
        for line in harmless(tree).lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
    for decision in event["decisions"].as_array().into_iter().flatten() {
        let said = ["message", "key", "event_type"];
        let said = said.iter().find_map(|key| decision[*key].as_str());
        let kind = text(decision, "type");
        let _ = writeln!(out, "    {kind}  {}", one_line(said.unwrap_or_default()));
    }
    out
}

/// Where and when it was.
fn place(event: &Value) -> String {
    let at = text(event, "at");
    match event["query_id"].as_str() {
        Some(query) if event["iteration"] == 0 => format!("query {}", layout::short_id(query)),
        Some(query) => format!(
            "turn {} of query {}",
            event["iteration"],
            layout::short_id(query)
        ),
        None => at.to_owned(),
    }
}
