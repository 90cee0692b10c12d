//! The page: files that anybody may read, with what keeps them harmless. What is shown in them comes
//! from `/rpc`, and needs a session.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use dodona_web::File;

/// What the page may load and where it may send: its own files, and this server. Markup that is made
/// from a string is refused by the browser, but for the templates that the framework has compiled;
/// so are scripts, but for the graph's layout, which runs as a worker.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html \
     dodona-worker";

/// For everything that is not the page: should a browser show it, it can do nothing.
const OTHER_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// The page itself.
pub(crate) async fn index(headers: HeaderMap) -> Response {
    answer(dodona_web::index(), &headers)
}

/// A file of the page, for every path that is no route.
pub(crate) async fn file(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let reads = matches!(method, Method::GET | Method::HEAD);
    let found = dodona_web::file(uri.path().trim_start_matches('/'));
    match found.filter(|_| reads) {
        Some(file) => answer(file, &headers),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Headers for every answer, whoever gives it.
pub(crate) async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    };
    say(header::CONTENT_SECURITY_POLICY, OTHER_POLICY);
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(header::REFERRER_POLICY, "no-referrer");
    response
}

fn answer(file: &'static File, asked: &HeaderMap) -> Response {
    let known = asked.get(header::IF_NONE_MATCH);
    if known.is_some_and(|tag| tag.as_bytes() == file.tag.as_bytes()) {
        return with_headers(file, StatusCode::NOT_MODIFIED, None, &[]);
    }
    let (encoding, body) = smallest(file, asked);
    with_headers(file, StatusCode::OK, encoding, body)
}

/// The form with the fewest bytes that the browser can read.
fn smallest(file: &'static File, asked: &HeaderMap) -> (Option<&'static str>, &'static [u8]) {
    let accepted = asked
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let accepts = |name: &str| {
        let mut codings = accepted.split(',').map(str::trim);
        codings.any(|coding| {
            let (coding, quality) = coding.split_once(';').unwrap_or((coding, ""));
            coding.trim() == name && !matches!(quality.trim(), "q=0" | "q=0.0")
        })
    };
    match (file.brotli, file.gzip) {
        (Some(body), _) if accepts("br") => (Some("br"), body),
        (_, Some(body)) if accepts("gzip") => (Some("gzip"), body),
        _ => (None, file.plain),
    }
}

fn with_headers(
    file: &'static File,
    status: StatusCode,
    encoding: Option<&'static str>,
    body: &'static [u8],
) -> Response {
    let caching = match file.is_immutable() {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let mut response = Response::new(Body::from(Bytes::from_static(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let mut say = |name, value| headers.insert(name, HeaderValue::from_static(value));
    say(header::CONTENT_TYPE, file.content_type());
    say(header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
    say(header::CACHE_CONTROL, caching);
    say(header::ETAG, file.tag);
    say(header::VARY, "accept-encoding");
    say(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    if let Some(encoding) = encoding {
        say(header::CONTENT_ENCODING, encoding);
    }
    response
}
