//! Readers that do not read.

use std::net::SocketAddr;
use std::time::Duration;

use dodona_testkit::{assert_well_formed, is_alone};
use futures_util::future::join_all;
use serde_json::json;
use tokio::net::TcpSocket;

use crate::http::Connection;
use crate::sse::{Events, parsed, ticks};
use crate::support::{Server, until};
use crate::ws::Socket;

const SAY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"echo.say","params":{"text":"x"}}"#;

/// A connection that takes little before it stalls.
async fn small(address: SocketAddr) -> Connection {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(2048).unwrap();
    Connection::over(socket.connect(address).await.unwrap(), address)
}

/// Bytes of memory that this process holds.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test]
async fn a_stalled_reader_is_let_go_and_can_come_back() {
    let server = Server::builder()
        .options(|options| {
            options.write_timeout = Duration::from_millis(1500);
            options.connections = 3;
        })
        .start()
        .await;
    let owner = server.owner();
    let stream = owner.begin("echo.count", json!({"to": 100_000})).await;
    let mut events = Events::over(small(server.address).await, &owner.token, &stream, 0).await;
    let mut socket = Socket::over(small(server.address).await, &owner.token).await;
    socket.subscribe(json!({"stream_id": stream})).await;
    // Two of three places are taken until the server has lost its patience with both.
    let one = owner.events(&stream, 0);
    let all = one.await.items().await;
    assert_eq!(
        ticks(&all).len(),
        100_000,
        "nobody waits for those who stall"
    );
    until("the places to be free", async || {
        let mut all = Vec::new();
        for _ in 0..3 {
            let mut connection = server.connect().await;
            connection.post(&owner.token, SAY.as_bytes()).await;
            let status = connection.response().await.status;
            all.push((status, connection));
        }
        all.iter().all(|(status, _)| *status == 200)
    })
    .await;

    // What had been sent is whole, then it breaks off; from there it goes on.
    let mut seen = Vec::new();
    while let Ok(Some(item)) = events.item().await {
        seen.push(item);
    }
    assert!(
        seen.len() < all.len(),
        "the buffers of the system are not that large"
    );
    let mut rest = owner.events(&stream, seen.len() as u64).await;
    seen.push(rest.item().await.unwrap().unwrap());
    assert_eq!(seen, all[..seen.len()]);
    let mut behind = 0;
    while let Some(item) = socket.try_item(&stream).await {
        assert_eq!(item, all[behind]);
        behind += 1;
    }
    assert!(behind < all.len());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_stalled_readers_cost_nine_hundred_others_nothing() {
    if !is_alone("stalled::a_hundred_stalled_readers_cost_nine_hundred_others_nothing") {
        return;
    }
    let server = Server::start().await;
    let owner = server.owner();
    // Long enough that what a stalled reader is owed is more than sockets hold.
    let (to, long) = (40, 10_000);
    let before = resident();
    let mut stalled = Vec::new();
    for n in 0..100 {
        let connection = small(server.address).await;
        let params = json!({"to": long, "delay_ms": 0});
        if n % 2 == 0 {
            let stream = owner.begin("echo.count", params).await;
            let events = Events::over(connection, &owner.token, &stream, 0).await;
            stalled.push((Some(events), None));
        } else {
            let mut socket = Socket::over(connection, &owner.token).await;
            socket
                .subscribe(json!({"method": "echo.count", "params": params}))
                .await;
            stalled.push((None, Some(socket)));
        }
    }
    let others = (0..900).map(|n| {
        let owner = &owner;
        async move {
            let params = json!({"to": to, "delay_ms": 1});
            let items = if n % 2 == 0 {
                let stream = owner.begin("echo.count", params).await;
                owner.events(&stream, 0).await.items().await
            } else {
                let mut socket = owner.socket().await;
                let stream = socket
                    .subscribe(json!({"method": "echo.count", "params": params}))
                    .await;
                socket.items(&stream).await
            };
            assert_well_formed(&parsed(&items));
            assert_eq!(ticks(&items), (1..=to).collect::<Vec<_>>());
            assert_eq!(items.last().unwrap()["status"], "complete");
        }
    });
    join_all(others).await;
    until("the stalled ones' calls to end", async || {
        server.running() == 0
    })
    .await;
    let grown = resident().saturating_sub(before) >> 20;
    println!("{grown} MiB more");
    // Held in memory, the stalled ones' items alone would be about 100 × 10 000 × 250 bytes.
    assert!(grown < 200, "{grown} MiB");
    drop(stalled);
    server.stop().await;
}
