//! What the parts of the program note down, on standard error.
//!
//! A call that fails says so itself, so by default only faults of the program are shown, and of a
//! server also what its operator should know.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use dodona_store::Redactor;
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

/// Cleans every line. It knows the keys of the settings once these are read.
static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Has lines from now on cleaned by a redactor that knows more. The first call counts.
pub(crate) fn redact_with(redactor: &Redactor) {
    let _ = REDACTOR.set(redactor.clone());
}

fn redactor() -> &'static Redactor {
    static DEFAULT: OnceLock<Redactor> = OnceLock::new();
    let default = || DEFAULT.get_or_init(Redactor::default);
    REDACTOR.get().unwrap_or_else(default)
}

/// Standard error, without its failures: a line that cannot be written is lost, because a full disk
/// or a closed pipe must not end a server that could go on serving.
struct LossyStderr;

impl Write for LossyStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let clean = redactor().clean(&text);
        let _ = io::stderr().write_all(clean.as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts logging, panics included: a plugin's panic fails its call only, so the usual message
/// about a dying thread would mislead.
pub(crate) fn start(audience: Audience) -> Result<(), Failure> {
    let asked = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let filter = asked.as_deref().unwrap_or(audience.filter());
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::usage(format!("invalid {VARIABLE}: {error}"))
            .hint("write a level (`info`) or pairs such as `dodona_hub=debug,warn`")
    })?;
    let stderr = io::stderr();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(stderr.is_terminal() && crate::paint::Paint::of(&stderr).colours())
        .with_writer(|| LossyStderr)
        // Without this the formatter reports a failed write with `eprintln!`, which panics where
        // standard error cannot be written, and a panic while a panic is logged aborts the process.
        .log_internal_errors(false)
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
