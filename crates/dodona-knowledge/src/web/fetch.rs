//! Fetching a page.

use std::time::Duration;

use dodona_plugin::http::{self, HttpAnswer, HttpClient, HttpError, HttpRequest, Url};

use super::error::WebError;

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

/// Fetches a page, wherever it leads on the public network.
pub(super) async fn fetch(client: &HttpClient, url: Url) -> Result<Fetched, WebError> {
    let host = http::host(&url).to_owned();
    let seconds = TIME.as_secs();
    let late = Err(HttpError::Timeout { host, seconds }.into());
    let request = HttpRequest::get(url.as_str())
        .header("accept", "text/html, text/*;q=0.9, application/json;q=0.8");
    let fetching = async { read(client.open(request).await?).await };
    tokio::time::timeout(TIME, fetching).await.unwrap_or(late)
}

/// Reads an answer, if it is a text. What is not is not read.
async fn read(answer: HttpAnswer) -> Result<Fetched, WebError> {
    let url = answer.url().clone();
    let host = || http::host(&url).to_owned();
    let status = answer.status();
    if !(200..300).contains(&status) {
        return Err(WebError::Status {
            host: host(),
            status,
        });
    }
    let encoding = answer.header("content-encoding");
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(WebError::Compressed { host: host() });
    }
    let kind = answer.header("content-type").unwrap_or("text/html");
    let kind = kind.to_lowercase();
    let content_type = kind.split(';').next().unwrap_or_default().trim().to_owned();
    if !is_text(&content_type) {
        let what = content_type.chars().take(60).collect();
        return Err(WebError::NotText { host: host(), what });
    }
    let bytes = answer.bytes(BYTES).await?;
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
