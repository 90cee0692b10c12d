//! Requests to a server of our own: redirects, bounds, and what does not follow to another host.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Redirect};
use axum::routing::{any, get};
use dodona_http::{HttpClient, HttpError, HttpMethod, HttpRequest};
use tokio::net::TcpListener;

/// Answers with what was asked.
async fn echo(method: Method, headers: HeaderMap, body: Bytes) -> String {
    let mut names: Vec<&str> = headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    format!(
        "{method} {} {}",
        names.join(","),
        String::from_utf8_lossy(&body)
    )
}

async fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let across = format!("http://localhost:{port}/echo");
    let app = Router::new()
        .route("/echo", any(echo))
        .route("/see-other", any(|| async { Redirect::to("/echo") }))
        .route(
            "/found",
            any(|| async { (StatusCode::FOUND, [("location", "/echo")]) }),
        )
        .route("/again", any(|| async { Redirect::temporary("/echo") }))
        .route(
            "/across",
            any(move || async move { Redirect::temporary(&across) }),
        )
        .route(
            "/not-modified",
            get(|| async { (StatusCode::NOT_MODIFIED, [("location", "/echo")]) }),
        )
        .route(
            "/bytes",
            get(|| async { Bytes::from(vec![0xff; 3000]).into_response() }),
        );
    tokio::spawn(async move { axum::serve(listener, app).await });
    port
}

fn client(port: u16) -> HttpClient {
    HttpClient::new(&[format!("127.0.0.1:{port}"), format!("localhost:{port}")])
}

fn text(body: Vec<u8>) -> String {
    String::from_utf8(body).unwrap()
}

#[tokio::test]
async fn redirects_keep_or_change_the_method_as_browsers_do() {
    let port = serve().await;
    let client = client(port);
    for (path, method, expected) in [
        ("/again", HttpMethod::Post, "POST"),
        ("/see-other", HttpMethod::Post, "GET"),
        ("/see-other", HttpMethod::Put, "GET"),
        ("/found", HttpMethod::Post, "GET"),
        ("/found", HttpMethod::Put, "PUT"),
    ] {
        let mut request = HttpRequest::new(method, format!("http://127.0.0.1:{port}{path}"));
        request.body = Some(b"body".to_vec());
        let request = request.header("content-type", "text/plain");
        let response = client.send(request).await.unwrap();
        let body = text(response.body);
        assert!(
            body.starts_with(&format!("{expected} ")),
            "{path} {method:?}: {body}"
        );
        assert_eq!(body.ends_with("body"), expected != "GET", "{body}");
        assert_eq!(body.contains("content-type"), expected != "GET", "{body}");
    }
    let same = format!("http://127.0.0.1:{port}/not-modified");
    assert_eq!(
        client.send(HttpRequest::get(same)).await.unwrap().status,
        304
    );
}

#[tokio::test]
async fn credentials_do_not_follow_to_another_origin() {
    let port = serve().await;
    let client = client(port);
    let request = |path: &str| {
        HttpRequest::get(format!("http://127.0.0.1:{port}{path}"))
            .header("Authorization", "Bearer secret")
            .header("Cookie", "a=b")
            .header("X-Api-Key", "secret")
            .header("X-Plain", "seen")
    };
    let same = text(client.send(request("/again")).await.unwrap().body);
    assert!(
        same.contains("authorization") && same.contains("x-api-key"),
        "{same}"
    );
    let other = text(client.send(request("/across")).await.unwrap().body);
    for name in ["authorization", "cookie", "x-api-key"] {
        assert!(!other.contains(name), "{other}");
    }
    assert!(other.contains("x-plain"), "{other}");
}

#[tokio::test]
async fn a_limited_client_reaches_its_hosts_and_no_other() {
    let port = serve().await;
    let all = client(port);
    let one = all.limited_to(vec![format!("127.0.0.1:{port}")]);
    let url = |host: &str| format!("http://{host}:{port}/echo");
    assert!(one.send(HttpRequest::get(url("127.0.0.1"))).await.is_ok());
    let refused = one
        .send(HttpRequest::get(url("localhost")))
        .await
        .unwrap_err();
    assert!(matches!(refused, HttpError::NotGranted { .. }), "{refused}");
    let across = format!("http://127.0.0.1:{port}/across");
    let refused = one.send(HttpRequest::get(across)).await.unwrap_err();
    assert!(matches!(refused, HttpError::NotGranted { .. }), "{refused}");
    let none = all.limited_to(Vec::new());
    assert!(none.check("https://example.org/").is_err());
}

#[tokio::test]
async fn bodies_and_requests_at_the_same_time_are_bounded() {
    let port = serve().await;
    let client = client(port).limited_to(vec!["127.0.0.1".to_owned()]);
    let bytes = |limit: usize| HttpRequest {
        max_bytes: limit,
        ..HttpRequest::get(format!("http://127.0.0.1:{port}/bytes"))
    };
    assert_eq!(client.send(bytes(3000)).await.unwrap().body.len(), 3000);
    let large = client.send(bytes(2999)).await.unwrap_err();
    assert!(
        matches!(large, HttpError::TooLarge { limit: 2999, .. }),
        "{large}"
    );
    // Eight answers that nobody reads hold all slots; the ninth waits, within its time.
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(client.open(bytes(1)).await.unwrap());
    }
    let waiting = HttpRequest {
        timeout: Duration::from_millis(200),
        ..bytes(3000)
    };
    let late = client.send(waiting.clone()).await.unwrap_err();
    assert!(matches!(late, HttpError::Timeout { .. }), "{late}");
    held.pop();
    assert!(client.send(bytes(3000)).await.is_ok());
    // A body that is too large to send never leaves.
    let mut huge = bytes(1);
    huge.body = Some(vec![0; (4 << 20) + 1]);
    assert!(matches!(
        client.send(huge).await,
        Err(HttpError::Request { .. })
    ));
}
