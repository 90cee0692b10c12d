//! The protocol over standard input and output, for one client.

use std::sync::{Arc, Mutex};

use dodona_proto::CallError;
use futures_util::future::BoxFuture;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::desk::There;
use super::endpoint::Endpoint;
use super::groups::Groups;
use super::parked::Parked;
use crate::client::Client;

/// Brings a connection to the server that holds the home, another one when that is gone.
pub trait Connect: Send + Sync + 'static {
    /// A connection that was just seen to work.
    fn client(&self) -> BoxFuture<'_, Result<Client, CallError>>;
}

/// Why a client was not served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// It does not speak the protocol.
    #[error("the client did not begin as MCP clients do")]
    Begin(#[source] Box<ServerInitializeError>),
    /// A fault of ours.
    #[error("the work for the client ended early")]
    Lost,
}

/// Serves the client at standard input and output until it closes, or until `stop`. What has to
/// be said to people goes to standard error.
pub async fn serve_stdio(
    connect: impl Connect,
    groups: Groups,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let (input, output) = stdio_pipes();
    serve_pipes(connect, groups, input, output, stop).await
}

/// The same for a client at any other pair of pipes.
pub async fn serve_pipes(
    connect: impl Connect,
    groups: Groups,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let pipes = (input, output);
    let there = There {
        connect: Box::new(connect),
        kept: Mutex::default(),
        parked: Parked::default(),
    };
    let endpoint = Endpoint::stdio(Arc::new(there), groups);
    let serving = rmcp::service::serve_server_with_ct(endpoint, pipes, stop).await;
    let serving = match serving {
        Ok(serving) => serving,
        // It left without a word, or was told to.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(StdioError::Begin(Box::new(error))),
    };
    match serving.waiting().await {
        Ok(QuitReason::Closed | QuitReason::Cancelled) => Ok(()),
        _ => Err(StdioError::Lost),
    }
}
