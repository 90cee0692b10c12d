//! The tables.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::quality::Score;
use crate::sets::{Half, Set};
use crate::speed::{Percentiles, Speed};

/// A set, and how well everybody found its items.
type Scored = (Set, [(&'static str, Score); 3]);

/// What `cargo xtask bench search` prints of the known items.
pub(crate) fn quality(sets: &[Scored]) -> String {
    let mut text = String::new();
    for (set, scores) in sets {
        let _ = writeln!(
            text,
            "{}: {} questions held back ({} in all), {} files, {} passages, {:.1} MB",
            set.name,
            set.half(Half::Held).len(),
            set.items.len(),
            set.files.len(),
            set.passages(),
            megabytes(set.bytes() as u64),
        );
        for (name, score) in scores {
            let _ = writeln!(
                text,
                "  {name:<16} recall@5 {:.3}  recall@10 {:.3}  MRR@10 {:.3}",
                score.recall_5, score.recall_10, score.mrr_10
            );
        }
    }
    text
}

/// What it prints of the speed.
pub(crate) fn speed(speed: &Speed) -> String {
    let a_minute = |time: Duration| speed.files as f64 / time.as_secs_f64() * 60.0;
    let rate = |time: Duration| megabytes(speed.bytes) / time.as_secs_f64();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let fts5 = speed.parse_cpu + speed.fts5_cpu;
    let latency = |times: &Percentiles| {
        format!(
            "p50 {:.2} ms, p99 {:.2} ms",
            milliseconds(times.p50),
            milliseconds(times.p99)
        )
    };
    format!(
        "a tree of sources: {} files, {} passages, {:.1} MB\n\
         \x20 index, from files to answers   {:.1} s: {:.0} files/min, {:.1} MB/s\n\
         \x20 the same in processor time     {:.1} s: {:.0} files/min, {:.1} MB/s\n\
         \x20 FTS5, cut by the same parser   {:.1} s: {:.0} files/min, {:.1} s of it read and cut: \
         ours in {:.2} of the time\n\
         \x20 most memory while indexing     {:.0} MiB\n\
         \x20 size of the index              {:.1} MB (FTS5 {:.1} MB)\n\
         \x20 after one changed file         {:.0} ms; nothing changed {:.0} ms\n\
         \x20 query                          {}\n\
         \x20 query, FTS5                    {}: ours in {:.2} of the time at p50, {:.2} at p99\n",
        speed.files,
        speed.passages,
        megabytes(speed.bytes),
        speed.index.as_secs_f64(),
        a_minute(speed.index),
        rate(speed.index),
        speed.index_cpu.as_secs_f64(),
        a_minute(speed.index_cpu),
        rate(speed.index_cpu),
        fts5.as_secs_f64(),
        a_minute(fts5),
        speed.parse_cpu.as_secs_f64(),
        speed.index_cpu.as_secs_f64() / fts5.as_secs_f64(),
        speed.peak_mib,
        megabytes(speed.index_bytes),
        megabytes(speed.fts5_bytes),
        milliseconds(speed.reindex),
        milliseconds(speed.nothing_new),
        latency(&speed.query),
        latency(&speed.fts5_query),
        speed.query.p50.as_secs_f64() / speed.fts5_query.p50.as_secs_f64(),
        speed.query.p99.as_secs_f64() / speed.fts5_query.p99.as_secs_f64(),
    )
}

/// The known items, for programs.
pub(crate) fn quality_json(sets: &[Scored]) -> Value {
    let set = |(set, scores): &Scored| {
        let of = |(name, score): &(&str, Score)| {
            json!({
                "name": name,
                "recall_5": score.recall_5,
                "recall_10": score.recall_10,
                "mrr_10": score.mrr_10,
            })
        };
        json!({
            "set": set.name,
            "questions": set.half(Half::Held).len(),
            "passages": set.passages(),
            "scores": scores.iter().map(of).collect::<Vec<_>>(),
        })
    };
    sets.iter().map(set).collect()
}

/// The speed, for programs; times in milliseconds.
pub(crate) fn speed_json(speed: &Speed) -> Value {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    json!({
        "files": speed.files,
        "bytes": speed.bytes,
        "passages": speed.passages,
        "index_ms": ms(speed.index),
        "index_cpu_ms": ms(speed.index_cpu),
        "parse_cpu_ms": ms(speed.parse_cpu),
        "fts5_cpu_ms": ms(speed.fts5_cpu),
        "peak_mib": speed.peak_mib,
        "index_bytes": speed.index_bytes,
        "fts5_bytes": speed.fts5_bytes,
        "reindex_ms": ms(speed.reindex),
        "nothing_new_ms": ms(speed.nothing_new),
        "query_ms": { "p50": ms(speed.query.p50), "p99": ms(speed.query.p99) },
        "fts5_query_ms": { "p50": ms(speed.fts5_query.p50), "p99": ms(speed.fts5_query.p99) },
    })
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
