//! Where the key goes, and where it does not.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use dodona_llm::{ModelConfig, ModelError, Provider};
use dodona_testkit::model_server::{ModelServer, Reply};

use crate::rig::{BOTH, KEY, ask, build, config, error, model, question, text};

#[tokio::test]
async fn the_key_goes_into_the_providers_header() {
    let cases = [
        (Provider::OpenAi, "authorization", format!("Bearer {KEY}")),
        (Provider::Anthropic, "x-api-key", KEY.to_owned()),
    ];
    for (provider, header, value) in cases {
        let server = ModelServer::start().await;
        server.require_key(KEY);
        server.reply(Reply::text("in"));
        let said = ask(&*model(&server, provider), question("?")).await;
        assert_eq!(text(&said), "in");
        assert_eq!(server.last_request().header(header), value);
    }
}

#[tokio::test]
async fn a_redirection_is_told_and_nothing_is_sent_there() {
    for provider in BOTH {
        let (server, elsewhere) = (ModelServer::start().await, ModelServer::start().await);
        let target = format!("{}/chat/completions", elsewhere.url());
        server.reply(Reply::redirect(&target));
        let said = ask(&*model(&server, provider), question("?")).await;
        assert!(matches!(error(&said), ModelError::Settings { .. }));
        assert!(error(&said).to_string().contains(&target), "{said:?}");
        assert_eq!(elsewhere.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_key_that_the_provider_quotes_is_not_shown() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        server.require_key("another");
        let said = ask(&*model(&server, provider), question("?")).await;
        let error = error(&said);
        assert!(error.to_string().contains("wrong key `"), "{error}");
        assert!(error.hint().unwrap().contains("TEST_KEY"));
        assert!(!format!("{said:?} {error}").contains(KEY), "{said:?}");
    }
    let server = ModelServer::start().await;
    server.reply(Reply::stream().error("api_error", &format!("you sent {KEY}")));
    server.reply(Reply::text("x").error("api_error", &format!("you sent {KEY}")));
    let said = ask(&*model(&server, Provider::OpenAi), question("?")).await;
    assert!(error(&said).to_string().contains("you sent …"), "{said:?}");
    assert!(!format!("{said:?}").contains(KEY), "{said:?}");
}

#[tokio::test]
async fn the_key_that_a_provider_has_by_custom_goes_nowhere_else() {
    let server = ModelServer::start().await;
    server.reply(Reply::text("hello"));
    let config = ModelConfig {
        base_url: Some(server.url()),
        ..ModelConfig::new(Provider::OpenAi, "local")
    };
    let configs = [("local".to_owned(), config)].into();
    let everything: dodona_llm::Environment = Arc::new(|_| Some(KEY.to_owned()));
    let (models, _) = dodona_llm::Models::from_config(&configs, None, &everything);
    ask(&*models.default_model(), question("?")).await;
    assert_eq!(server.last_request().header("authorization"), "");
}

#[tokio::test]
async fn a_missing_key_is_named_and_nothing_is_sent() {
    for provider in BOTH {
        let server = ModelServer::start().await;
        let model = build(ModelConfig {
            key_env: Some("NOT_SET".to_owned()),
            ..config(&server, provider)
        });
        let said = ask(&*model, question("?")).await;
        assert!(matches!(error(&said), ModelError::Key { .. }));
        assert!(error(&said).to_string().contains("NOT_SET is not set"));
        assert!(error(&said).hint().unwrap().starts_with("set NOT_SET"));
        assert_eq!(server.requests().len(), 0);
    }
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_log_at_any_level_holds_the_key() {
    let logs = Logs::default();
    let writer = logs.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let server = ModelServer::start().await;
    server.reply(Reply::status(500));
    server.reply(Reply::text("hello"));
    let said = ask(&*model(&server, Provider::OpenAi), question("?")).await;
    assert_eq!(text(&said), "hello");
    drop(guard);
    let mut logged = String::from_utf8_lossy(&logs.0.lock().unwrap()).into_owned();
    write!(logged, "{:?}", config(&server, Provider::OpenAi)).unwrap();
    assert!(logged.contains("ModelConfig"));
    assert!(!logged.contains(KEY), "{logged}");
}
