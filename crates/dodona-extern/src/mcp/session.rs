//! One connection to a server, from its first word to its last.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dodona_plugin::PluginLog;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, Implementation, PingRequest, ProtocolVersion,
    RequestMetaObject, ServerPeerInfo, ServerResult, SubscriptionFilter, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use rmcp::{RoleClient, ServiceError};
use tokio::sync::Mutex;

use super::address::{Address, Url};
use super::config::{Protocol, ServerConfig};
use super::frames::Frames;
use super::http::{self, BoundedHttp};
use super::tap::{Line, Probed, Tap};
use crate::child::{Ended, GuardCommand, Keeper, Process, Program, Start, with_last_words};
use crate::text;

/// How many tools are looked at, and on how many pages.
const TOOLS: usize = 500;
const PAGES: usize = 50;

/// How long the way out may take before the process is ended.
const FAREWELL: Duration = Duration::from_millis(1_200);

/// How long it may take to say that one leaves.
const GOODBYE: Duration = Duration::from_millis(300);

/// Versions of the protocol that we speak.
const SPOKEN: &[ProtocolVersion] = &[
    ProtocolVersion::V_2026_07_28,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2024_11_05,
];

/// What a connection needs to be made.
pub(crate) struct Plan {
    /// The name of the plugin.
    pub(crate) name: String,
    pub(crate) address: Address,
    pub(crate) config: ServerConfig,
    pub(crate) guard: GuardCommand,
    /// Variables that a manifest names; the user's own win.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) data_dir: std::path::PathBuf,
    pub(crate) log: PluginLog,
}

/// A connection that stands.
pub(crate) struct Session {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) line: Arc<Line>,
    pub(crate) keeper: Option<Keeper>,
    /// How many calls run.
    pub(crate) running: AtomicUsize,
    service: Mutex<Option<RunningService<RoleClient, ClientConfig>>>,
}

impl Session {
    /// Starts or reaches the server and agrees on a version of the protocol.
    pub(crate) async fn connect(plan: &Plan) -> Result<Self, String> {
        let protocol = plan.config.protocol;
        match Self::connect_with(plan, protocol).await {
            // It was too slow to say that it knows the newest protocol, and then no older one
            // would do.
            Err((_, Probed::Late)) => Self::connect_with(plan, Protocol::Stateless).await,
            // It ended at a question that it did not know, as servers of older protocols may.
            Err((_, Probed::Unheard)) => Self::connect_with(plan, Protocol::November2025).await,
            other => other,
        }
        .map_err(|(why, _)| why)
    }

    async fn connect_with(plan: &Plan, protocol: Protocol) -> Result<Self, (String, Probed)> {
        let other = |why: String| (why, Probed::InTime);
        let ended = Arc::new(Ended::default());
        let line = Line::new(&plan.name, Arc::clone(&ended), plan.log.clone());
        let line = Arc::new(line);
        let (served, keeper) = match &plan.address {
            Address::Program(program) => {
                let process = start(plan, program, &ended).map_err(other)?;
                let frames = Frames::new(
                    process.stdin,
                    process.stdout,
                    plan.config.max_message,
                    plan.log.clone(),
                    Arc::clone(&line),
                );
                let tap = Tap::new(frames, Arc::clone(&line));
                (serve(tap, plan, protocol).await, Some(process.keeper))
            }
            Address::Url(url) => {
                let transport = reach(plan, url).map_err(other)?;
                let tap = Tap::new(transport, Arc::clone(&line));
                (serve(tap, plan, protocol).await, None)
            }
        };
        let service = match served {
            Ok(service) => service,
            Err(refused) => {
                // What it says from here on, it says because we leave.
                let told = refused.with_last_words(&plan.log);
                if let Some(keeper) = &keeper {
                    keeper.gone_within(FAREWELL).await;
                }
                return Err(match (refused, line.probed()) {
                    // One that is silent is not asked again: it had its time.
                    (Refused::Told(_), Probed::Unheard) => other(told),
                    (Refused::Told(_), probed) => (told, probed),
                    (Refused::Lost(_), probed) if keeper.is_some() => {
                        (with_last_words(&ended.why(), &plan.log), probed)
                    }
                    (Refused::Lost(_), probed) => (told, probed),
                });
            }
        };
        let session = Self {
            peer: service.peer().clone(),
            line,
            keeper,
            running: AtomicUsize::new(0),
            service: Mutex::new(Some(service)),
        };
        match session.info().map(|info| info.protocol_version.clone()) {
            Some(version) if SPOKEN.contains(&version) => Ok(session),
            version => {
                session.close().await;
                let version = version.map_or_else(String::new, |v| text::line(v.as_str(), 40));
                Err(other(format!(
                    "the server speaks version `{version}` of the protocol, which we do not"
                )))
            }
        }
    }

    /// What the server said about itself.
    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Whether the server speaks the protocol without a handshake.
    fn is_stateless(&self) -> bool {
        self.info()
            .is_some_and(|info| info.protocol_version == ProtocolVersion::V_2026_07_28)
    }

    /// The server's tools, as many as we look at.
    pub(crate) async fn tools(&self) -> Result<Vec<Tool>, String> {
        if self
            .info()
            .is_some_and(|info| info.capabilities.tools.is_none())
        {
            return Ok(Vec::new());
        }
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES {
            let params = rmcp::model::PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_tools(Some(params)).await;
            let page = page.map_err(|error| self.told(&error))?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() >= TOOLS {
                break;
            }
        }
        tools.truncate(TOOLS);
        Ok(tools)
    }

    /// Asks to be told of changes, where that has to be asked for, and listens for as long as the
    /// connection stands.
    pub(crate) async fn listen(&self) {
        if !self.is_stateless() {
            return self.line.ended.wait().await;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        if let Ok(mut subscription) = self.peer.listen(filter).await {
            // What comes was seen on its way already.
            while let Ok(Some(_)) = subscription.next().await {}
        }
        self.line.ended.wait().await;
    }

    /// Whether the server answers at all.
    pub(crate) async fn answers(&self, within: Duration) -> bool {
        let asked = async {
            match self.is_stateless() {
                true => self.peer.discover(RequestMetaObject::new()).await.is_ok(),
                false => {
                    let ping = ClientRequest::PingRequest(PingRequest::default());
                    let answer = self.peer.send_request(ping).await;
                    matches!(
                        answer,
                        Ok(ServerResult::EmptyResult(_)) | Err(ServiceError::McpError(_))
                    )
                }
            }
        };
        tokio::time::timeout(within, asked).await.unwrap_or(false)
    }

    /// What an error of the protocol means for a reader.
    pub(crate) fn told(&self, error: &ServiceError) -> String {
        match error {
            ServiceError::TransportClosed => self.line.ended.why(),
            ServiceError::McpError(error) => text::line(&error.message, 500),
            other => text::line(&other.to_string(), 500),
        }
    }

    /// Ends the server's process now.
    pub(crate) fn end(&self, why: &str) {
        self.line.ended.because(why);
        if let Some(keeper) = &self.keeper {
            keeper.end();
        }
    }

    /// Ends the connection, and with it the process. Returns when nothing is left of it.
    pub(crate) async fn close(&self) {
        let service = self.service.lock().await.take();
        if let Some(mut service) = service {
            let _ = service.close_with_timeout(GOODBYE).await;
        }
        self.line.ended.over();
        if let Some(keeper) = &self.keeper {
            keeper.gone_within(FAREWELL).await;
        }
    }

    /// Counts a call for as long as the result is kept.
    pub(crate) fn running(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::AcqRel);
        Running(&self.running)
    }
}

/// A call that runs.
pub(crate) struct Running<'s>(&'s AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn start(plan: &Plan, program: &Program, ended: &Arc<Ended>) -> Result<Process, String> {
    let mut env = plan.env.clone();
    for (name, secret) in &plan.config.env {
        let value = secret.load();
        env.push((
            name.clone(),
            value.map_err(|why| format!("the variable `{name}`: {why}"))?,
        ));
    }
    let directory = plan.config.cwd.as_ref().or(program.directory.as_ref());
    let directory = directory.unwrap_or(&plan.data_dir);
    if directory == &plan.data_dir {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("{} cannot be made: {error}", directory.display()))?;
    }
    if !directory.is_dir() {
        return Err(format!(
            "there is no directory {} to start it in",
            directory.display()
        ));
    }
    Process::start(Start {
        guard: &plan.guard,
        program,
        directory,
        env,
        log: plan.log.clone(),
        ended: Arc::clone(ended),
    })
}

fn reach(plan: &Plan, url: &Url) -> Result<StreamableHttpClientTransport<BoundedHttp>, String> {
    if url.is_open && !plan.config.headers.is_empty() {
        return Err("its headers would travel unencrypted over http://; use https://".to_owned());
    }
    let mut headers = Vec::new();
    for (name, secret) in &plan.config.headers {
        let value = secret.load();
        headers.push((
            name.clone(),
            value.map_err(|why| format!("the header `{name}`: {why}"))?,
        ));
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url.text.as_str())
        .custom_headers(http::custom_headers(headers)?)
        .max_sse_event_size(plan.config.max_message);
    let client = BoundedHttp::new(plan.config.max_message)?;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Why there is no connection.
enum Refused {
    /// It was lost; where there is a process, that knows better why.
    Lost(String),
    /// The server said so, or said nothing.
    Told(String),
}

impl Refused {
    fn with_last_words(&self, log: &PluginLog) -> String {
        let (Self::Lost(why) | Self::Told(why)) = self;
        with_last_words(why, log)
    }
}

/// Agrees on a version of the protocol.
async fn serve<T>(
    tap: Tap<T>,
    plan: &Plan,
    protocol: Protocol,
) -> Result<RunningService<RoleClient, ClientConfig>, Refused>
where
    T: Transport<RoleClient> + 'static,
{
    let patience = plan.config.start_timeout;
    let (mode, ourselves) = lifecycle(protocol);
    let serving = ourselves.serve_with_lifecycle(tap, mode);
    match tokio::time::timeout(patience, serving).await {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(refusal(&error)),
        Err(_) => Err(Refused::Told(format!(
            "it did not answer within {patience:?}"
        ))),
    }
}

/// Why the protocol did not begin.
fn refusal(error: &ClientInitializeError) -> Refused {
    if error.is_authorization_required() {
        let why = "the server wants to know who asks; set a header for it in `[server.headers]`";
        return Refused::Told(why.to_owned());
    }
    let error = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
        error => error,
    };
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            let mut last = error.error.to_string();
            let mut source = error.error.source();
            while let Some(inner) = source {
                last = inner.to_string();
                source = inner.source();
            }
            Refused::Lost(text::line(&last, 500))
        }
        ClientInitializeError::ConnectionClosed(_) => {
            Refused::Lost("the connection was closed".to_owned())
        }
        ClientInitializeError::JsonRpcError(error) => {
            Refused::Told(text::line(&error.message, 500))
        }
        other => Refused::Told(text::line(&other.to_string(), 500)),
    }
}

/// How to begin, and what we say about ourselves. We offer nothing in return: no sampling, no
/// elicitation, no roots.
fn lifecycle(protocol: Protocol) -> (ClientLifecycleMode, ClientConfig) {
    let name = Implementation::new("dodona", env!("CARGO_PKG_VERSION"));
    let mut ourselves = ClientConfig::new(ClientCapabilities::default(), name);
    ourselves.protocol_version = match protocol {
        Protocol::June2025 => ProtocolVersion::V_2025_06_18,
        _ => ProtocolVersion::V_2025_11_25,
    };
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = match protocol {
        Protocol::Auto => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ourselves.protocol_version.clone()),
        },
        Protocol::Stateless => ClientLifecycleMode::Discover { preferred_versions },
        Protocol::November2025 | Protocol::June2025 => ClientLifecycleMode::Initialize,
    };
    (mode, ourselves)
}
