//! A summary that a model makes.

use std::fmt::Write;
use std::sync::Arc;

use dodona_llm::{Model, ModelEvent, ModelOptions, ModelRequest};
use dodona_plugin::{CallCtx, CallError, TrustedFolder};
use dodona_proto::{Message, Usage};
use futures_util::StreamExt;
use serde::Serialize;

use super::turn::micros;
use crate::agent::Agent;
use crate::conversation::{
    ExchangeId, ExchangeOrigin, ExchangeRole, OracleExchange, Plan, SummaryLine, UsageRecord,
};
use crate::prompt::SUMMARIZER;

/// How many tokens a model is shown at once that does not say how many it takes.
const USUAL_WINDOW: u32 = 16_000;

/// The most characters of one message that it is shown.
const LONGEST_MESSAGE: usize = 2_000;

/// The fewest and the most lines that it is asked for.
const LINES: std::ops::RangeInclusive<u64> = 5..=60;

/// About how many tokens a line takes.
const PER_LINE: u64 = 40;

/// A model that is asked for a summary.
pub(super) struct Summarizer<'a> {
    pub(super) agent: &'a Agent,
    pub(super) ctx: &'a CallCtx,
    pub(super) model: &'a Arc<dyn Model>,
}

/// The usage of a summary, and the fallback that made it.
pub(super) struct SummaryUsage {
    usage: Usage,
    answered_by: Option<String>,
}

#[derive(Serialize)]
struct Variables<'a> {
    project: Option<&'a str>,
    lines: u64,
}

impl Summarizer<'_> {
    /// The lines that it makes of what is folded and of what earlier summaries told.
    pub(super) async fn run(
        &self,
        plan: &Plan,
    ) -> Result<(Vec<SummaryLine>, SummaryUsage), CallError> {
        let request = self.request(plan).await?;
        let answered = tokio::time::timeout(self.agent.options.tool_timeout, self.ask(request));
        let (text, usage) = answered
            .await
            .map_err(|_| useless("it took too long to make a summary"))??;
        let lines = read(&text, plan);
        match lines.is_empty() {
            true => Err(useless("it made no summary")),
            false => Ok((lines, usage)),
        }
    }

    /// What asking it came to, for the accounts.
    pub(super) fn record(&self, turn: u32, used: SummaryUsage) -> UsageRecord {
        let SummaryUsage { usage, answered_by } = used;
        let own = self.ctx.path.join("summarizer").ok();
        let path = own.as_ref().unwrap_or(&self.ctx.path);
        let fallback = answered_by.and_then(|name| self.agent.options.models.get(&name));
        let model = fallback.unwrap_or_else(|| Arc::clone(self.model));
        let price = model.price();
        UsageRecord {
            turn,
            model: model.name().to_owned(),
            path: path.to_string(),
            tool: None,
            usage,
            cost_micros: price.map(|price| micros(price.cost(&usage))),
        }
    }

    async fn request(&self, plan: &Plan) -> Result<ModelRequest, CallError> {
        let lines = (plan.limit() / 2 / PER_LINE).clamp(*LINES.start(), *LINES.end());
        let variables = Variables {
            project: super::assemble::project_name(self.ctx),
            lines,
        };
        let window = self.model.context_window().unwrap_or(USUAL_WINDOW);
        let content = transcript(plan, window as usize * 2);
        let project = self.agent.brought(self.ctx, TrustedFolder::Prompts).await;
        Ok(ModelRequest {
            system: self
                .agent
                .prompts
                .render(SUMMARIZER, &project, &variables)?,
            messages: vec![Message::User { content }],
            tools: Vec::new(),
            options: ModelOptions::default(),
        })
    }

    async fn ask(&self, request: ModelRequest) -> Result<(String, SummaryUsage), CallError> {
        let counter = self.model.counter();
        let (mut usage, mut answered_by) = (None, None);
        let asked = counter.count_request(&request) as u64;
        let (mut text, mut events) = (String::new(), self.model.stream(request));
        while let Some(event) = events.next().await {
            match event.map_err(|error| useless(&error.to_string()))? {
                ModelEvent::Text(more) => text.push_str(&more),
                ModelEvent::Usage(told) => usage = Some(told),
                ModelEvent::FallingBack { model, .. } => answered_by = Some(model),
                _ => {}
            }
        }
        let counted = || Usage {
            input_tokens: asked,
            output_tokens: counter.count(&text) as u64,
            ..Usage::default()
        };
        let usage = usage.unwrap_or_else(counted);
        Ok((text, SummaryUsage { usage, answered_by }))
    }
}

fn useless(why: &str) -> CallError {
    CallError::plugin("agent.summarizer", why.to_owned())
}

/// What it is shown: the story so far and the messages, the latest whole where there is no room
/// for all.
fn transcript(plan: &Plan, most: usize) -> String {
    let mut text = String::from("What earlier summaries said:");
    let story = plan.lines.iter().filter(|line| line.kind.is_story());
    for line in story {
        let _ = write!(text, "\n- {} (#{})", line.text, line.position);
    }
    text.push_str("\n\nWhat was said after that:");
    let mut said = Vec::new();
    let mut size = text.len();
    let is_told = |exchange: &OracleExchange| {
        exchange.role != ExchangeRole::User
            || exchange.is_question()
            || exchange.origin == Some(ExchangeOrigin::Steering)
    };
    let exchanges = plan.exchanges.iter().rev();
    // Notices and passages that were looked up are neither questions nor answers.
    for (position, exchange) in exchanges.filter(|(_, exchange)| is_told(exchange)) {
        let content: String = exchange.content.chars().take(LONGEST_MESSAGE).collect();
        let calls = exchange.calls().iter();
        let calls: String = calls
            .map(|call| format!("\n(asked for {})", call.name))
            .collect();
        let role = match exchange.origin {
            Some(ExchangeOrigin::Steering) => "user, while the assistant was working",
            _ => exchange.role.as_str(),
        };
        let one = format!("\n\n#{position} {role}: {content}{calls}");
        size += one.len();
        if size > most {
            break;
        }
        said.push(one);
    }
    text.extend(said.into_iter().rev());
    text
}

/// The lines of an answer, each with where it comes from. One that names no message comes from all
/// of them, as far as anybody knows.
fn read(text: &str, plan: &Plan) -> Vec<SummaryLine> {
    let known = |number: u64| -> Option<&ExchangeId> {
        let folded = plan.exchanges.iter();
        let folded = folded.filter(|(position, _)| *position == number);
        let earlier = plan.lines.iter().filter(|line| line.position == number);
        let earlier = earlier.filter_map(|line| line.exchanges.last());
        folded
            .map(|(_, exchange)| &exchange.id)
            .chain(earlier)
            .next()
    };
    let ends = [plan.exchanges.first(), plan.exchanges.last()];
    let ends = || {
        ends.into_iter()
            .flatten()
            .map(|(at, exchange)| (*at, &exchange.id))
    };
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        let Some(line) = line.strip_prefix(['-', '*', '•']).map(str::trim) else {
            continue;
        };
        let (said, numbers) = origins(line);
        let mut from: Vec<(u64, &ExchangeId)> = numbers
            .into_iter()
            .filter_map(|number| Some((number, known(number)?)))
            .collect();
        if from.is_empty() {
            from.extend(ends());
        }
        if !said.is_empty() {
            lines.push(SummaryLine::told(said, from));
        }
    }
    lines
}

/// A line without the numbers at its end, and the numbers.
fn origins(line: &str) -> (&str, Vec<u64>) {
    let Some(open) = line.rfind("(#") else {
        return (line, Vec::new());
    };
    let (said, numbers) = line.split_at(open);
    let numbers = numbers.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter_map(|number| number.parse().ok()).collect();
    (said.trim(), numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_at_the_end_of_a_line_are_where_it_comes_from() {
        assert_eq!(origins("It is so (#3, #14)"), ("It is so", vec![3, 14]));
        assert_eq!(
            origins("It (mostly) is so (#3)."),
            ("It (mostly) is so", vec![3])
        );
        assert_eq!(origins("It is so"), ("It is so", Vec::new()));
    }
}
