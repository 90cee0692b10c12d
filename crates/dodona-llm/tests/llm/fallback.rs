//! A model that takes over.

use std::collections::BTreeMap;

use dodona_llm::{ModelConfig, ModelError, ModelEvent, Models, Provider};
use dodona_testkit::model_server::{ModelServer, Reply, Step};

use crate::rig::{ask, config, environment, error, question, text};

async fn pair() -> (ModelServer, ModelServer, Models) {
    let (first, second) = (ModelServer::start().await, ModelServer::start().await);
    let configs = BTreeMap::from([
        (
            "first".to_owned(),
            ModelConfig {
                fallback: Some("second".to_owned()),
                retries: 1,
                ..config(&first, Provider::Anthropic)
            },
        ),
        ("second".to_owned(), config(&second, Provider::OpenAi)),
    ]);
    let (models, problems) = Models::from_config(&configs, Some("first"), &environment());
    assert_eq!(problems, []);
    (first, second, models)
}

#[tokio::test]
async fn another_model_answers_when_the_first_is_unavailable() {
    let (first, second, models) = pair().await;
    first.reply(Reply::status(503));
    first.reply(Reply::status(503));
    second.reply(Reply::text("instead"));
    let model = models.default_model();
    assert_eq!(model.name(), "first");
    let said = ask(&*model, question("?")).await;
    assert_eq!(text(&said), "instead");
    let tries: Vec<(u32, u32, &str)> = said
        .iter()
        .filter_map(|event| match event {
            Ok(ModelEvent::Retrying {
                attempt,
                attempts,
                model,
                ..
            }) => Some((*attempt, *attempts, model.as_str())),
            Ok(ModelEvent::FallingBack { model, .. }) => Some((0, 0, model.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(tries, [(2, 2, "first"), (0, 0, "second")]);
    assert_eq!(second.last_request().header("x-api-key"), "");
}

#[tokio::test]
async fn what_another_model_would_hide_is_told() {
    let (first, second, models) = pair().await;
    first.reply(Reply::status(401));
    let said = ask(&*models.default_model(), question("?")).await;
    assert!(matches!(error(&said), ModelError::Key { .. }));
    first.reply(Reply::text("half").step(Step::Cut));
    let said = ask(&*models.default_model(), question("?")).await;
    assert!(matches!(error(&said), ModelError::BrokenOff { .. }));
    assert_eq!(second.requests().len(), 0);
}

#[tokio::test]
async fn fallbacks_go_one_step_and_never_in_circles() {
    let (first, second) = (ModelServer::start().await, ModelServer::start().await);
    let circular = |server, other: &str| ModelConfig {
        fallback: Some(other.to_owned()),
        retries: 0,
        ..config(server, Provider::OpenAi)
    };
    let configs = BTreeMap::from([
        ("a".to_owned(), circular(&first, "b")),
        ("b".to_owned(), circular(&second, "a")),
        ("c".to_owned(), circular(&second, "nobody")),
        ("d".to_owned(), circular(&second, "d")),
    ]);
    let (models, problems) = Models::from_config(&configs, None, &environment());
    let named: Vec<&str> = problems
        .iter()
        .map(|problem| problem.model.as_str())
        .collect();
    assert_eq!(named, ["c", "d"]);
    first.reply(Reply::status(500));
    second.reply(Reply::status(500));
    let said = ask(&*models.get("a").unwrap(), question("?")).await;
    assert!(error(&said).is_passing());
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
    let said = ask(&*models.get("c").unwrap(), question("?")).await;
    assert!(error(&said).to_string().contains("`nobody`"), "{said:?}");
}
