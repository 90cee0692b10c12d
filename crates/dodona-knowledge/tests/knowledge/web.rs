//! Pages of the web, from a server of our own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use dodona_knowledge::WebOptions;
use dodona_proto::ErrorCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{Setup, TestProject, agent};

/// How often anything was asked.
type Asked = Arc<AtomicUsize>;

const PAGE: &str = "<html><head><title>A page</title></head><body><nav>menu</nav><main><h1>Hello</h1><p>There is <a href='/more'>more</a>.</p></main></body></html>";

async fn serve() -> (u16, Asked) {
    let asked = Asked::default();
    let html = |text: &'static str| ([("content-type", "text/html; charset=utf-8")], text);
    let app = Router::new()
        .route("/page", get(move || async move { html(PAGE) }))
        .route("/hop", get(|| async { Redirect::temporary("/page") }))
        .route("/loop", get(|| async { Redirect::temporary("/loop") }))
        .route(
            "/private",
            get(|| async { Redirect::temporary("http://169.254.169.254/latest/") }),
        )
        .route(
            "/odd",
            get(|| async { Redirect::temporary("http://0x7f000001:1/") }),
        )
        .route(
            "/file",
            get(|| async { Redirect::temporary("file:///etc/passwd") }),
        )
        .route(
            "/text",
            get(|| async { ([("content-type", "text/plain")], "line\n".repeat(2_000)) }),
        )
        .route(
            "/json",
            get(|| async { ([("content-type", "application/json")], "{\"a\": 1}") }),
        )
        .route(
            "/image",
            get(|| async { ([("content-type", "image/png")], "x") }),
        )
        .route(
            "/packed",
            get(|| async {
                (
                    [("content-type", "text/html"), ("content-encoding", "gzip")],
                    "x",
                )
            }),
        )
        .route(
            "/large",
            get(|| async {
                (
                    [("content-type", "text/plain")],
                    Bytes::from(vec![b'x'; 3 << 20]),
                )
            }),
        )
        .route("/gone", get(|| async { StatusCode::NOT_FOUND }))
        .route(
            "/headers",
            get(|headers: HeaderMap| async move { format!("{headers:?}") }),
        )
        .route("/search", get(results))
        .route("/nosearch", get(|| async { "no JSON" }))
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&asked),
            count,
        ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (port, asked)
}

async fn count(
    State(asked): State<Asked>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    asked.fetch_add(1, Ordering::SeqCst);
    next.run(request).await
}

async fn results(RawQuery(query): RawQuery) -> impl IntoResponse {
    let content = query.unwrap_or_default();
    let results = json!({ "results": [
        { "title": "One", "url": "https://one.example/", "content": content },
        { "title": "Bad", "url": "javascript:alert(1)" },
        { "url": "http://two.example/" },
        { "title": "Three", "url": "https://three.example/" },
    ] });
    results.to_string()
}

async fn project(web: WebOptions, allow_hosts: Vec<String>) -> TestProject {
    let setup = Setup {
        web,
        allow_hosts,
        plugins: agent::plugins(),
        ..Setup::default()
    };
    TestProject::with_setup(&[], setup).await
}

/// One that may ask the server.
async fn allowed(port: u16) -> TestProject {
    let web = WebOptions {
        search_url: Some(format!("http://127.0.0.1:{port}/search")),
    };
    project(web, vec![format!("127.0.0.1:{port}")]).await
}

#[tokio::test]
async fn a_page_comes_as_markdown_with_its_title_and_source() {
    let (port, _) = serve().await;
    let project = allowed(port).await;
    let fetched = project
        .call(
            "web.fetch",
            json!({ "url": format!("http://127.0.0.1:{port}/hop#here") }),
        )
        .await
        .unwrap();
    let url = format!("http://127.0.0.1:{port}/page");
    assert_eq!(
        (&fetched["title"], &fetched["url"]),
        (&json!("A page"), &json!(url))
    );
    assert_eq!(
        fetched["text"],
        format!("# Hello\n\nThere is [more](http://127.0.0.1:{port}/more).")
    );
    assert_eq!(
        (&fetched["source"]["kind"], &fetched["source"]["path"]),
        (&json!("web"), &json!(url))
    );
    let resolved = project
        .call("search.resolve", json!({ "source": fetched["source"] }))
        .await
        .unwrap();
    assert_eq!(resolved, json!({ "text": fetched["text"], "stale": false }));
    // Another user cannot read it, even with its address and hash.
    let resolve = json!({ "source": fetched["source"] });
    let error = project.call_as("bob", "web.resolve", resolve).await;
    assert!(error.is_err(), "{error:?}");
    let mut other = fetched["source"].clone();
    other["hash"] = json!("0");
    let resolved = project
        .call("search.resolve", json!({ "source": other }))
        .await
        .unwrap();
    assert_eq!(resolved["stale"], true);
}

#[tokio::test]
async fn text_is_cut_where_there_is_no_room() {
    let (port, _) = serve().await;
    let project = allowed(port).await;
    let fetch = async |path: &str, tokens: u32| {
        let params =
            json!({ "url": format!("http://127.0.0.1:{port}/{path}"), "max_tokens": tokens });
        project.call("web.fetch", params).await.unwrap()
    };
    let cut = fetch("text", 100).await;
    assert_eq!(cut["truncated"], true);
    let text = cut["text"].as_str().unwrap();
    assert!(text.len() <= 400 && text.ends_with("line"), "{text}");
    assert_eq!(fetch("text", 50_000).await["truncated"], false);
    assert_eq!(fetch("json", 100).await["text"], "{\"a\": 1}");
    // It says who asks, and nothing else of us.
    let headers = fetch("headers", 1_000).await["text"].to_string();
    assert!(
        headers.contains("dodona/") && !headers.contains("cookie") && !headers.contains("referer"),
        "{headers}"
    );
}

#[tokio::test]
async fn nothing_of_this_machine_is_asked_however_it_is_spelled() {
    let (port, asked) = serve().await;
    let project = project(WebOptions::default(), Vec::new()).await;
    for host in [
        "127.0.0.1",
        "localhost",
        "LocalHost.",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "127.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "user@127.0.0.1",
        "foo.localhost",
    ] {
        let url = format!("http://{host}:{port}/page");
        let refused = project.call("web.fetch", json!({ "url": url })).await;
        let code = refused.unwrap_err().code;
        let expected = ["web.private_address", "rpc.invalid_params"];
        assert!(expected.contains(&code.as_str()), "{url}: {code}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn every_step_of_a_redirect_is_checked() {
    let (port, _) = serve().await;
    let project = allowed(port).await;
    for (path, code) in [
        ("private", "web.private_address"),
        ("odd", "web.private_address"),
        ("file", "rpc.invalid_params"),
        ("loop", "web.redirects"),
        ("gone", "web.status"),
        ("image", "web.not_text"),
        ("packed", "web.not_text"),
        ("large", "limit.size"),
    ] {
        let url = format!("http://127.0.0.1:{port}/{path}");
        let refused = project
            .call("web.fetch", json!({ "url": url }))
            .await
            .unwrap_err();
        assert_eq!(refused.code.as_str(), code, "{path}");
    }
    // The host is allowed with its port alone.
    let refused = project
        .call("web.fetch", json!({ "url": "http://127.0.0.1:1/" }))
        .await
        .unwrap_err();
    assert_eq!(refused.code.as_str(), "web.private_address");
}

#[tokio::test]
async fn a_search_is_made_where_one_is_configured() {
    let (port, _) = serve().await;
    let off = project(WebOptions::default(), Vec::new()).await;
    let refused = off
        .call("web.search", json!({ "query": "x" }))
        .await
        .unwrap_err();
    assert_eq!(refused.code.as_str(), "web.search_off");
    let project = allowed(port).await;
    let found = project
        .call("web.search", json!({ "query": "rust & more", "limit": 2 }))
        .await
        .unwrap();
    let urls: Vec<&Value> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| &result["url"])
        .collect();
    assert_eq!(urls, ["https://one.example/", "http://two.example/"]);
    assert_eq!(
        found["results"][0]["excerpt"],
        "q=rust+%26+more&format=json"
    );
    let other = WebOptions {
        search_url: Some(format!("http://127.0.0.1:{port}/nosearch")),
    };
    let refused = self::project(other, Vec::new())
        .await
        .call("web.search", json!({ "query": "x" }))
        .await
        .unwrap_err();
    assert_eq!(refused.code.as_str(), "web.search_failed");
}

#[tokio::test]
async fn an_agent_asks_before_anything_leaves_the_machine() {
    let (port, asked) = serve().await;
    let project = allowed(port).await;
    let params = json!({ "url": format!("http://127.0.0.1:{port}/page") });
    let refused = project
        .tool("q1", None, "web.fetch", params)
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::ApprovalRequired);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    // Nobody is asked about an address that can never be fetched.
    for url in [
        "file:///etc/passwd",
        "http://127.0.0.1:1/",
        "http://localhost/",
    ] {
        let params = json!({ "url": url });
        let fetched = project.tool("q1", None, "web.fetch", params).await;
        assert_ne!(
            fetched.unwrap_err().code,
            ErrorCode::ApprovalRequired,
            "{url}"
        );
    }
}
