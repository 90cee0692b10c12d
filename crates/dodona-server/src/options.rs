//! What an operator may set about the wire.

use std::time::Duration;

use crate::telemetry::Metrics;

/// Bounds and times of a server. The defaults suit one machine.
#[derive(Clone)]
pub struct ServerOptions {
    /// Names, beside the loopback ones, under which the server may be addressed.
    pub allowed_hosts: Vec<String>,
    /// The most connections at once; further ones are answered with 503. Default: 16 384.
    pub connections: usize,
    /// The most bytes of a request or a WebSocket message.
    pub body_bytes: usize,
    /// The most calls in one batch.
    pub batch: usize,
    /// How many calls of a batch run at once.
    pub batch_parallel: usize,
    /// How many calls of one WebSocket connection run at once; further ones wait to be read.
    pub in_flight: usize,
    /// The most subscriptions of one WebSocket connection.
    pub subscriptions: usize,
    /// How long a client may take to send its headers.
    pub header_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a client may take no byte of what is sent to it.
    pub write_timeout: Duration,
    /// How often something is sent on a quiet stream or connection.
    pub keep_alive: Duration,
    /// After how long a WebSocket connection that sends nothing, not even a pong, is closed.
    pub idle_timeout: Duration,
    /// How long running calls may take to finish at a shutdown.
    pub drain: Duration,
    /// What `/metrics` shows; without it the route is not there.
    pub metrics: Option<Metrics>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            connections: 16_384,
            body_bytes: 8 << 20,
            batch: 100,
            batch_parallel: 16,
            in_flight: 128,
            subscriptions: 256,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(60),
            drain: Duration::from_secs(5),
            metrics: None,
        }
    }
}
