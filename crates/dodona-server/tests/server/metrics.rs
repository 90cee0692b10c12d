//! `/metrics`.

use std::sync::OnceLock;

use dodona_server::Metrics;
use serde_json::json;

use crate::support::Server;

/// One for the whole process: there can be no second.
fn collector() -> Metrics {
    static METRICS: OnceLock<Metrics> = OnceLock::new();
    METRICS.get_or_init(|| Metrics::install().unwrap()).clone()
}

/// The value of a line that begins so; zero where there is none.
fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(name));
    line.map_or(0.0, |line| {
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    })
}

#[tokio::test]
async fn what_happens_is_counted() {
    let metrics = collector();
    let server = Server::builder()
        .options(|options| options.metrics = Some(metrics))
        .start()
        .await;
    let owner = server.owner();
    let counters = [
        (
            r#"dodona_calls_total{method="echo.say",status="complete"}"#,
            3.0,
        ),
        (
            r#"dodona_calls_total{method="echo.fail",status="failed"}"#,
            1.0,
        ),
        (
            r#"dodona_calls_total{method="echo.count",status="complete"}"#,
            1.0,
        ),
        (
            r#"dodona_calls_refused_total{code="rpc.method_not_found"}"#,
            1.0,
        ),
        (r#"dodona_call_seconds_count{method="echo.say"}"#, 3.0),
        ("dodona_items_total", 11.0),
        ("dodona_journal_commits_total", 1.0),
        ("dodona_journal_entries_total", 12.0),
    ];
    let before = owner.get("/metrics").await.text();
    for _ in 0..3 {
        owner.call("echo.say", json!({"text": "x"})).await;
    }
    owner.ask("echo.fail", json!({})).await;
    owner.ask("echo.nothing", json!({})).await;
    let stream = owner.begin("echo.count", json!({"to": 10})).await;
    owner.events(&stream, 0).await.items().await;
    let response = owner.get("/metrics").await;
    assert_eq!(
        response.header("content-type"),
        Some("text/plain; version=0.0.4")
    );
    let after = response.text();
    for (name, by) in counters {
        let (was, is) = (value(&before, name), value(&after, name));
        // Other tests count into the same collector.
        assert!(is - was >= by, "{name} went from {was} to {is}");
    }
    for gauge in [
        "dodona_calls_running",
        "dodona_plugins_active",
        "dodona_plugins_not_active",
        "dodona_journal_backlog_bytes",
        "dodona_uptime_seconds",
    ] {
        assert!(
            after.contains(&format!("\n{gauge} ")),
            "{gauge} is not there"
        );
    }
    assert!(value(&after, "dodona_plugins_active") >= 2.0);
    server.stop().await;
}

#[tokio::test]
async fn a_secret_in_a_label_is_redacted() {
    let metrics = collector();
    let server = Server::builder()
        .options(|options| options.metrics = Some(metrics))
        .start()
        .await;
    for secret in [
        "AKIAZQ8VN3RT6YLW2KD9",
        "sk-proj-Zq8vN3rT6yLw2Kd9",
        "https://bob:hunterTwoPass@example.com/x",
        "password=correctHorseBattery",
        "-----BEGIN PRIVATE KEY-----\nTUlJRXZRSUJBREFOQmdr\n-----END PRIVATE KEY-----",
    ] {
        metrics::counter!("dodona_test_total", "label" => secret).increment(1);
    }
    let text = server.owner().get("/metrics").await.text();
    let lines = text
        .lines()
        .filter(|line| line.starts_with("dodona_test_total"));
    assert_eq!(lines.clone().count(), 5, "{text}");
    for line in lines {
        assert!(line.contains("[redacted]"), "{line}");
        for core in [
            "ZQ8VN3RT6YLW2KD9",
            "Zq8vN3rT6y",
            "hunterTwoPass",
            "Battery",
            "TUlJRX",
        ] {
            assert!(!line.contains(core), "{line}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn metrics_are_for_those_who_may_read() {
    let metrics = collector();
    let server = Server::builder()
        .options(|options| options.metrics = Some(metrics))
        .start()
        .await;
    let mut connection = server.connect().await;
    connection.request("GET", "/metrics", &[], b"").await;
    assert_eq!(connection.response().await.status, 401);
    let (token, _) = server.token("alice", "narrow", &["echo:*"]).await;
    let response = server.with_token(&token).get("/metrics").await;
    assert_eq!(
        (response.status, response.code().as_str()),
        (403, "auth.forbidden")
    );
    let text = server.owner().get("/metrics").await.text();
    assert!(!text.contains(&token) && !text.contains(&server.token));
    server.stop().await;
}
