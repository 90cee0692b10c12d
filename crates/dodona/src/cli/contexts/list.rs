//! The list of conversations.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize;

use crate::layout;
use crate::paint::{Paint, one_line};

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

/// A line for each, the columns aligned.
pub(super) fn table(listed: &Listed, paint: Paint, width: Option<usize>) -> String {
    if listed.contexts.is_empty() {
        return "no conversations; `dodona ask` begins one\n".to_owned();
    }
    let rows: Vec<[String; 6]> = listed.contexts.iter().map(row).collect();
    let wide = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let [names, agents, states, queries, tokens, times] = [0, 1, 2, 3, 4, 5].map(wide);
    let before = names + agents + states + queries + tokens + times + 8 + 7 * 2;
    let mut text = String::new();
    for (context, [name, agent, state, asked, used, time]) in listed.contexts.iter().zip(&rows) {
        let question = one_line(context.first_question.as_deref().unwrap_or_default());
        let question = layout::cut(&question, before, width);
        let line = format!(
            "{}  {agent:agents$}  {state:states$}  {asked:>queries$}  {used:>tokens$}  {time:times$}  {}  {question}",
            paint.bold(format_args!("{name:names$}")),
            paint.dim(layout::short_id(&context.id)),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn row(context: &Summary) -> [String; 6] {
    let queries = match context.queries {
        1 => "1 query".to_owned(),
        count => format!("{count} queries"),
    };
    let time = context
        .last_activity
        .map(|at| at.strftime("%Y-%m-%d %H:%M").to_string());
    [
        context.name.as_deref().map_or("-".to_owned(), one_line),
        one_line(&context.agent_id),
        context.status.clone(),
        queries,
        format!("{}/{} tokens", context.tokens_used, context.token_budget),
        time.unwrap_or_default(),
    ]
}
