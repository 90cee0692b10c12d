//! Asking for a page.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION, USER_AGENT};
use reqwest::{Client, Response, Url, redirect};

use super::error::WebError;
use super::guard::{self, Allowed, Guard};

/// How often one address may lead to another.
const REDIRECTS: usize = 5;

/// How long all of it may take.
pub(super) const TIME: Duration = Duration::from_secs(20);

/// How much is read.
pub(super) const BYTES: usize = 2 << 20;

/// What came back.
pub(super) struct Fetched {
    /// Where it came from in the end.
    pub(super) url: Url,
    /// Without parameters, in lower case.
    pub(super) content_type: String,
    pub(super) text: String,
}

/// A client that goes where it is sent and nowhere else: it follows no redirect, uses no proxy, keeps
/// no connection and no cookie, and asks for no compression.
pub(super) fn client(allowed: &Allowed) -> Result<Client, WebError> {
    // An error says that somebody else has chosen a provider of cryptography, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let guard = Guard {
        allowed: allowed.clone(),
    };
    Client::builder()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .pool_max_idle_per_host(0)
        .connect_timeout(TIME / 2)
        .dns_resolver(std::sync::Arc::new(guard))
        .build()
        .map_err(WebError::Client)
}

/// Fetches a page, wherever it leads on the public network.
pub(super) async fn fetch(
    client: &Client,
    allowed: &Allowed,
    url: Url,
) -> Result<Fetched, WebError> {
    let host = guard::host(&url).to_owned();
    let late = WebError::Late {
        host,
        seconds: TIME.as_secs(),
    };
    let fetching = follow(client, allowed, url);
    tokio::time::timeout(TIME, fetching)
        .await
        .unwrap_or(Err(late))
}

async fn follow(client: &Client, allowed: &Allowed, first: Url) -> Result<Fetched, WebError> {
    let mut url = first.clone();
    for _ in 0..=REDIRECTS {
        guard::check(&url, allowed)?;
        let response = ask(client, &url).await?;
        let status = response.status();
        if status.is_redirection()
            && let Some(next) = leads_to(response.headers())
        {
            url = guard::parse(next, Some(&url))?;
            continue;
        }
        if !status.is_success() {
            let host = guard::host(&url).to_owned();
            let status = status.as_u16();
            return Err(WebError::Status { host, status });
        }
        return read(response, url).await;
    }
    Err(WebError::Redirects {
        host: guard::host(&first).to_owned(),
        count: REDIRECTS,
    })
}

fn leads_to(headers: &HeaderMap) -> Option<&str> {
    headers.get(LOCATION).and_then(|next| next.to_str().ok())
}

async fn ask(client: &Client, url: &Url) -> Result<Response, WebError> {
    let request = client
        .get(url.clone())
        .header(USER_AGENT, concat!("dodona/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "text/html, text/*;q=0.9, application/json;q=0.8");
    let sent = request.send().await;
    sent.map_err(|error| {
        let error = error.without_url();
        guard::said(&error).unwrap_or_else(|| WebError::Unreachable {
            host: guard::host(url).to_owned(),
            source: error,
        })
    })
}

async fn read(mut response: Response, url: Url) -> Result<Fetched, WebError> {
    let host = || guard::host(&url).to_owned();
    let encoding = response.headers().get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(WebError::Compressed { host: host() });
    }
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("text/html");
    let kind = kind.to_lowercase();
    let content_type = kind.split(';').next().unwrap_or_default().trim().to_owned();
    if !is_text(&content_type) {
        let what = content_type.chars().take(60).collect();
        return Err(WebError::NotText { host: host(), what });
    }
    let mut bytes = Vec::new();
    let unreachable = |source: reqwest::Error| WebError::Unreachable {
        host: host(),
        source: source.without_url(),
    };
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if bytes.len() + chunk.len() > BYTES {
            let host = host();
            return Err(WebError::TooLarge { host, limit: BYTES });
        }
        bytes.extend_from_slice(&chunk);
    }
    let text = decode(&bytes, &kind);
    Ok(Fetched {
        url,
        content_type,
        text,
    })
}

fn is_text(content_type: &str) -> bool {
    let (kind, subtype) = content_type.split_once('/').unwrap_or_default();
    let structured = |ending: &str| subtype == ending || subtype.ends_with(&format!("+{ending}"));
    kind == "text" || kind == "application" && (structured("json") || structured("xml"))
}

/// Text of UTF-8, or of the Latin alphabet that was usual before it; what fits neither is marked.
fn decode(bytes: &[u8], content_type: &str) -> String {
    let named = |name: &str| content_type.contains(name);
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) if named("8859-1") || named("windows-1252") => {
            bytes.iter().map(|byte| char::from(*byte)).collect()
        }
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}
