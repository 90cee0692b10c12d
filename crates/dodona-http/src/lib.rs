//! An HTTP client for plugins: it reaches the public network and nothing of this machine or its
//! networks, unless the user allows a host.
//!
//! Start from [`HttpClient`]. `guard` decides where a request may go: a name is resolved once, every
//! address is checked, and the connection is made to one of those and to no other. Redirects are
//! followed one by one, each checked like the first URL. Time, size, redirects and the number of
//! requests at the same time are bounded.
//!
//! ```no_run
//! use dodona_http::{HttpClient, HttpRequest};
//!
//! # async fn example() -> Result<(), dodona_http::HttpError> {
//! let client = HttpClient::new(&[]);
//! let response = client.send(HttpRequest::get("https://example.org/")).await?;
//! assert_eq!(response.status, 200);
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//!
//! No cookies, no proxies, no compression, no connection reuse. It knows no plugin: which hosts a
//! plugin may reach is an argument ([`HttpClient::limited_to`]).

mod address;
mod client;
mod error;
mod guard;
mod request;

pub use client::{HttpAnswer, HttpClient};
pub use error::HttpError;
pub use guard::{host, parse};
pub use request::{HttpMethod, HttpRequest, HttpResponse};
pub use reqwest::Url;
