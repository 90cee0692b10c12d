//! What was said in a conversation.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::summary;
use crate::layout;
use crate::paint::{Paint, harmless, one_line};
use crate::quantity;

/// How much of a tool's result or arguments is shown where the output is no terminal.
const LONGEST: usize = 160;

#[derive(Deserialize)]
pub(super) struct Shown {
    context: Context,
    decisions: Vec<Decision>,
    summary: Vec<summary::Line>,
}

#[derive(Deserialize)]
struct Context {
    id: String,
    name: Option<String>,
    status: String,
    last_model: Option<String>,
    token_budget: u64,
    tokens_used: u64,
    recent_exchanges: Vec<Exchange>,
    mentioned_files: Option<String>,
    mentioned_symbols: Option<String>,
}

#[derive(Deserialize)]
struct Decision {
    kind: String,
    text: String,
}

#[derive(Deserialize)]
struct Exchange {
    id: String,
    role: String,
    /// Why there is a message that is neither a question nor an answer, such as `notice`.
    origin: Option<String>,
    content: String,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    arguments: Map<String, Value>,
    status: String,
    ending: Option<String>,
    duration_ms: Option<u64>,
}

/// The state in a line, what is remembered and mentioned, then the exchanges.
pub(super) fn text(shown: &Shown, paint: Paint, width: Option<usize>) -> String {
    let context = &shown.context;
    let mut text = heading(context, paint);
    for decision in &shown.decisions {
        let said = one_line(&decision.text);
        let _ = writeln!(
            text,
            "{}  {said}",
            paint.dim(format_args!("{:10}", decision.kind))
        );
    }
    let lists = [
        ("files", &context.mentioned_files),
        ("symbols", &context.mentioned_symbols),
    ];
    for (title, names) in lists {
        if let Some(names) = names {
            let names = names.lines().map(one_line).collect::<Vec<_>>().join(", ");
            let names = layout::cut(&names, 12, width.or(Some(LONGEST)));
            let _ = writeln!(text, "{}  {names}", paint.dim(format_args!("{title:10}")));
        }
    }
    text.push_str(&summary::lines(&shown.summary, paint, width));
    if !context.recent_exchanges.is_empty() {
        text.push('\n');
    }
    for exchange in &context.recent_exchanges {
        said(exchange, paint, width, &mut text);
    }
    text
}

fn heading(context: &Context, paint: Paint) -> String {
    let name = context.name.as_deref().map(one_line);
    let model = context.last_model.as_deref().map(one_line);
    let state = format!(
        "{} · {}/{} tokens{}",
        context.status,
        context.tokens_used,
        context.token_budget,
        model.map(|model| format!(" · {model}")).unwrap_or_default()
    );
    let name = name.unwrap_or_else(|| layout::short_id(&context.id).to_owned());
    format!(
        "{}  {state}  {}\n",
        paint.bold(name),
        paint.dim(&context.id)
    )
}

fn said(exchange: &Exchange, paint: Paint, width: Option<usize>, text: &mut String) {
    let before = 8 + 2 + 9 + 2;
    let content = match exchange.role.as_str() {
        "tool" => layout::cut(
            &one_line(&exchange.content),
            before,
            width.or(Some(LONGEST)),
        ),
        _ => indented(&exchange.content, before),
    };
    let calls = exchange.tool_calls.iter().flatten();
    let calls = calls.map(|call| called(call, before, width));
    let lines: Vec<String> = std::iter::once(content)
        .filter(|content| !content.is_empty())
        .chain(calls)
        .collect();
    let line = lines.join(&format!("\n{}", " ".repeat(before)));
    let id = paint.dim(layout::short_id(&exchange.id));
    let role = match exchange.origin.as_deref() {
        None | Some("turn_limit") => &exchange.role,
        Some(origin) => origin,
    };
    let role = paint.heading(format!("{role:9}"));
    let _ = writeln!(text, "{}", format!("{id}  {role}  {line}").trim_end());
}

/// A tool and how it went.
fn called(call: &Call, before: usize, width: Option<usize>) -> String {
    let time = call.duration_ms.map(std::time::Duration::from_millis);
    let time = time.map(|time| format!(" · {}", quantity::show_elapsed(time)));
    let ending = call.ending.as_ref().unwrap_or(&call.status);
    let end = format!("  {ending}{}", time.unwrap_or_default());
    let arguments = one_line(&Value::Object(call.arguments.clone()).to_string());
    let name = one_line(&call.name);
    let taken = before + name.chars().count() + end.chars().count() + 3;
    let arguments = layout::cut(&arguments, taken, width.or(Some(LONGEST)));
    format!("› {name} {arguments}{end}")
}

/// A text of several lines, the later ones below the first.
fn indented(text: &str, before: usize) -> String {
    let margin = format!("\n{}", " ".repeat(before));
    harmless(text.trim())
        .lines()
        .collect::<Vec<_>>()
        .join(&margin)
}
