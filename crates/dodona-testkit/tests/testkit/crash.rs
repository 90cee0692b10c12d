//! `kill -9`, at hundreds of random points.

use std::process::Command;
use std::thread;
use std::time::Duration;

use dodona_testkit::Chance;
use tokio::runtime;

use crate::ledger::{Ledger, Seen};
use crate::writer::{self, PROGRAM, Until};

/// Each lane kills one writer after the other. More lanes than processors, because a lane mostly
/// waits for its writer.
const LANES: u64 = 3;
const KILLS_PER_LANE: u64 = 110;

#[test]
fn what_was_acknowledged_outlives_kill_9() {
    let seed = Chance::seed();
    println!("DODONA_SEED={seed}");
    let lanes: Vec<_> = (0..LANES)
        .map(|number| {
            let lane = move || lane(number, Chance::from_seed(seed.wrapping_add(number)));
            thread::spawn(lane)
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
    assert!(seen.runs >= 200, "hundreds of kills");
    assert_eq!(seen.errors, 0, "no call fails on a sound disk");
    // The kills met streams and writes under way, also where they come early on a slow machine.
    assert!(seen.interrupted > seen.runs / 4 && seen.tallies > seen.runs / 4);
}

/// The first lane keeps one home over all its kills; the others begin anew now and then, so that
/// the first moments of a home are met too.
fn lane(number: u64, mut chance: Chance) -> Seen {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut seen = Seen::default();
    let mut left = KILLS_PER_LANE;
    while left > 0 {
        let home = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(home.path());
        let lives = match number {
            0 => left,
            _ => left.min(1 + chance.below(6)),
        };
        for _ in 0..lives {
            let until = moment(&mut chance);
            let run = writer::run(Command::new(PROGRAM).arg(home.path()), until);
            assert!(!run.hung, "{until:?}: {}", run.stderr);
            assert_eq!(run.status.code(), None, "it was killed: {}", run.stderr);
            ledger.note(&run.said);
            runtime.block_on(ledger.check(&mut chance));
        }
        runtime.block_on(ledger.check_all());
        left -= lives;
        seen += ledger.seen;
    }
    seen
}

/// While it starts, soon after, or well under way.
fn moment(chance: &mut Chance) -> Until {
    match chance.below(6) {
        0 => Until::Time(Duration::from_micros(chance.below(40_000))),
        1 | 2 => Until::Time(Duration::from_micros(20_000 + chance.below(250_000))),
        3 => Until::Lines(1 + chance.below(20)),
        _ => Until::Lines(1 + chance.below(800)),
    }
}
