//! `dodona models`: from nothing to a model that answers.

use std::fs;

use dodona_testkit::model_server::{ModelServer, Reply};
use insta::assert_snapshot;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::harness::{Home, check};

/// A provider that runs beside the test.
struct Served {
    server: ModelServer,
    _runtime: Runtime,
}

fn serve() -> Served {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    Served {
        server,
        _runtime: runtime,
    }
}

/// The output without the port and the time.
fn stable(text: &str, served: &Served) -> String {
    let text = text.replace(&served.server.url(), "[provider]");
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.split(" · ").next().unwrap_or_default();
        lines.push(line.to_owned());
    }
    lines.join("\n")
}

fn set(home: &Home, served: &Served, more: &[&str]) {
    let url = served.server.url();
    let mut arguments = vec![
        "models",
        "set",
        "mine",
        "--provider",
        "openai",
        "--model",
        "small",
        "--base-url",
        &url,
    ];
    arguments.extend(more);
    let outcome = home.run(&arguments);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

#[test]
fn help_has_the_way_from_nothing_to_a_model() {
    check("help_models", &["models", "--help"]);
    check("help_models_set", &["models", "set", "--help"]);
}

#[test]
fn without_settings_there_is_the_one_that_needs_nothing() {
    let home = Home::new();
    assert_snapshot!(home.run(&["models", "list"]).shown());
    assert_snapshot!(home.run(&["models", "test"]).shown());
}

#[cfg(unix)]
#[test]
fn a_key_that_is_piped_in_is_kept_for_its_owner_and_sent_to_the_provider() {
    use std::os::unix::fs::PermissionsExt;
    let (home, served) = (Home::new(), serve());
    served.server.require_key("sk-secret");
    let url = served.server.url();
    let arguments = [
        "models",
        "set",
        "mine",
        "--provider",
        "openai",
        "--model",
        "small",
        "--base-url",
        &url,
        "--key",
        "--default",
    ];
    let outcome = home.run_with_input(&arguments, "sk-secret\n");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!outcome.shown().contains("sk-secret"));
    let key = home.path().join("config/keys/mine");
    assert_eq!(fs::read_to_string(&key).unwrap(), "sk-secret\n");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    served.server.reply(Reply::text("Yes.").usage(9, 2, 0));
    let outcome = home.run(&["models", "test"]);
    assert_snapshot!(stable(&outcome.shown(), &served), @r"
    $ dodona models test
    ----- stdout
    mine (small) answers: Yes.; 9 tokens read, 2 written
    ----- exit 0
    ");
    let listed = home.run(&["models", "list"]).shown();
    assert!(!listed.contains("sk-secret"));
    assert_snapshot!(stable(&listed, &served), @r"
    $ dodona models list
    ----- stdout
    MODEL           PROVIDER  NAME AT PROVIDER  KEY                                    ADDRESS
    mine (default)  openai    small             [home]/config/keys/mine  [provider]
    offline         offline                     not needed
    ----- exit 0
    ");

    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_snapshot!(home.run(&["models", "test", "mine"]).shown(), @r"
    $ dodona models test mine
    ----- stderr
    error: mine: the key file [home]/config/keys/mine can be read by others (mode 0644)
    hint: run `chmod 600 [home]/config/keys/mine`
    ----- exit 2
    ");
}

#[test]
fn what_is_written_leaves_the_rest_of_the_file_as_it_is() {
    let (home, served) = (Home::new(), serve());
    let before = "# mine\n[journal]\nmax_age = \"30d\" # long\n\n[models.mine]\nprovider = \"ollama\" # first\nmodel = \"old\"\nkey_env = \"OLD\"\n";
    home.configure(before);
    set(&home, &served, &["--context-window", "32000", "--default"]);
    let file = home.path().join("config/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert_snapshot!(stable(&text, &served), @r#"
    # mine
    [journal]
    max_age = "30d" # long

    [models.mine]
    provider = "openai"
    model = "small"
    key_env = "OLD"
    base_url = "[provider]"
    context_window = 32000

    [agent]
    model = "mine"
    "#);
}

#[test]
fn what_is_wrong_is_told_before_anything_is_written() {
    let home = Home::new();
    let cases: [&[&str]; 5] = [
        &["models", "set", "mine", "--model", "x"],
        &["models", "set", "mine", "--provider", "opnai"],
        &["models", "set", "../mine", "--provider", "ollama"],
        &[
            "models",
            "set",
            "mine",
            "--provider",
            "openai",
            "--model",
            "x",
            "--base-url",
            "http://model.lan/v1",
        ],
        &[
            "models",
            "set",
            "mine",
            "--provider",
            "ollama",
            "--model",
            "x",
            "--fallback",
            "nobody",
        ],
    ];
    let told: Vec<String> = cases.iter().map(|case| home.run(case).shown()).collect();
    assert_snapshot!(told.join("\n"));
    assert!(!home.path().join("config/config.toml").exists());
}

#[test]
fn a_model_that_does_not_answer_is_told_with_what_to_do() {
    let (home, served) = (Home::new(), serve());
    set(&home, &served, &["--key-env", "MY_KEY"]);
    let provider = served.server.url();
    let provider = provider
        .trim_start_matches("http://")
        .trim_end_matches("/v1")
        .to_owned();
    let mut told = vec![home.run(&["models", "test", "mine"]).shown()];
    let test = || {
        let mut command = home.command(&["models", "test", "mine"]);
        let output = command.env("MY_KEY", "sk-wrong").output().unwrap();
        home.outcome(&["models", "test", "mine"], output).shown()
    };
    served.server.require_key("sk-right");
    told.push(test());
    served.server.require_key("sk-wrong");
    served.server.models(&["smaller", "huge", "smal", "tiny"]);
    served
        .server
        .reply(Reply::status(404).message("no such model"));
    told.push(test());
    served.server.reply(Reply::status(429).message("slow down"));
    told.push(test());
    served
        .server
        .reply(Reply::redirect("https://elsewhere.example/v1"));
    told.push(test());
    drop(served);
    told.push(test());
    let told = told.join("\n").replace(&provider, "[provider]");
    assert!(!told.contains("sk-wrong"), "{told}");
    assert_snapshot!(told);
    assert_snapshot!(home.run(&["models", "test", "mien"]).shown());
}

#[test]
fn programs_get_json() {
    let (home, served) = (Home::new(), serve());
    set(&home, &served, &["--key-env", "MY_KEY", "--default"]);
    let listed = home.run(&["models", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let mine = &listed[0];
    assert_eq!(mine["name"], "mine");
    assert_eq!(mine["default"], true);
    assert_eq!(mine["base_url"], served.server.url());
    assert_eq!(mine["key"]["state"], "missing");
    assert_eq!(mine["key"]["source"], "MY_KEY");
    assert_eq!(listed[1]["key"]["state"], "not_needed");
}

#[test]
fn a_model_is_made_the_default_and_removed() {
    let home = Home::new();
    home.configure(
        "# mine\n[models.local]\nprovider = \"ollama\"\nmodel = \"qwen3:8b\"\n\n[models.spare]\nprovider = \"ollama\"\nmodel = \"qwen3:4b\"\nfallback = \"local\"\n",
    );
    let config = || fs::read_to_string(home.path().join("config/config.toml")).unwrap();
    assert_eq!(home.run(&["models", "default", "spare"]).code, Some(0));
    assert!(config().contains("model = \"spare\""), "{}", config());
    let typo = home.run(&["models", "default", "spaer"]);
    assert!(
        typo.stderr.contains("did you mean `spare`?"),
        "{}",
        typo.stderr
    );
    let used = home.run(&["models", "remove", "local"]);
    assert_eq!(used.code, Some(2));
    assert!(
        used.stderr.contains("the fallback of `spare`"),
        "{}",
        used.stderr
    );
    assert_eq!(home.run(&["models", "remove", "spare"]).code, Some(0));
    assert!(
        !config().contains("spare") && config().contains("# mine"),
        "{}",
        config()
    );
    assert_eq!(home.run(&["models", "remove", "local"]).code, Some(0));
    assert!(!config().contains("local"), "{}", config());
}
