//! `dodona calls`.

use std::fmt::Write as _;
use std::io;

use clap::Args;
use dodona_proto::CallSummary;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::paint::Paint;
use crate::quantity;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona calls
  dodona calls --json | jq '.[].plugin_path'

A call is stopped with `dodona cancel` and its id or its path.";

/// List running calls as a tree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Calls {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
struct Running {
    calls: Vec<CallSummary>,
}

impl Calls {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session().await?;
        let running = session.ask::<Running>("hub.calls", json!({})).await;
        session.close().await;
        let Running { calls } = running?;
        let text = match self.json {
            true => json!(calls).to_string() + "\n",
            false => tree(&calls, Paint::of(&io::stdout())),
        };
        super::print(&text)
    }
}

/// A line for each call, children below their parents, the columns aligned.
fn tree(calls: &[CallSummary], paint: Paint) -> String {
    if calls.is_empty() {
        return "nothing is running\n".to_owned();
    }
    let names: Vec<String> = (0..calls.len())
        .map(|index| format!("{}{}", branch(calls, index), name(&calls[index])))
        .collect();
    let ids: Vec<String> = calls.iter().map(|call| call.call_id.short()).collect();
    let width = |texts: &[String]| {
        texts
            .iter()
            .map(|text| text.chars().count())
            .max()
            .unwrap_or(0)
    };
    let (names_width, ids_width) = (width(&names), width(&ids));
    let users_width = calls
        .iter()
        .map(|call| call.user.as_str().len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for ((call, name), id) in calls.iter().zip(&names).zip(&ids) {
        // A nested call's user is its root's, and says nothing new.
        let user = if call.call_id.depth() == 0 {
            call.user.as_str()
        } else {
            ""
        };
        let elapsed = quantity::show_elapsed(std::time::Duration::from_millis(call.elapsed_ms));
        let _ = writeln!(
            text,
            "{name:names_width$}   {}   {user:users_width$}   {elapsed:>7}",
            paint.dim(format_args!("{id:ids_width$}"))
        );
    }
    text
}

/// The method, or the last name of the path for a named inner part.
fn name(call: &CallSummary) -> &str {
    match &call.method {
        Some(method) => method.as_str(),
        None => call.plugin_path.segments().next_back().unwrap_or_default(),
    }
}

/// The lines that lead to a call from its parents.
fn branch(calls: &[CallSummary], index: usize) -> String {
    let id = calls[index].call_id;
    let later_child_of = |parent| {
        calls[index + 1..]
            .iter()
            .any(|call| call.call_id.parent() == Some(parent))
    };
    let mut line = String::new();
    let mut at = id;
    while let Some(parent) = at.parent() {
        let goes_on = later_child_of(parent);
        let piece = match (at == id, goes_on) {
            (true, true) => "├ ",
            (true, false) => "└ ",
            (false, true) => "│ ",
            (false, false) => "  ",
        };
        line.insert_str(0, piece);
        at = parent;
    }
    line
}
