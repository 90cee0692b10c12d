//! What the parts of the program note down, on standard error.
//!
//! A call that fails says so itself, so by default only faults of the program are shown, and of a
//! server also what its operator should know.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// The variable that says what to show, such as `debug` or `dodona_hub=debug`.
const VARIABLE: &str = "DODONA_LOG";

/// What is shown where the variable is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Somebody who waits for one answer, which tells by itself what went wrong with it. A plugin
    /// that is not active is told when it is called, and by `dodona doctor`.
    Caller,
    /// Somebody who runs a server.
    Operator,
}

impl Audience {
    fn filter(self) -> &'static str {
        match self {
            Self::Caller => "error,dodona_hub::manager=off",
            // What an MCP client does wrong, it is told.
            Self::Operator => "warn,rmcp=error",
        }
    }
}

/// Starts logging, panics included: a plugin's panic fails its call only, so the usual message
/// about a dying thread would mislead.
pub(crate) fn start(audience: Audience) -> Result<(), Failure> {
    let asked = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let filter = asked.as_deref().unwrap_or(audience.filter());
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::usage(format!("{VARIABLE} makes no sense: {error}"))
            .hint("write a level (`info`) or pairs such as `dodona_hub=debug,warn`")
    })?;
    let stderr = std::io::stderr();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(stderr.is_terminal() && crate::paint::Paint::of(&stderr).colours())
        .with_writer(std::io::stderr)
        .without_time()
        .compact();
    // It fails when there is a logger already, which then does the same.
    let _ = subscriber.try_init();
    log_panics();
    Ok(())
}

fn log_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let message = info.payload_as_str().unwrap_or("no message");
        match info.location() {
            Some(place) => tracing::error!(target: "panic", "{message} ({place})"),
            None => tracing::error!(target: "panic", "{message}"),
        }
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            usual(info);
        }
    }));
}
