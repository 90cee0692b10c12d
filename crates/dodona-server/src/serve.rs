//! Accepting connections, and letting go of them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::PluginHub;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, dispatch, router};
use crate::io::{Place, Socket};
use crate::options::ServerOptions;
use crate::plugins::Mounts;
use crate::refusals::Refusals;

/// How long to wait after a failed accept: descriptors may have run out, and trying at once
/// would only burn the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves a hub on a listener until `shutdown`, then lets calls finish for the drain time and
/// stops the hub.
pub async fn serve(
    listener: TcpListener,
    hub: PluginHub,
    options: ServerOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let port = listener.local_addr()?.port();
    let drain = options.drain;
    let places = Arc::new(Semaphore::new(options.connections));
    let mounts = Mounts::gather(&hub).await;
    let app = App::new(hub.clone(), options, mounts, port, shutdown.clone());
    let app = Arc::new(app);
    let router = Arc::new(router(Arc::clone(&app)));
    let connections = TaskTracker::new();
    let mut refusals = Refusals::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    // Without this, small answers wait for the peer's delayed acknowledgement.
                    // A peer that is gone already shows itself soon enough.
                    let _ = stream.set_nodelay(true);
                    let place = Place {
                        among: place,
                        tracked: connections.token(),
                    };
                    let socket = Socket::new(stream, place, app.options.write_timeout);
                    let (app, router) = (Arc::clone(&app), Arc::clone(&router));
                    tokio::spawn(async move { connection(socket, &app, &router).await });
                }
                Err(_) => refusals.refuse(stream, app.options.connections),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    let _ = tokio::time::timeout(drain, connections.wait()).await;
    hub.stop(drain).await;
    Ok(())
}

async fn connection(socket: Socket, app: &Arc<App>, router: &axum::Router) {
    let mut http = http1::Builder::new();
    // Not `pipeline_flush`: with that, hyper closes without having sent the answer to a request
    // whose body was not read to its end.
    http.timer(TokioTimer::new())
        .header_read_timeout(app.options.header_timeout);
    // Boxed, because hyper keeps the memory of the future as long as the connection is open.
    let answer = service_fn(|request| Box::pin(dispatch(Arc::clone(app), router, request)));
    let connection = http.serve_connection(TokioIo::new(socket), answer);
    // Not needed while the connection is open, which can be for hours.
    drop(http);
    let mut connection = std::pin::pin!(connection.with_upgrades());
    let mut shutdown = std::pin::pin!(app.shutdown.cancelled());
    let mut is_closing = false;
    // One loop instead of a second await, so that the future has room for one state only.
    let ended = std::future::poll_fn(|cx| {
        if !is_closing && shutdown.as_mut().poll(cx).is_ready() {
            is_closing = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    })
    .await;
    if let Err(error) = ended {
        // Peers that go away or talk nonsense are no trouble of ours.
        tracing::debug!(%error, "a connection ended early");
    }
}
