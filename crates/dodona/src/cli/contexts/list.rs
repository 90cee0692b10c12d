//! The list of conversations.

use jiff::Timestamp;
use serde::Deserialize;

use crate::layout;
use crate::paint::Paint;
use crate::quantity;
use crate::table::{self, Table};

#[derive(Deserialize)]
pub(super) struct Listed {
    contexts: Vec<Summary>,
}

#[derive(Deserialize)]
struct Summary {
    id: String,
    name: Option<String>,
    agent_id: String,
    status: String,
    last_activity: Option<Timestamp>,
    token_budget: u64,
    tokens_used: u64,
    queries: u64,
    first_question: Option<String>,
}

pub(super) fn table(listed: &Listed, paint: Paint, width: Option<usize>) -> String {
    if listed.contexts.is_empty() {
        return "no conversations; `dodona ask` starts one\n".to_owned();
    }
    let header = [
        "NAME",
        "AGENT",
        "STATUS",
        "QUERIES",
        "TOKENS",
        "LAST USED",
        "ID",
        "FIRST QUESTION",
    ];
    let mut table = Table::new(&header).align_right(&[3, 4]);
    for context in &listed.contexts {
        let last = context.last_activity;
        table.row([
            table::bold(context.name.as_deref().unwrap_or("-")),
            context.agent_id.as_str().into(),
            context.status.as_str().into(),
            context.queries.to_string().into(),
            format!("{}/{}", context.tokens_used, context.token_budget).into(),
            last.map_or_else(String::new, |at| quantity::show_moment(at, width))
                .into(),
            table::dim(layout::short_id(&context.id)),
            context.first_question.as_deref().unwrap_or_default().into(),
        ]);
    }
    table.render(paint, width)
}
