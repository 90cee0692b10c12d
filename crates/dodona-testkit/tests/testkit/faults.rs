//! System calls that fail: the n-th write, the n-th sync, for many n.

use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use dodona_testkit::Chance;
use tokio::runtime;

use crate::ledger::{Ledger, Seen};
use crate::writer::{self, Line, PROGRAM, Until};

const LANES: usize = 3;

/// One way for the disk to fail. The count is for each thread by itself, and each database is
/// written by its own: the n-th call fails for all of them.
#[derive(Debug, Clone, Copy)]
struct Fault {
    call: &'static str,
    error: &'static str,
    nth: u64,
    lasts: Lasts,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Lasts {
    /// Only that call fails.
    Once,
    /// A few in a row.
    AWhile,
    /// All from there on.
    ForEver,
}

#[test]
fn a_failing_disk_costs_the_calls_it_meets_and_nothing_else() {
    require_strace();
    let mut faults = faults();
    assert!(faults.len() >= 100);
    faults.reverse();
    let (faults, seen) = (Mutex::new(faults), Mutex::new(Seen::default()));
    let failed = Mutex::new(Vec::new());
    thread::scope(|lanes| {
        for _ in 0..LANES {
            lanes.spawn(|| {
                let next = || faults.lock().unwrap().pop();
                while let Some(fault) = next() {
                    // Told below with the others: what they have in common is what is wrong.
                    match catch_unwind(|| survive(fault)) {
                        Ok(met) => *seen.lock().unwrap() += met,
                        Err(_) => failed.lock().unwrap().push(fault),
                    }
                }
            });
        }
    });
    let (seen, failed) = (seen.into_inner().unwrap(), failed.into_inner().unwrap());
    println!("{seen:?}");
    assert!(
        failed.is_empty(),
        "{} faults did harm: {failed:#?}",
        failed.len()
    );
    // The faults were met, and something was acknowledged around them.
    assert!(seen.errors > seen.runs / 2 && seen.items > seen.runs);
}

fn require_strace() {
    let found = Command::new("strace").arg("--version").output().is_ok();
    assert!(
        found,
        "strace is missing: install it (`apt-get install strace`; `cargo xtask test` does so where it may)"
    );
}

fn faults() -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut add = |call, lasts, nths: &mut dyn Iterator<Item = u64>| {
        for nth in nths {
            for error in ["EIO", "ENOSPC"] {
                faults.push(Fault {
                    call,
                    error,
                    nth,
                    lasts,
                });
            }
        }
    };
    add(
        "pwrite64",
        Lasts::Once,
        &mut (1..24).chain((24..260).step_by(13)),
    );
    add("pwrite64", Lasts::AWhile, &mut (3..200).step_by(29));
    add("pwrite64", Lasts::ForEver, &mut (1..160).step_by(17));
    add(
        "fsync",
        Lasts::Once,
        &mut (1..12).chain((12..48).step_by(3)),
    );
    add("fsync", Lasts::AWhile, &mut (5..40).step_by(7));
    add("fsync", Lasts::ForEver, &mut (2..40).step_by(6));
    add("ftruncate", Lasts::Once, &mut (1..4));
    // The first few load the program itself.
    add("openat", Lasts::Once, &mut (8..24).step_by(3));
    faults
}

/// Runs the writer on a failing disk, then looks at what it left on a sound one.
fn survive(fault: Fault) -> Seen {
    let home = tempfile::tempdir().unwrap();
    let run = writer::run(&mut traced(fault, home.path()), Until::Exit);
    assert!(
        !run.hung,
        "{fault:?}: hangs\n{:?}\n{}",
        run.said, run.stderr
    );
    assert!(
        !run.stderr.contains("panicked"),
        "{fault:?}: panics\n{}",
        run.stderr
    );
    let orderly = match run.said.last() {
        Some(Line::Finished) => run.status.code() == Some(0),
        // It could not even start, and said why.
        Some(Line::Error(_)) => run.status.code() == Some(3),
        _ => false,
    };
    assert!(
        orderly,
        "{fault:?}: {:?} after {:?}\n{}",
        run.status,
        run.said.last(),
        run.stderr
    );
    for line in &run.said {
        if let Line::Error(error) = line {
            assert!(is_clear(error), "{fault:?}: {error}");
        }
    }
    let mut ledger = Ledger::new(home.path());
    ledger.note(&run.said);
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(ledger.check(&mut Chance::from_seed(fault.nth)));
    ledger.seen
}

/// It names the storage as what failed, not the hub's insides.
fn is_clear(error: &str) -> bool {
    match error.split(' ').nth(2) {
        Some("store.unavailable") => true,
        // The plugin's database could not be made; the reason is part of the message.
        Some("plugin.not_active") => error.contains("database"),
        _ => error.starts_with("error start "),
    }
}

fn traced(fault: Fault, home: &Path) -> Command {
    let Fault {
        call,
        error,
        nth,
        lasts,
    } = fault;
    let when = match lasts {
        Lasts::Once => nth.to_string(),
        Lasts::AWhile => format!("{nth}..{}", nth + 5),
        Lasts::ForEver => format!("{nth}+"),
    };
    let mut command = Command::new("strace");
    command
        .args(["-f", "--seccomp-bpf", "-qqq", "-o", "/dev/null"])
        .arg(format!("--trace={call}"))
        .arg(format!("--inject={call}:error={error}:when={when}"))
        .arg("--")
        .args([Path::new(PROGRAM), home, Path::new("3")]);
    command
}
