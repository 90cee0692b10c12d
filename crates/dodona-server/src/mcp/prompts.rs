//! Prompts: those of plugins, and one that has a question answered from the project.

use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult, Prompt,
    PromptArgument, PromptMessage, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalogue::Catalogue;
use super::client::Client;
use super::desk::Desk;
use super::errand::{self, Brought, Errand, Outcome};
use super::running::Stop;
use super::sources::{Kind, Source};
use super::{groups, page, resources};

/// How many prompts one page lists.
const PAGE: usize = 50;

/// A page of the prompts there are.
pub(super) async fn list(
    desk: &Desk,
    catalogue: &Catalogue,
    cursor: Option<&str>,
) -> Result<ListPromptsResult, ErrorData> {
    let mut prompts: Vec<Prompt> = catalogue.has_ask().then(ask).into_iter().collect();
    for source in of(catalogue) {
        let listed = source.list(desk).await;
        let own = listed["prompts"].as_array().into_iter().flatten();
        prompts.extend(own.filter_map(|prompt| passed_on(source, prompt)));
    }
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    let (page, next) = page::of(&prompts, |prompt| &prompt.name, cursor, PAGE)?;
    let mut result = ListPromptsResult::with_all_items(page.to_vec());
    result.next_cursor = next;
    Ok(result)
}

fn of(catalogue: &Catalogue) -> impl Iterator<Item = &Source> {
    let sources = catalogue.sources().iter();
    sources.filter(|source| source.kind == Kind::Prompts)
}

/// A prompt of a plugin, under a name that no other plugin's has. What was left out for its size
/// is no prompt.
fn passed_on(source: &Source, prompt: &Value) -> Option<Prompt> {
    let mut prompt: Prompt = serde_json::from_value(prompt.clone()).ok()?;
    prompt.name = format!("{}_{}", source.plugin, prompt.name);
    Some(prompt)
}

/// The prompt that has a question answered from the project.
fn ask() -> Prompt {
    let question = PromptArgument::new("question")
        .with_description("What to find out about the project")
        .with_required(true);
    let about =
        "Answer a question from the project's notes, threads, code and history, with citations";
    Prompt::new(groups::ASK, Some(about), Some(vec![question])).with_title("Ask about the project")
}

fn asked(question: &str) -> GetPromptResult {
    let text = format!(
        "{question}\n\nAnswer this from what the project itself says. Before you answer, search with \
         Dodona's tools, or have its tool `ask` search and answer, and cite what each statement \
         rests on by path and lines. Where the project does not say, say so."
    );
    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
}

/// A prompt, filled in.
pub(super) async fn get(
    desk: &Desk,
    client: &Client,
    catalogue: &Catalogue,
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    if catalogue.has_ask() && request.name == groups::ASK {
        let question = arguments["question"].as_str().unwrap_or_default();
        if question.trim().is_empty() {
            let message = "the prompt `ask` needs `question`";
            return Err(ErrorData::invalid_params(message, None));
        }
        return Ok(asked(question).into());
    }
    let named = of(catalogue).filter_map(|source| {
        let own = request.name.strip_prefix(&source.plugin)?;
        Some((source, own.strip_prefix('_')?.to_owned()))
    });
    // Of `a` and `a_b`, `a_b_c` is the one's that says more.
    let named = named.max_by_key(|(source, _)| source.plugin.len());
    let Some((source, name)) = named else {
        return Err(unknown(&request.name));
    };
    let method = source.read();
    let errand = Errand {
        method: &method,
        params: json!({ "name": name, "arguments": arguments }),
        // It may ask, and has to be heard.
        only_reads: false,
    };
    let brought = Brought {
        answers: request.input_responses,
        word: request.request_state,
    };
    match errand::carry(desk, client, errand, brought, context).await {
        Ok(Outcome::Asks(asks)) => Ok(asks.into()),
        Ok(Outcome::Value(value)) => Ok(filled_in(&value).into()),
        Err(Stop::Refused(refusal)) => Err(refusal),
        Err(Stop::Call(error)) => Err(resources::refusal(&error)),
    }
}

/// What a plugin answered with. A message that was left out for its size is none.
fn filled_in(value: &Value) -> GetPromptResult {
    let messages = value["messages"].as_array().into_iter().flatten();
    let messages = messages.filter_map(|one| PromptMessage::deserialize(one).ok());
    let result = GetPromptResult::new(messages.collect());
    match value["description"].as_str() {
        Some(description) => result.with_description(description),
        None => result,
    }
}

fn unknown(name: &str) -> ErrorData {
    let name: String = name.chars().take(100).collect();
    ErrorData::invalid_params(format!("there is no prompt `{name}`"), None)
}
