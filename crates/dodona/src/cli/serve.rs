//! `dodona serve`.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use dodona_proto::ExitKind;
use dodona_server::{Metrics, ServerOptions};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::home::Home;
use crate::paint::Paint;
use crate::session::{Local, StartFailure};
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona serve                               until Ctrl-C
  dodona serve --listen 127.0.0.1:0 --ready-file ready.json
  dodona open                                from another terminal: a link for the browser

While it runs, every other command uses it. Programs send the token in the file `token` of the
home directory as `Authorization: Bearer …` to POST /rpc.";

/// Start the server: JSON-RPC, WebSocket, SSE, MCP and the page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The address to listen on; port 0 chooses a free port
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7421",
        env = "DODONA_LISTEN"
    )]
    listen: SocketAddr,

    /// Write `{"url": …}` to this file when the server is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,

    /// A host name under which clients may address the server, in addition to loopback names
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
}

impl Serve {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let home = Home::find()?;
        // Before the hub starts: it counts into what is installed then.
        let metrics = Metrics::install()
            .map_err(|error| Failure::new(ExitKind::Failed, error.to_string()))?;
        let mut local = Local::start_server(&home).await.map_err(already_served)?;
        let served = self.serve(&home, &mut local, metrics, shell).await;
        if served.is_err() {
            local.hub.stop(std::time::Duration::ZERO).await;
        }
        served
    }

    async fn serve(
        &self,
        home: &Home,
        local: &mut Local,
        metrics: Metrics,
        shell: &Shell,
    ) -> Result<(), Failure> {
        local.hub.local_token(&home.token).await?;
        let listener = TcpListener::bind(self.listen)
            .await
            .map_err(|error| self.unbound(&error))?;
        let address = listener
            .local_addr()
            .map_err(|error| self.unbound(&error))?;
        let url = format!("http://{address}");
        local.ownership.announce(&url).map_err(|error| {
            Failure::new(
                ExitKind::Storage,
                format!("could not write the server's address for other commands: {error}"),
            )
        })?;
        if let Some(file) = &self.ready_file {
            write_ready(file, &url)?;
        }
        tell(&url, address);
        let hub = local.hub.clone();
        tokio::spawn(async move { hub.report_damage().await });
        let shutdown = CancellationToken::new();
        let options = ServerOptions {
            allowed_hosts: self.allow_host.clone(),
            metrics: Some(metrics),
            connections: connections(local.server.max_connections),
            ..ServerOptions::default()
        };
        let serving = dodona_server::serve(listener, local.hub.clone(), options, shutdown.clone());
        let mut serving = std::pin::pin!(serving);
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = shell.interrupt.requested() => {
                shutdown.cancel();
                serving.await
            }
        };
        if let Some(file) = &self.ready_file {
            // It named a server that is gone.
            let _ = fs::remove_file(file);
        }
        ended.map_err(|error| Failure::new(ExitKind::Failed, format!("the server ended: {error}")))
    }

    fn unbound(&self, error: &io::Error) -> Failure {
        let failure = Failure::new(
            ExitKind::Failed,
            format!("could not listen on {}: {error}", self.listen),
        );
        match error.kind() {
            io::ErrorKind::AddrInUse => failure
                .hint("another program has that port; choose one with `--listen 127.0.0.1:0`"),
            _ => failure,
        }
    }
}

/// Open files that are not connections: databases, indexes, watches, MCP servers.
#[cfg(unix)]
const OTHER_FILES: u64 = 256;

/// As many connections as are wanted, or as the limit of open files allows after it was raised as
/// far as it can be.
#[cfg(unix)]
fn connections(wanted: u32) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let room = files.map_or(u64::MAX, |files| files.saturating_sub(OTHER_FILES).max(16));
    let allowed = u64::from(wanted).min(room);
    if allowed < u64::from(wanted) {
        tracing::warn!(
            allowed,
            wanted,
            "the limit of open files allows fewer connections than `server.max_connections`"
        );
    }
    usize::try_from(allowed).unwrap_or(usize::MAX)
}

#[cfg(not(unix))]
fn connections(wanted: u32) -> usize {
    wanted as usize
}

fn already_served(failure: StartFailure) -> Failure {
    match failure {
        StartFailure::Other(failure) => failure,
        StartFailure::Held(note) => {
            let url = note.as_ref().and_then(|note| note.url.clone());
            let failure: Failure = crate::owner::OwnerError::Held { note }.into();
            match url {
                Some(url) => failure.hint(format!("it serves at {url} already")),
                None => failure,
            }
        }
    }
}

/// Written beside and moved into place: whoever waits for the file finds it whole.
fn write_ready(file: &Path, url: &str) -> Result<(), Failure> {
    let draft = file.with_extension("new");
    let written = fs::write(&draft, json!({ "url": url }).to_string() + "\n")
        .and_then(|()| fs::rename(&draft, file));
    written.map_err(|error| {
        Failure::new(
            ExitKind::Storage,
            format!("could not write `{}`: {error}", file.display()),
        )
    })
}

fn tell(url: &str, address: SocketAddr) {
    let paint = Paint::of(&io::stderr());
    let mut err = io::stderr().lock();
    // A closed terminal does not keep a server from serving.
    let _ = writeln!(
        err,
        "serving at {}   {}",
        paint.bold(url),
        paint.dim("Press Ctrl-C to stop. Run `dodona open` to open the page.")
    );
    if !address.ip().is_loopback() {
        let _ = writeln!(
            err,
            "{} this address can be reached from other machines, and what is sent is not encrypted",
            paint.note("warning:")
        );
    }
}
