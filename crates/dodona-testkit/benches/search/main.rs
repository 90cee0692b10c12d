//! How well and how fast search finds, against SQLite's FTS5 and against counting words.
//!
//! `cargo xtask bench search [-- --quality | --speed | --tune [ROUNDS]] [--json]`. What is measured
//! and how: docs/reference/search.md.

mod code;
mod docs;
mod fetch;
mod man;
mod peers;
mod quality;
mod report;
mod sets;
mod speed;
mod tune;

use anyhow::Result;
use serde_json::json;

use docs::Titles;
use sets::{Half, Set};

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    if !asked("--bench") {
        // `cargo test` only wants to know that it works, and must not fetch what is measured on.
        return Ok(());
    }
    if asked("--tune") {
        let rounds = std::env::args().find_map(|argument| argument.parse().ok());
        return tune::run(&sets()?, rounds.unwrap_or(1));
    }
    let (mut quality, mut speed) = (Vec::new(), None);
    if !asked("--quality") {
        // First, while nothing else is in memory.
        let questions = code::questions()?;
        speed = Some(speed::measure(&code::tree()?, &questions)?);
    }
    if !asked("--speed") {
        for set in sets()? {
            let scores = quality::compare(&set, &set.half(Half::Held))?;
            quality.push((set, scores));
        }
    }
    if asked("--json") {
        let speed = speed.as_ref().map(report::speed_json);
        println!(
            "{:#}",
            json!({ "quality": report::quality_json(&quality), "speed": speed })
        );
    } else {
        print!("{}", report::quality(&quality));
        print!("{}", speed.as_ref().map(report::speed).unwrap_or_default());
    }
    Ok(())
}

/// Every set of known items. Titles are kept in the last one only to show what they are worth.
fn sets() -> Result<[Set; 4]> {
    Ok([
        man::set()?,
        docs::set(Titles::Removed)?,
        code::set()?,
        docs::set(Titles::Kept)?,
    ])
}
