//! What the agent adds to its model: a question through `agent.chat` against the same request by
//! a bare client, with a hundred rules, and whether that stays the same over a long conversation: time,
//! memory, and what a request takes, of which the conversation is shortened again and again.
//!
//! Both speak to a scripted server in this process, in turns. A turn stores the question, the
//! usage and the answer durably, and every item it tells, so that a durable commit of the same
//! disk is shown beside it.
//!
//! `cargo xtask bench turn [-- --json] [-- --quick]`. Databases are in the temporary directory;
//! set `TMPDIR` to measure another disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dodona_agent::{AgentOptions, AgentPlugin};
use dodona_hub::Request;
use dodona_llm::{ModelConfig, Models, Provider, TokenCounter};
use dodona_proto::{DoneStatus, ItemBody, Project};
use dodona_rules::{RulesOptions, RulesPlugin};
use dodona_testkit::model_server::{ModelServer, Reply, SeenRequest};
use dodona_testkit::{TestHub, principal};
use reqwest::Client;
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Turns before the first that counts: until the conversation's window is full.
const WARM_UP: usize = 100;

/// How many turns at each end are compared.
const END: usize = 100;

/// How many rules are asked. Every tenth says something to the log.
const RULES: usize = 100;

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let turns = match (asked("--bench"), asked("--quick")) {
        (true, false) => 1_000,
        (_, true) => 3 * END,
        // `cargo test` only wants to know that it works.
        (false, false) => 3,
    };
    let report = Runtime::new()?.block_on(measure(turns))?;
    match asked("--json") {
        true => println!("{:#}", report.json()),
        false => report.print(),
    }
    Ok(())
}

async fn measure(turns: usize) -> Result<Report> {
    let bench = Bench::start().await?;
    let warm_up = WARM_UP.min(turns);
    for number in 0..warm_up {
        bench.turn(number).await?;
    }
    // Built after the agent's, which has chosen who does the cryptography.
    let bare = Client::builder()
        .no_proxy()
        .tcp_nodelay(true)
        .tls_certs_only([])
        .build()?;
    let commits = Commits::new()?;
    let mut report = Report::default();
    report.memory.push(resident()?);
    for number in warm_up..warm_up + turns {
        report.ours.push(bench.turn(number).await?);
        let request = bench.server.last_request();
        let text = String::from_utf8_lossy(&request.bytes);
        report
            .sent
            .push(TokenCounter::for_model("gpt-4o").count(&text));
        report.bare.push(bench.bare(&bare, &request).await?);
        report.commit.push(commits.once()?);
        bench.server.forget();
        if (number - warm_up + 1).is_multiple_of(END) {
            report.memory.push(resident()?);
        }
    }
    bench.hub.stop().await;
    Ok(report)
}

struct Bench {
    server: ModelServer,
    hub: TestHub,
    project: Project,
    _config: tempfile::TempDir,
}

fn write_rules(folder: &std::path::Path) -> Result<()> {
    let triggers = ["on_query_start", "on_turn_start", "on_turn_end"];
    for number in 0..RULES {
        let trigger = triggers[number % triggers.len()];
        let condition = match number.is_multiple_of(10) {
            true => "True".to_owned(),
            false => format!("context.turn.token_usage > 2.0 and context.turn.number > {number}"),
        };
        let text = format!(
            "[rule]\nid = \"rule-{number}\"\nname = \"Rule {number}\"\ntrigger = \"{trigger}\"\n\
             [condition]\nexpression = \"{condition}\"\n\
             [action]\ntype = \"log\"\nlevel = \"debug\"\nmessage = \"turn {{{{ context.turn.number }}}}\"\n"
        );
        std::fs::write(folder.join(format!("rule-{number}.toml")), text)?;
    }
    Ok(())
}

impl Bench {
    async fn start() -> Result<Self> {
        let server = ModelServer::strict().await;
        server.respond_with(|_| answer());
        let options = AgentOptions {
            models: models(&server.url())?,
            token_budget: Some(4_000),
            ..AgentOptions::default()
        };
        let config = tempfile::tempdir()?;
        write_rules(config.path())?;
        let rules = config.path().to_owned();
        let hub = TestHub::builder()
            .plugin(move || AgentPlugin::new(options.clone()))
            .plugin(move || {
                RulesPlugin::new(RulesOptions {
                    rules: Some(rules.clone()),
                    config: None,
                })
            });
        let hub = hub.start().await;
        let root = hub.home().join("project");
        std::fs::create_dir(&root)?;
        let project = hub
            .call("alice", "hub.register_project", json!({ "root": root }))
            .await?;
        let project = serde_json::from_value(project)?;
        Ok(Self {
            server,
            hub,
            project,
            _config: config,
        })
    }

    /// One question to its end.
    async fn turn(&self, number: usize) -> Result<Duration> {
        let message = format!("What does the module number {number} do, and who calls it?");
        let request = Request {
            project: Some(self.project.id.clone()),
            ..Request::new(
                principal("alice"),
                "agent.chat",
                json!({ "message": message }),
            )
        };
        let begun = Instant::now();
        let items = (*self.hub).open(request).await?.collect().await?;
        let time = begun.elapsed();
        let end = items.last().map(|item| &item.body);
        let complete = |body: &ItemBody| {
            matches!(
                body,
                ItemBody::Done {
                    status: DoneStatus::Complete,
                    ..
                }
            )
        };
        ensure!(end.is_some_and(complete), "{items:#?}");
        Ok(time)
    }

    /// The same request without us.
    async fn bare(&self, client: &Client, seen: &SeenRequest) -> Result<Duration> {
        let url = format!("{}/chat/completions", self.server.url());
        let body = seen.bytes.clone();
        let begun = Instant::now();
        let sent = client.post(url).header("content-type", "application/json");
        let mut response = sent.body(body).send().await?.error_for_status()?;
        let mut read = 0;
        while let Some(chunk) = response.chunk().await? {
            read += chunk.len();
        }
        let time = begun.elapsed();
        ensure!(read > 1_000, "the answer has {read} bytes");
        Ok(time)
    }
}

/// About a hundred tokens in twenty pieces.
fn answer() -> Reply {
    let mut reply = Reply::stream();
    for part in 0..20 {
        reply = reply.add_text(&format!("It is part {part} of it. "));
    }
    reply.usage(1_000, 100, 0)
}

fn models(url: &str) -> Result<Models> {
    let mut config = ModelConfig::new(Provider::OpenAi, "gpt-4o");
    config.base_url = Some(url.to_owned());
    config.key_env = Some("KEY".to_owned());
    let configs = BTreeMap::from([("main".to_owned(), config)]);
    let environment = Arc::new(|_: &str| Some("secret".to_owned()));
    let (models, problems) = Models::from_config(&configs, Some("main"), &(environment as _));
    ensure!(problems.is_empty(), "{problems:?}");
    Ok(models)
}

/// Durable commits on the same disk.
struct Commits {
    raw: Connection,
    _folder: tempfile::TempDir,
}

impl Commits {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let raw = Connection::open(folder.path().join("raw.db"))?;
        raw.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        raw.pragma_update(None, "synchronous", "FULL")?;
        raw.execute_batch("create table said (no integer primary key, text text)")?;
        Ok(Self {
            raw,
            _folder: folder,
        })
    }

    fn once(&self) -> Result<Duration> {
        let begun = Instant::now();
        let sql = "insert into said (text) values ('What does the module do?')";
        self.raw.execute(sql, ())?;
        Ok(begun.elapsed())
    }
}

/// The bytes of this process that are in memory.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("the system does not tell")?.parse::<u64>()? * 1024)
}

/// Times by turn, and the memory at the beginning and after every hundred turns.
#[derive(Default)]
struct Report {
    ours: Vec<Duration>,
    bare: Vec<Duration>,
    commit: Vec<Duration>,
    memory: Vec<u64>,
    /// The tokens of each request.
    sent: Vec<usize>,
}

impl Report {
    /// What each turn took more than its bare request.
    fn over(&self) -> Vec<Duration> {
        let pairs = self.ours.iter().zip(&self.bare);
        pairs
            .map(|(ours, bare)| ours.saturating_sub(*bare))
            .collect()
    }

    fn print(&self) {
        let over = self.over();
        println!("{:<34} {:>10} {:>10}", "", "p50", "p99");
        for (what, times) in [
            ("agent.chat, one turn", &self.ours),
            ("the same request, bare", &self.bare),
            ("what the agent adds", &over),
            ("one durable commit", &self.commit),
        ] {
            let (p50, p99) = (shown(at(times, 0.5)), shown(at(times, 0.99)));
            println!("{what:<34} {p50:>10} {p99:>10}");
        }
        println!("agent.chat over the bare request: {:.2}×", self.ratio());
        let end = END.min(over.len());
        let (first, last) = (&over[..end], &over[over.len() - end..]);
        println!(
            "added in the first {end} of {} turns {}, in the last {end} {}",
            over.len(),
            shown(at(first, 0.5)),
            shown(at(last, 0.5)),
        );
        let most = |sent: &[usize]| sent.iter().max().copied().unwrap_or_default();
        println!(
            "tokens of a request: at most {} in the first {end} turns, {} in the last {end}, {} in all",
            most(&self.sent[..end]),
            most(&self.sent[self.sent.len() - end..]),
            most(&self.sent),
        );
        let mib = |bytes: &u64| format!("{:.1}", *bytes as f64 / f64::from(1 << 20));
        let memory: Vec<String> = self.memory.iter().map(mib).collect();
        println!("resident MiB, each {END} turns: {}", memory.join(" "));
    }

    fn ratio(&self) -> f64 {
        at(&self.ours, 0.5).as_secs_f64() / at(&self.bare, 0.5).as_secs_f64()
    }

    fn json(&self) -> Value {
        let both = |times: &[Duration]| {
            let nanos = |share| at(times, share).as_nanos() as u64;
            json!({ "p50_ns": nanos(0.5), "p99_ns": nanos(0.99) })
        };
        let over = self.over();
        let end = END.min(over.len());
        json!({
            "turns": over.len(),
            "ours": both(&self.ours),
            "bare": both(&self.bare),
            "over": both(&over),
            "over_first": both(&over[..end]),
            "over_last": both(&over[over.len() - end..]),
            "commit": both(&self.commit),
            "ratio": self.ratio(),
            "resident_bytes": self.memory,
            "request_tokens_first": self.sent[..end].iter().max(),
            "request_tokens_last": self.sent[self.sent.len() - end..].iter().max(),
            "rules": RULES,
        })
    }
}

/// The time that a share of the turns did not exceed.
fn at(times: &[Duration], share: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

fn shown(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
