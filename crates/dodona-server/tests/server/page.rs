//! The page: its files, what they are sent with, and the way in.

use serde_json::json;

use crate::http::Response;
use crate::support::Server;

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut connection = server.connect().await;
    connection.request("GET", path, headers, b"").await;
    connection.try_response().await.unwrap()
}

/// A file whose name says what is in it, or the index where the page is not part of the build.
fn largest() -> &'static dodona_web::File {
    let files = dodona_web::files().iter();
    files.max_by_key(|file| file.plain.len()).unwrap()
}

#[tokio::test]
async fn the_page_allows_nothing_inline_and_nothing_from_elsewhere() {
    let server = Server::start().await;
    let page = get(&server, "/", &[]).await;
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self';",
        "style-src 'self';",
        "connect-src 'self';",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{part} is not in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    server.stop().await;
}

#[tokio::test]
async fn every_file_of_the_page_is_served_in_the_smallest_form_a_browser_reads() {
    let server = Server::start().await;
    let file = largest();
    let path = format!("/{}", file.path);
    let cases = [
        ("", None, file.plain),
        ("identity", None, file.plain),
        (
            "gzip",
            file.gzip.map(|_| "gzip"),
            file.gzip.unwrap_or(file.plain),
        ),
        (
            "gzip, deflate, br",
            file.brotli.map(|_| "br"),
            file.brotli.unwrap_or(file.plain),
        ),
        (
            "br;q=0, gzip",
            file.gzip.map(|_| "gzip"),
            file.gzip.unwrap_or(file.plain),
        ),
    ];
    for (accepted, encoding, body) in cases {
        let response = get(&server, &path, &[("Accept-Encoding", accepted)]).await;
        assert_eq!(response.status, 200, "{accepted}");
        assert_eq!(response.header("content-encoding"), encoding, "{accepted}");
        assert_eq!(response.header("vary"), Some("accept-encoding"));
        assert!(response.body == body, "{accepted}: another body");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_browser_that_has_a_file_gets_it_no_second_time() {
    let server = Server::start().await;
    let first = get(&server, "/", &[]).await;
    let tag = first.header("etag").unwrap();
    let again = get(&server, "/", &[("If-None-Match", tag)]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let changed = get(&server, "/", &[("If-None-Match", "\"other\"")]).await;
    assert_eq!(changed.status, 200);
    let named = dodona_web::files().iter().find(|file| file.is_immutable());
    if let Some(file) = named {
        let response = get(&server, &format!("/{}", file.path), &[]).await;
        let caching = response.header("cache-control").unwrap();
        assert!(caching.contains("immutable"), "{caching}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_no_file_of_the_page_is_not_found() {
    let server = Server::start().await;
    for path in [
        "/nothing",
        "/assets/",
        "/assets/../index.html",
        "//index.html/",
        "/%69ndex.html",
    ] {
        let response = get(&server, path, &[]).await;
        assert_eq!(response.status, 404, "{path}");
        assert_eq!(
            response.header("content-security-policy"),
            Some("default-src 'none'; frame-ancestors 'none'"),
            "{path}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_browser_with_a_used_link_comes_to_the_page_and_a_program_gets_the_error() {
    let server = Server::start().await;
    let html = ("Accept", "text/html,application/xhtml+xml");
    for path in ["/login?code=guessed", "/login"] {
        let page = get(&server, path, &[html]).await;
        let to = page.header("location");
        assert_eq!(
            (page.status, to),
            (303, Some("/#/signed-out?why=link")),
            "{path}"
        );
        assert_eq!(page.header("cache-control"), Some("no-store"));
        assert_eq!(page.header("set-cookie"), None);
    }
    assert_eq!(get(&server, "/login?code=guessed", &[]).await.status, 401);
    server.stop().await;
}

#[tokio::test]
async fn a_link_may_say_which_project_is_shown_and_nothing_else() {
    let server = Server::start().await;
    let owner = server.owner();
    let html = ("Accept", "text/html");
    for (project, place) in [
        ("p-1", Some("/#/?project=p-1")),
        ("https://elsewhere", Some("/#/signed-out?why=link")),
    ] {
        let code = owner.call("hub.login_code", json!({})).await;
        let code = code["code"].as_str().unwrap();
        let path = format!("/login?code={code}&project={project}");
        let response = get(&server, &path, &[html]).await;
        assert_eq!(response.header("location"), place, "{project}");
    }
    server.stop().await;
}
