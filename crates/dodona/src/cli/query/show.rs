//! Questions and their answers.

use std::fmt::Write as _;
use std::io;

use jiff::Timestamp;
use serde::Deserialize;

use super::told::Told;
use super::trace::{Traced, sum};
use crate::cli::search;
use crate::layout;
use crate::paint::{Paint, harmless, one_line};
use crate::quantity;
use crate::table::{self, Cell, Look, Table};

#[derive(Deserialize)]
pub(super) struct Listed {
    queries: Vec<Info>,
}

#[derive(Deserialize)]
pub(super) struct Info {
    pub(super) id: String,
    pub(super) question: String,
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) started_at: Timestamp,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) turns: u32,
    pub(super) model: Option<String>,
}

impl Info {
    /// How long it took, as far as it has ended.
    pub(super) fn seconds(&self) -> Option<f64> {
        let ended = self.ended_at?;
        Some(ended.duration_since(self.started_at).as_secs_f64())
    }
}

pub(super) fn list(listed: &Listed, paint: Paint) -> String {
    if listed.queries.is_empty() {
        return "no queries; `dodona ask` starts one\n".to_owned();
    }
    let width = layout::width(&io::stdout());
    let mut table = Table::new(&["ID", "STATUS", "TURNS", "STARTED", "QUESTION"]).align_right(&[2]);
    for info in &listed.queries {
        let look = match info.state.as_str() {
            "complete" | "running" => Look::Plain,
            _ => Look::Warning,
        };
        table.row([
            table::dim(layout::short_id(&info.id)),
            Cell::new(&info.state, look),
            info.turns.to_string().into(),
            quantity::show_moment(info.started_at, width).into(),
            info.question.as_str().into(),
        ]);
    }
    table.render(paint, width)
}

/// One question, its answer with what that cites, and what it took.
pub(super) fn one(traced: &Traced, told: Option<&Told>, paint: Paint) -> String {
    let info = &traced.query;
    let mut text = heading(traced, paint);
    let _ = writeln!(
        text,
        "\n{} {}",
        paint.heading("›"),
        harmless(info.question.trim())
    );
    if let Some(reason) = &info.reason {
        let _ = writeln!(text, "\n{} {}", paint.bad(&info.state), one_line(reason));
    }
    let answer = told.map(|told| &told.text).or(traced.answer.as_ref());
    if let Some(answer) = answer {
        let _ = writeln!(text, "\n{}", harmless(answer.trim()));
    }
    if let Some(told) = told {
        text.push_str(&search::cited(&told.sources, paint));
    }
    text
}

/// Its state in a line.
pub(super) fn heading(traced: &Traced, paint: Paint) -> String {
    let info = &traced.query;
    let seconds = info.seconds().map(|time| format!(" · {time:.1} s"));
    let model = info.model.as_deref().map(one_line);
    let (read, written) = sum(traced);
    format!(
        "{}  {}{} · {} turns · {read} tokens read, {written} written{}\n",
        paint.bold(&info.id),
        info.state,
        seconds.unwrap_or_default(),
        info.turns,
        model.map(|model| format!(" · {model}")).unwrap_or_default(),
    )
}
