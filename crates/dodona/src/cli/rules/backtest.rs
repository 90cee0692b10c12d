//! `dodona rules backtest`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dodona_proto::{ExitKind, ItemBody};
use serde_json::{Value, json};

use super::{Form, duration, files, short, since, text};
use crate::failure::Failure;
use crate::layout;
use crate::live::Live;
use crate::paint::{Paint, one_line};
use crate::session::{Ask, Session};
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona rules backtest --since 30d                       the rules in use
  dodona rules backtest --since 30d --rules draft.toml    with this rule added or changed
  dodona rules backtest --rules .dodona/rules --json";

/// Run rules over the recorded history and report which would have fired
///
/// Oldest first, with the state that the rules set themselves and with their limits. Nothing is
/// changed, told to a model or emitted. What the journal does not have is marked, not made up.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Backtest {
    /// Only this period, such as `30d`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    since: Option<Duration>,

    /// A file, or a directory with files: rules to try in the places of those with the same ids, or
    /// beside them
    #[arg(long, value_name = "FILE|DIR")]
    rules: Vec<PathBuf>,

    /// Number of firings to show in full for each rule
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1000))]
    examples: u32,

    /// Include rules that would not have fired
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    form: Form,
}

impl Backtest {
    pub(super) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let mut given = Vec::new();
        for path in &self.rules {
            for file in files::named(path)? {
                given.push(files::sent(&file)?);
            }
        }
        let params = json!({
            "since": self.since.map(since),
            "rules": given,
            "examples": self.examples,
        });
        let session = shell.session_in_project_if_any().await?;
        let live = match self.form.json {
            true => Live::none(),
            false => Live::start(),
        };
        let followed = tokio::select! {
            biased;
            followed = follow(&session, params, &live) => followed,
            () = shell.interrupt.requested() => Err(shell.cancelled(None)),
        };
        live.end();
        session.close().await;
        let report = followed?;
        let all = self.all || !self.rules.is_empty();
        let text = self
            .form
            .text(&report, |report, paint| words(report, all, paint));
        super::super::print(&text)
    }
}

async fn follow(session: &Session, params: Value, live: &Live) -> Result<Value, Failure> {
    let mut items = session.open(Ask::new("rules.backtest", params)).await?;
    let (mut report, mut failure) = (None, None);
    while let Some(next) = items.next().await? {
        for item in next {
            let Ok(item) = item.to_item() else { continue };
            match item.body {
                ItemBody::Progress {
                    message,
                    percentage,
                } => live.progress(item.plugin_path.as_str(), &message, percentage),
                ItemBody::Data { data, .. } => report = Some(data),
                ItemBody::Error {
                    error,
                    code,
                    recoverable: false,
                    hint,
                } => failure = Some(Failure::item(&code, error, hint)),
                _ => {}
            }
        }
    }
    match (report, failure) {
        (_, Some(failure)) => Err(failure),
        (Some(report), None) => Ok(report),
        (None, None) => Err(Failure::new(ExitKind::Failed, "the backtest ended early")),
    }
}

fn words(report: &Value, all: bool, paint: Paint) -> String {
    let mut out = String::new();
    let queries = report["queries"].as_u64().unwrap_or(0);
    let rules = report["rules"].as_array().into_iter().flatten();
    let shown = rules.filter(|rule| {
        let counts = ["fired", "failed", "not_replayable"];
        all || counts
            .iter()
            .any(|key| rule[*key].as_u64().unwrap_or(0) > 0)
    });
    for rule in shown {
        out.push_str(&one(rule, queries, paint));
    }
    for diff in report["diff"].as_array().into_iter().flatten() {
        let _ = writeln!(
            out,
            "{}  {} → {}   {} new, {} gone, {} reworded",
            paint.bold(format!("diff {}", short(text(diff, "rule")))),
            diff["before"],
            diff["after"],
            diff["new"],
            diff["gone"],
            diff["reworded"],
        );
    }
    let unreadable = report["unreadable"].as_u64().unwrap_or(0);
    let strange = match unreadable {
        0 => String::new(),
        count => format!(", {count} of them unreadable"),
    };
    let elapsed = report["elapsed_ms"].as_f64().unwrap_or(0.0);
    let _ = writeln!(
        out,
        "{}",
        paint.dim(format!(
            "{} events of {}{strange}, {elapsed:.0} ms",
            report["events"],
            counted(queries)
        ))
    );
    out
}

fn one(rule: &Value, queries: u64, paint: Paint) -> String {
    let fired = rule["fired"].as_u64().unwrap_or(0);
    let times = match fired {
        1 => "once".to_owned(),
        many => format!("{many} times"),
    };
    let would = match verb(rule) {
        "asked" if fired > 0 => format!("would have asked {times}"),
        "refused" if fired > 0 => format!("would have refused {times}"),
        _ if fired > 0 => format!("would have fired {times}"),
        _ => "would not have fired".to_owned(),
    };
    let name = paint.bold(short(text(rule, "rule"))).to_string();
    let mut out = format!("{name}   {would} in {}\n", counted(queries));
    let count = |key: &str| rule[key].as_u64().unwrap_or(0);
    if count("suppressed") > 0 {
        let _ = writeln!(
            out,
            "    {} times its limits kept it silent",
            count("suppressed")
        );
    }
    if count("failed") > 0 {
        let error = one_line(text(rule, "error"));
        let _ = writeln!(
            out,
            "    {}: {error}",
            paint.bad(format!("failed {} times", count("failed")))
        );
    }
    for reason in rule["reasons"].as_array().into_iter().flatten() {
        let why = one_line(text(reason, "reason"));
        let _ = writeln!(out, "    not replayable {} times: {why}", reason["count"]);
    }
    for message in rule["messages"].as_array().into_iter().flatten() {
        let said = one_line(text(message, "message"));
        let _ = writeln!(out, "    {} × {said}", message["count"]);
    }
    for example in rule["examples"].as_array().into_iter().flatten().rev() {
        let query = example["query_id"]
            .as_str()
            .map(layout::short_id)
            .unwrap_or("no query");
        let line = format!(
            "    {}  {query}  turn {}",
            text(example, "at"),
            example["turn"]
        );
        let _ = writeln!(out, "{}", paint.dim(line));
    }
    out
}

fn counted(queries: u64) -> String {
    match queries {
        1 => "1 query".to_owned(),
        many => format!("{many} queries"),
    }
}

/// What a rule does when it fires, as far as it is special.
fn verb(rule: &Value) -> &'static str {
    let actions = rule["actions"].as_array();
    let does = |kind: &str| actions.is_some_and(|all| all.iter().any(|action| action == kind));
    match (does("deny"), does("require_approval")) {
        (true, _) => "refused",
        (false, true) => "asked",
        (false, false) => "fired",
    }
}
