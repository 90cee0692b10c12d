//! `dodona models test`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dodona_llm::{
    Environment, ModelConfig, ModelError, ModelEvent, ModelRequest, Models, Provider,
    process_environment,
};
use dodona_proto::{ExitKind, Message, Usage};
use futures_util::StreamExt;

use super::Known;
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::paint::one_line;
use crate::quantity;

/// How long one waits for the first word of a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many of a provider's models are named.
const NAMED: usize = 5;

/// What a model answered.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) text: String,
    usage: Option<Usage>,
    pub(super) after: Duration,
}

pub(super) async fn run(known: &Known, name: Option<&str>) -> Result<String, Failure> {
    let name = name.unwrap_or(&known.default);
    let Some(config) = known.settings.models.get(name) else {
        return unconfigured(known, name);
    };
    if config.provider == Provider::Offline {
        return Ok(offline());
    }
    let model = config.model.clone().unwrap_or_default();
    let environment = process_environment();
    match ask(name, config, &environment).await {
        Ok(answer) => Ok(told(name, &model, &answer)),
        Err(error) => Err(failed(name, config, error, &environment).await),
    }
}

fn offline() -> String {
    "offline works without a key or a network: it quotes the project\n".to_owned()
}

fn unconfigured(known: &Known, name: &str) -> Result<String, Failure> {
    if name == "offline" {
        return Ok(offline());
    }
    let names = known.settings.models.keys().map(String::as_str);
    let hint = match nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("set it with `dodona models set {name} --provider …`"),
    };
    Err(Failure::usage(format!("no model is called `{name}`")).hint(hint))
}

/// Send one request, without retries and without the fallback: the first error is what the user wants to see.
pub(super) async fn ask(
    name: &str,
    config: &ModelConfig,
    environment: &Environment,
) -> Result<Answer, ModelError> {
    let config = ModelConfig {
        retries: 0,
        fallback: None,
        first_token_timeout: config.first_token_timeout.min(PATIENCE),
        ..config.clone()
    };
    let configs = BTreeMap::from([(name.to_owned(), config)]);
    let (models, _) = Models::from_config(&configs, Some(name), environment);
    let content = "Answer with the one word: yes".to_owned();
    let request = ModelRequest {
        messages: vec![Message::User { content }],
        ..ModelRequest::default()
    };
    let started = Instant::now();
    let mut events = models.default_model().stream(request);
    let mut answer = Answer::default();
    while let Some(event) = events.next().await {
        match event? {
            ModelEvent::Text(more) => answer.text.push_str(&more),
            ModelEvent::Usage(usage) => answer.usage = Some(usage),
            _ => {}
        }
        if answer.after.is_zero() {
            answer.after = started.elapsed();
        }
    }
    Ok(answer)
}

fn told(name: &str, model: &str, answer: &Answer) -> String {
    let text: String = one_line(&answer.text).chars().take(60).collect();
    let after = quantity::show_elapsed(answer.after);
    let usage = answer.usage.map(|usage| {
        let (read, written) = (usage.input_tokens, usage.output_tokens);
        format!("; {read} tokens read, {written} written")
    });
    let usage = usage.unwrap_or_default();
    match text.as_str() {
        "" => format!("{name} ({model}) sent an empty answer{usage} · {after}\n"),
        text => format!("{name} ({model}) answers: {text}{usage} · {after}\n"),
    }
}

/// What went wrong, and where it may be the model's name, which names there are.
pub(super) async fn failed(
    name: &str,
    config: &ModelConfig,
    error: ModelError,
    environment: &Environment,
) -> Failure {
    let exit = match error {
        ModelError::Key { .. } | ModelError::NotFound { .. } | ModelError::Settings { .. } => {
            ExitKind::Usage
        }
        ModelError::Unavailable { .. } => ExitKind::Limited,
        _ => ExitKind::Failed,
    };
    let is_about_the_model = matches!(
        error,
        ModelError::NotFound { .. } | ModelError::Rejected { .. }
    );
    let others = match is_about_the_model {
        true => other_models(config, environment).await,
        false => None,
    };
    let failure = Failure::new(exit, format!("{name}: {error}"));
    match others.or_else(|| error.hint().map(str::to_owned)) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The provider's models that are nearest to the configured one, unless it is among them.
async fn other_models(config: &ModelConfig, environment: &Environment) -> Option<String> {
    let wanted = config.model.as_deref()?;
    let known = config.known_models(environment).await.ok()?;
    if known.is_empty() || known.iter().any(|model| model == wanted) {
        return None;
    }
    let mut ranked: Vec<(usize, &str)> = known
        .iter()
        .map(|model| (strsim::damerau_levenshtein(wanted, model), model.as_str()))
        .collect();
    ranked.sort_unstable();
    let near: Vec<String> = ranked
        .iter()
        .take(NAMED)
        .map(|(_, model)| format!("`{model}`"))
        .collect();
    Some(format!(
        "the provider has no model `{wanted}`; the nearest of its {} are {}",
        known.len(),
        near.join(", ")
    ))
}
