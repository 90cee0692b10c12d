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

use anyhow::Result;
use dodona_knowledge::search::Tuning;

use docs::Titles;
use quality::{Indexed, Score};
use sets::{Half, Set};

fn main() -> Result<()> {
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let half = if asked("--tuned") {
        Half::Tuned
    } else {
        Half::Held
    };
    for set in [
        man::set()?,
        docs::set(Titles::Removed)?,
        docs::set(Titles::Kept)?,
        code::set()?,
    ] {
        report(&set, half)?;
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
    let indexed = Indexed::new(set)?;
    let tuning = Tuning::default();
    let ours = quality::score(set, &items, |q, n| indexed.ours(&tuning, q, n))?;
    let fts5 = quality::score(set, &items, |q, n| indexed.fts5.search(q, n))?;
    let grep = quality::score(set, &items, |q, n| indexed.grep.search(q, n))?;
    let line = |name: &str, s: Score| {
        println!(
            "  {name:<10} r5 {:.3} r10 {:.3} mrr {:.3}",
            s.recall_5, s.recall_10, s.mrr_10
        )
    };
    line("ours", ours);
    line("fts5", fts5);
    line("grep", grep);
    Ok(())
}
