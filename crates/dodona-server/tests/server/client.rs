//! The client of this crate.

use std::net::SocketAddr;
use std::time::Duration;

use dodona_proto::{ErrorCode, HubStreamItem, ItemBody};
use dodona_server::client::{Client, RemoteStream};
use dodona_testkit::assert_well_formed;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::{Server, soon, until};

/// Passes bytes on, until it is told to cut its connections.
struct Relay {
    url: String,
    cuts: watch::Sender<u32>,
}

impl Relay {
    async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (cuts, cut) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut inward, _)) = listener.accept().await {
                let mut cut = cut.clone();
                cut.mark_unchanged();
                tokio::spawn(async move {
                    let mut outward = TcpStream::connect(to).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut inward, &mut outward) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { url, cuts }
    }

    fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

/// A server that may be addressed by a relay's name too.
async fn server() -> Server {
    let names = vec!["127.0.0.1".to_owned()];
    Server::builder()
        .options(|options| options.allowed_hosts = names)
        .start()
        .await
}

async fn rest(stream: &mut RemoteStream, items: &mut Vec<HubStreamItem>) {
    while let Some(item) = soon("an item", stream.next()).await.unwrap() {
        items.push(item);
    }
}

fn numbers(items: &[HubStreamItem]) -> Vec<u64> {
    let number = |item: &HubStreamItem| match &item.body {
        ItemBody::Data { data, .. } => data["n"].as_u64(),
        _ => None,
    };
    items.iter().filter_map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_over_lost_connections() {
    let server = server().await;
    let relay = Relay::start(server.address).await;
    let client = Client::connect(&relay.url, &server.token, None)
        .await
        .unwrap();
    let params = json!({"to": 500, "delay_ms": 1});
    let mut stream = client.open("echo.count", params, None).await.unwrap();
    let mut items = Vec::new();
    for _ in 0..10 {
        for _ in 0..20 {
            items.push(soon("an item", stream.next()).await.unwrap().unwrap());
        }
        relay.cut();
    }
    rest(&mut stream, &mut items).await;
    assert_well_formed(&items);
    assert_eq!(numbers(&items), (1..=500).collect::<Vec<_>>());
    // Calls make the connection again too.
    relay.cut();
    until("a call to get through", async || {
        client.call("echo.say", json!({"text": "x"})).await.is_ok()
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_consumer_gets_everything_in_the_end() {
    let server = server().await;
    let url = format!("http://{}", server.address);
    let client = Client::connect(&url, &server.token, None).await.unwrap();
    let mut stream = client
        .open("echo.count", json!({"to": 300_000}), None)
        .await
        .unwrap();
    // Not a look at it until the server has nothing more to do.
    until("the call to end", async || server.running() == 0).await;
    let mut items = Vec::new();
    rest(&mut stream, &mut items).await;
    assert_well_formed(&items);
    assert_eq!(numbers(&items).len(), 300_000);
    server.stop().await;
}

#[tokio::test]
async fn cancelling_a_stream_ends_it_with_a_terminal() {
    let server = server().await;
    let url = format!("http://{}", server.address);
    let client = Client::connect(&url, &server.token, None).await.unwrap();
    let params = json!({"to": 100_000, "delay_ms": 1});
    let mut stream = client.open("echo.count", params, None).await.unwrap();
    let mut items = vec![stream.next().await.unwrap().unwrap()];
    stream.cancel().await.unwrap();
    rest(&mut stream, &mut items).await;
    assert_well_formed(&items);
    assert_eq!(server.running(), 0);
    server.stop().await;
}

#[tokio::test]
async fn dropping_a_stream_cancels_the_call() {
    let server = server().await;
    let url = format!("http://{}", server.address);
    let client = Client::connect(&url, &server.token, None).await.unwrap();
    let params = json!({"to": 100_000, "delay_ms": 1});
    let mut stream = client.open("echo.count", params, None).await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    until("the call to end", async || server.running() == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn errors_come_as_the_hub_told_them() {
    let server = server().await;
    let url = format!("http://{}", server.address);
    let client = Client::connect(&url, &server.token, None).await.unwrap();
    let failed = client.call("echo.fail", json!({"message": "no"})).await;
    let failed = failed.unwrap_err();
    assert_eq!(
        (failed.code.as_str(), failed.message.as_str()),
        ("echo.failed", "no")
    );
    assert_eq!(failed.hint_text(), Some("call `echo.say` instead"));
    let missing = client.call("echo.sya", json!({})).await.unwrap_err();
    assert_eq!(missing.code, ErrorCode::MethodNotFound);
    let refused = client
        .open("echo.count", json!({}), None)
        .await
        .err()
        .unwrap();
    assert_eq!(refused.code, ErrorCode::InvalidParams);

    let wrong = Client::connect(&url, "nonsense", None).await.err().unwrap();
    assert_eq!(wrong.code, ErrorCode::Unauthenticated);
    let address = server.address;
    server.stop().await;
    tokio::time::timeout(Duration::from_secs(60), async {
        let gone = Client::connect(&format!("http://{address}"), "x", None).await;
        assert_eq!(gone.err().unwrap().code, ErrorCode::Interrupted);
    })
    .await
    .unwrap();
}
