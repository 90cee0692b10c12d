//! How well and how fast search finds, against SQLite's FTS5 and against counting words.
//!
//! `cargo xtask bench search [-- --quick]`. What is measured and how: docs/reference/search.md.

mod code;
mod docs;
mod fetch;
mod man;
mod peers;
mod quality;
mod sets;
mod tune;

use anyhow::Result;

use docs::Titles;
use sets::{Half, Set};

fn main() -> Result<()> {
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let sets = [
        man::set()?,
        docs::set(Titles::Removed)?,
        code::set()?,
        docs::set(Titles::Kept)?,
    ];
    if asked("--tune") {
        let rounds = std::env::args().find_map(|argument| argument.parse().ok());
        return tune::run(&sets, rounds.unwrap_or(1));
    }
    let half = match asked("--tuned") {
        true => Half::Tuned,
        false => Half::Held,
    };
    for set in &sets {
        report(set, half)?;
    }
    Ok(())
}

fn report(set: &Set, half: Half) -> Result<()> {
    let items = set.half(half);
    println!(
        "{}: {} of {} items, {} files, {} passages, {:.1} MB",
        set.name,
        items.len(),
        set.items.len(),
        set.files.len(),
        set.passages(),
        set.bytes() as f64 / 1e6
    );
    for (name, s) in quality::compare(set, &items)? {
        println!(
            "  {name:<16} r5 {:.3} r10 {:.3} mrr {:.3}",
            s.recall_5, s.recall_10, s.mrr_10
        );
    }
    Ok(())
}
