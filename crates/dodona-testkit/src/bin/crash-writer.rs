//! Keeps a hub busy and prints whatever was acknowledged, one line each, for a test that kills it.
//!
//! `crash-writer HOME [ROUNDS]`: without a number it goes on until it is killed; with one, every
//! worker does so many rounds, the hub is stopped, and the last line is `finished`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use dodona_hub::{PluginHub, Request};
use dodona_proto::{CallError, Principal, StreamId};
use dodona_store::journal::StoredItem;
use dodona_testkit::{TestHub, fingerprint, principal};
use serde_json::{Value, json};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let home = arguments.next().context("which home?")?;
    let rounds = arguments.next().map(|text| text.parse()).transpose()?;
    let hub = match TestHub::builder().start_at(Path::new(&home)).await {
        Ok(hub) => hub,
        Err(error) => {
            say(&format!("error start {:#}", anyhow::Error::from(error)));
            return Ok(ExitCode::from(3));
        }
    };
    say("ready");
    let (hub_handle, alice) = ((*hub).clone(), principal("alice"));
    let workers: Vec<_> = [
        Kind::Count,
        Kind::Count,
        Kind::Attach,
        Kind::Drop,
        Kind::Nest,
        Kind::Tally,
        Kind::Tally,
    ]
    .into_iter()
    .map(|kind| {
        let worker = Worker {
            hub: hub_handle.clone(),
            alice: Arc::clone(&alice),
            kind,
        };
        tokio::spawn(worker.work(rounds.unwrap_or(u64::MAX)))
    })
    .collect();
    for worker in workers {
        worker.await?;
    }
    hub.stop().await;
    say("finished");
    Ok(ExitCode::SUCCESS)
}

/// One write for one line, past every buffer: what is printed has been acknowledged, and what
/// the test has not read was not.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody reads any more: the test is over.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(4);
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Reads a stream to its end.
    Count,
    /// Reads a part, lets go, and reads the rest with another reader.
    Attach,
    /// Reads a part and drops the stream, which cancels the call.
    Drop,
    /// Reads a tree of calls.
    Nest,
    /// Writes to a plugin's database.
    Tally,
}

struct Worker {
    hub: PluginHub,
    alice: Arc<Principal>,
    kind: Kind,
}

impl Worker {
    async fn work(self, rounds: u64) {
        for round in 1..=rounds {
            let outcome = match self.kind {
                Kind::Count => self.count(round).await,
                Kind::Attach => self.attach(round).await,
                Kind::Drop => self.drop(round).await,
                Kind::Nest => self.nest().await,
                Kind::Tally => self.tally().await,
            };
            if let Err(error) = outcome {
                let Self { kind, .. } = self;
                say(&format!("error {kind:?} {} {}", error.code, error.message));
            }
        }
    }

    fn request(&self, method: &str, params: Value) -> Request {
        Request::new(Arc::clone(&self.alice), method, params)
    }

    async fn open(&self, method: &str, params: Value) -> Result<dodona_hub::CallStream, CallError> {
        let stream = self.hub.open(self.request(method, params)).await?;
        say(&format!("open {}", stream.stream()));
        Ok(stream)
    }

    async fn count(&self, round: u64) -> Result<(), CallError> {
        // Long bursts and slow drips in turn.
        let params = match round % 3 {
            0 => json!({"to": 20, "delay_ms": 1}),
            1 => json!({"to": 60}),
            _ => json!({"to": 5}),
        };
        let mut stream = self.open("echo.count", params).await?;
        while let Some(items) = stream.next().await? {
            heard(stream.stream(), &items);
        }
        Ok(())
    }

    async fn attach(&self, round: u64) -> Result<(), CallError> {
        let stream = self
            .open("echo.count", json!({"to": 30 + round % 7, "delay_ms": 1}))
            .await?;
        let mut reader = stream.detach();
        let mut after = 0;
        while after < 10 {
            let Some(items) = reader.next().await? else {
                return Ok(());
            };
            heard(reader.stream(), &items);
            after = items.last().map_or(after, |item| item.seq);
        }
        let mut second = self.hub.attach(&self.alice, reader.stream(), after).await?;
        while let Some(items) = second.next().await? {
            heard(second.stream(), &items);
        }
        Ok(())
    }

    async fn drop(&self, round: u64) -> Result<(), CallError> {
        let mut stream = self
            .open("echo.count", json!({"to": 5_000, "delay_ms": 1}))
            .await?;
        for _ in 0..=round % 3 {
            match stream.next().await? {
                Some(items) => heard(stream.stream(), &items),
                None => break,
            }
        }
        Ok(())
    }

    async fn nest(&self) -> Result<(), CallError> {
        let params = json!({"depth": 2, "width": 3, "delay_ms": 2});
        let mut stream = self.open("echo.nest", params).await?;
        while let Some(items) = stream.next().await? {
            heard(stream.stream(), &items);
        }
        Ok(())
    }

    async fn tally(&self) -> Result<(), CallError> {
        say("tallying");
        let counted = self.hub.call(self.request("echo.tally", json!({}))).await?;
        say(&format!("tally {}", counted["count"]));
        Ok(())
    }
}

fn heard(stream: StreamId, items: &[Arc<StoredItem>]) {
    for item in items {
        say(&format!(
            "item {stream} {} {:016x}",
            item.seq,
            fingerprint(item)
        ));
    }
}
