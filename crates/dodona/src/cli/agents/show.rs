//! Agents, in words.

use std::fmt::Write as _;

use dodona_plugin::reading::Problem;
use serde_json::Value;

use super::{Agent, Described, Listed};
use crate::paint::{Paint, harmless, one_line};

/// What each agent is for, and below it what it may use.
pub(super) fn list(listed: &Listed, paint: Paint) -> String {
    let names = listed.agents.iter().map(|agent| agent.name.chars().count());
    let width = names.max().unwrap_or_default();
    let mut text = String::new();
    for agent in &listed.agents {
        let name = paint.bold(format!("{:width$}", one_line(&agent.name)));
        let about = one_line(&agent.description);
        let _ = writeln!(text, "{name}  {about}  {}", paint.dim(limits(agent)));
        let _ = writeln!(text, "{:width$}  {}", "", paint.dim(tools(agent)));
    }
    if listed.agents.is_empty() {
        text.push_str("no agent matches\n");
    }
    text.push_str(&problems(&listed.problems, paint));
    text
}

fn limits(agent: &Agent) -> String {
    let model = agent.model_override.as_deref().map(one_line);
    let model = model.map(|model| format!(" · {model}"));
    let source = agent.source.as_deref().map(one_line);
    let source = source.map(|source| format!(" · {source}"));
    format!(
        "at most {} turns{}{}",
        agent.max_turns,
        model.unwrap_or_default(),
        source.unwrap_or_default()
    )
}

fn tools(agent: &Agent) -> String {
    match (&agent.allowed_tools, agent.tools.len()) {
        (None, count) => format!("every tool in whose scope it is ({count})"),
        (Some(_), 0) => "no tools".to_owned(),
        (Some(_), _) => one_line(&agent.tools.join(", ")),
    }
}

/// One agent with its prompt.
pub(super) fn one(described: &Described, paint: Paint) -> String {
    let agent = &described.agent;
    let listed = |names: &[String]| match names.is_empty() {
        true => "-".to_owned(),
        false => one_line(&names.join(", ")),
    };
    let model = agent.model_override.as_deref();
    let budget = agent.token_budget.map(|budget| budget.to_string());
    let rows = [
        ("name", one_line(&agent.name)),
        ("description", one_line(&agent.description)),
        (
            "source",
            one_line(agent.source.as_deref().unwrap_or("built in")),
        ),
        ("file", one_line(agent.path.as_deref().unwrap_or("-"))),
        ("tools", listed(&agent.tools)),
        ("extra tools", listed(&agent.extra_tools)),
        ("max turns", agent.max_turns.to_string()),
        ("model", one_line(model.unwrap_or("the default model"))),
        (
            "token budget",
            budget.unwrap_or_else(|| "the default".to_owned()),
        ),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        let _ = writeln!(text, "{}  {value}", paint.dim(format!("{name:12}")));
    }
    let _ = writeln!(text, "\n{}", paint.heading("prompt"));
    let _ = writeln!(text, "{}", harmless(described.system_prompt.trim_end()));
    let problems = problems(&described.problems, paint);
    if !problems.is_empty() {
        let _ = write!(text, "\n{problems}");
    }
    text
}

/// A line for each problem, and its hint below it.
pub(super) fn problems(problems: &[Problem], paint: Paint) -> String {
    let mut text = String::new();
    for problem in problems {
        let place = problem.place.as_ref();
        let place = place.map(|place| format!(":{}:{}", place.line, place.column));
        let file = format!("{}{}", problem.path, place.unwrap_or_default());
        let line = format!("{file}: {}", problem.message);
        let _ = writeln!(text, "{} {}", paint.bad("error:"), one_line(&line));
        if let Some(hint) = &problem.hint {
            let _ = writeln!(text, "hint: {}", one_line(hint));
        }
    }
    text
}

pub(super) fn defined(defined: &Value, paint: Paint) -> String {
    let text = |field: &str| one_line(defined[field].as_str().unwrap_or_default());
    let word = match defined["replaced"].as_bool() {
        Some(true) => "replaced",
        _ => "defined",
    };
    let tools = defined["tools"].as_array().map_or(0, Vec::len);
    let name = text("agent_id");
    format!(
        "{word} {} with {tools} {} in {}\nask it with `dodona ask --agent {name}`\n",
        paint.bold(&name),
        if tools == 1 { "tool" } else { "tools" },
        text("path"),
    )
}

pub(super) fn deleted(deleted: &Value, paint: Paint) -> String {
    let text = |field: &str| deleted[field].as_str().map(one_line);
    let name = text("agent_id").unwrap_or_default();
    let file = text("path").unwrap_or_default();
    let mut shown = format!("deleted {} ({file})\n", paint.bold(name));
    if let Some(prompt) = text("prompt_path") {
        let _ = writeln!(shown, "its prompt stays: {prompt}");
    }
    if deleted["restored_bundled"] == true {
        shown.push_str("the bundled agent of this name is in use again\n");
    }
    shown
}
