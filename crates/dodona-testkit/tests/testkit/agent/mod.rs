//! `kill -9` at hundreds of random points of an agent's work.

mod ledger;
mod life;
mod script;

use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dodona_testkit::Chance;
use dodona_testkit::model_server::ModelServer;
use tokio::runtime::Runtime;

use crate::writer::{self, Ended, Until};
use ledger::{Ledger, Seen};

/// Each lane kills one process after the other; it mostly waits for them.
const LANES: u64 = 6;
const KILLS_PER_LANE: u64 = 35;

/// How many kills a campaign has where the variable `DODONA_KILLS` says so:
/// `DODONA_KILLS=1000 cargo test -p dodona-testkit --test testkit an_agent_outlives -- --nocapture`.
fn kills_per_lane() -> u64 {
    let wanted = std::env::var("DODONA_KILLS").ok();
    let wanted = wanted.map(|text| text.parse::<u64>().expect("a number of kills"));
    wanted.map_or(KILLS_PER_LANE, |kills| {
        kills.div_ceil(LANES).max(KILLS_PER_LANE)
    })
}

#[test]
fn an_agent_outlives_kill_9() {
    let seed = Chance::seed();
    println!("DODONA_SEED={seed}");
    let runtime = Arc::new(Runtime::new().unwrap());
    let lanes: Vec<_> = (0..LANES)
        .map(|number| {
            let chance = Chance::from_seed(seed.wrapping_add(number));
            let runtime = Arc::clone(&runtime);
            thread::spawn(move || lane(&runtime, number, chance))
        })
        .collect();
    let mut seen = Seen::default();
    for lane in lanes {
        match lane.join() {
            Ok(more) => seen += more,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    println!("{seen:?}");
    assert!(seen.kills >= 200, "hundreds of kills");
    // They met queries under way, tools under way, and answers that were given.
    assert!(seen.interrupted > seen.kills / 4, "{seen:?}");
    assert!(
        seen.cut_calls > 0 && seen.complete > seen.kills / 4,
        "{seen:?}"
    );
}

/// The first lane keeps one home over all its kills; the others begin anew now and then.
fn lane(runtime: &Runtime, number: u64, mut chance: Chance) -> Seen {
    let server = runtime.block_on(ModelServer::strict());
    server.respond_with(script::reply);
    let mut seen = Seen::default();
    let mut left = kills_per_lane();
    while left > 0 {
        let home = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(home.path(), &server.url());
        let lives = match number {
            0 => left,
            _ => left.min(1 + chance.below(8)),
        };
        for _ in 0..lives {
            let until = moment(&mut chance);
            let ended = live(&ledger, u64::MAX, until);
            assert!(!ended.hung, "{until:?}: {}", ended.stderr);
            assert_eq!(ended.status.code(), None, "it was killed: {}", ended.stderr);
            ledger.note(&ended.lines);
            runtime.block_on(ledger.check());
            server.forget();
        }
        left -= lives;
        seen += ledger.seen;
    }
    seen
}

/// While it starts, or after so many lines: a question has about forty.
fn moment(chance: &mut Chance) -> Until {
    match chance.below(8) {
        0 => Until::Time(Duration::from_micros(chance.below(300_000))),
        1 => Until::Time(Duration::from_micros(200_000 + chance.below(600_000))),
        _ => Until::Lines(4 + chance.below(120)),
    }
}

/// Another process of this program, as [`a_life`].
fn live(ledger: &Ledger, questions: u64, until: Until) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["agent::a_life", "--exact", "--nocapture"]);
    let (home, url) = (ledger.home(), ledger.url());
    life::describe(&mut command, home, url, ledger.next_question(), questions);
    writer::end(&mut command, until)
}

/// A life that nobody ends answers all its questions. It is also the process that the other test
/// kills: then somebody has described its life.
#[test]
fn a_life() {
    let runtime = Runtime::new().unwrap();
    if let Some(life) = life::described() {
        return runtime.block_on(life.run());
    }
    let server = runtime.block_on(ModelServer::strict());
    server.respond_with(script::reply);
    let home = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::new(home.path(), &server.url());
    let ended = live(&ledger, 3, Until::Exit);
    assert!(ended.status.success(), "{}", ended.stderr);
    ledger.note(&ended.lines);
    runtime.block_on(ledger.check());
    // Three of its own, and the one that the check asks.
    assert_eq!((ledger.seen.complete, ledger.seen.interrupted), (4, 0));
    assert!(ended.lines.iter().any(|line| line == "life finished"));
}
