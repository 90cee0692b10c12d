//! Searching the web through a SearXNG server, or whatever answers as one does.

use std::net::IpAddr;
use std::time::Duration;

use dodona_plugin::http::{self, HttpError, Url};
use reqwest::{Client, redirect};
use serde::Deserialize;

use super::error::WebError;
use super::types::{SearchResult, SearchResults};

/// How long an answer may take.
const TIME: Duration = Duration::from_secs(15);

/// How large it may be.
const BYTES: usize = 1 << 20;

/// How much of a page's words is passed on.
const EXCERPT: usize = 500;

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

/// The server that is asked.
pub(super) struct Engine {
    url: Url,
    client: Client,
}

impl Engine {
    /// One whose address the user has set. It may be on this machine: whoever sets it says so.
    pub(super) fn new(url: &str) -> Result<Self, WebError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = http::parse(url, None)?;
        let mut client = Client::builder()
            .redirect(redirect::Policy::none())
            .referer(false)
            .timeout(TIME);
        let address = http::host(&url).parse::<IpAddr>();
        if http::host(&url) == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
            // A proxy on the way to this machine would be a third who reads along.
            client = client.no_proxy();
        }
        let client = client.build().map_err(WebError::Client)?;
        Ok(Self { url, client })
    }

    /// Asks a question.
    pub(super) async fn ask(&self, query: &str, limit: u32) -> Result<SearchResults, WebError> {
        let host = || http::host(&self.url).to_owned();
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("q", query)
            .append_pair("format", "json");
        let unreachable = |source: reqwest::Error| WebError::Unreachable {
            host: host(),
            source: source.without_url(),
        };
        let mut response = self.client.get(url).send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(WebError::Status {
                host: host(),
                status,
            });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if bytes.len() + chunk.len() > BYTES {
                let (host, limit) = (host(), BYTES);
                return Err(HttpError::TooLarge { host, limit }.into());
            }
            bytes.extend_from_slice(&chunk);
        }
        let answer: Answer =
            serde_json::from_slice(&bytes).map_err(|_| WebError::NoResults { host: host() })?;
        let results = answer
            .results
            .into_iter()
            .filter(|found| is_web(&found.url));
        Ok(SearchResults {
            results: results.take(limit as usize).map(Into::into).collect(),
        })
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

impl From<Found> for SearchResult {
    fn from(found: Found) -> Self {
        let excerpt = found.content.unwrap_or_default();
        Self {
            title: found.title.unwrap_or_default(),
            excerpt: excerpt.chars().take(EXCERPT).collect(),
            url: found.url,
        }
    }
}
