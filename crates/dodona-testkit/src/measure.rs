//! A loop that measures two ways of doing the same thing side by side.
//!
//! Machines differ and are busy; a ratio taken in one run, with the two taking turns, says more
//! than a time. A round is one measurement of each; a [`Row`] has the medians and how far the
//! rounds spread around them.

use std::fmt::Write as _;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Nanoseconds for one operation, as seen over some rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Half of the rounds took less.
    pub median: f64,
    /// A tenth of the rounds took less.
    pub low: f64,
    /// A tenth of the rounds took more.
    pub high: f64,
}

impl Sample {
    /// Summarises the rounds.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn of(mut rounds: Vec<f64>) -> Self {
        assert!(!rounds.is_empty(), "nothing was measured");
        rounds.sort_by(f64::total_cmp);
        let at = |share: f64| rounds[((rounds.len() - 1) as f64 * share).round() as usize];
        Self {
            median: at(0.5),
            low: at(0.1),
            high: at(0.9),
        }
    }

    fn json(&self) -> Value {
        json!({"median_ns": self.median, "low_ns": self.low, "high_ns": self.high})
    }
}

/// Runs the two in turns, beginning with the other one each round, and throws the first round
/// away. Each does some operations and tells the nanoseconds for one.
pub fn side_by_side(
    rounds: usize,
    mut ours: impl FnMut() -> f64,
    mut peer: impl FnMut() -> f64,
) -> (Sample, Sample) {
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    ours();
    peer();
    for round in 0..rounds {
        if round % 2 == 0 {
            our_times.push(ours());
            peer_times.push(peer());
        } else {
            peer_times.push(peer());
            our_times.push(ours());
        }
    }
    (Sample::of(our_times), Sample::of(peer_times))
}

/// Nanoseconds for one of `operations` that together took as long as `work`.
pub fn per_operation(operations: u64, work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    nanos_each(begun.elapsed(), operations)
}

/// As [`per_operation`], but counting only the time for which this thread had a processor: on a
/// busy machine that is what the work costs. Where the system does not tell, it is the same.
pub fn per_operation_on_cpu(operations: u64, work: impl FnOnce()) -> f64 {
    let before = on_cpu();
    let wall = per_operation(operations, work);
    match (before, on_cpu()) {
        (Some(before), Some(after)) => nanos_each(after - before, operations),
        _ => wall,
    }
}

/// How long this thread has run.
fn on_cpu() -> Option<Duration> {
    // The kernel counts a thread's time when it leaves the processor.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Nanoseconds for one of `operations` that together took this long.
pub fn nanos_each(all: Duration, operations: u64) -> f64 {
    all.as_nanos() as f64 / operations as f64
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Our time less the peer's.
    Overhead,
    /// Our operations a second over the peer's.
    Rate,
}

/// One line of a table.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was done.
    pub what: String,
    /// What it is compared with.
    pub against: String,
    /// The ratio or time to reach; empty if there is no target.
    pub target: String,
    /// How to read it.
    pub figure: Figure,
    /// How long ours took.
    pub ours: Sample,
    /// How long the peer took.
    pub peer: Sample,
}

impl Row {
    /// How many times as fast as the peer ours is.
    pub fn ratio(&self) -> f64 {
        self.peer.median / self.ours.median
    }

    /// By how many nanoseconds ours is slower.
    pub fn overhead(&self) -> f64 {
        self.ours.median - self.peer.median
    }

    fn cells(&self) -> [String; 7] {
        let show = |sample: &Sample| match self.figure {
            Figure::Overhead => time(sample.median),
            Figure::Rate => format!("{}/s", count(1e9 / sample.median)),
        };
        let spread = |sample: &Sample| {
            let (below, above) = (sample.low / sample.median, sample.high / sample.median);
            format!(
                "{:+.0}…{:+.0} %",
                below * 100.0 - 100.0,
                above * 100.0 - 100.0
            )
        };
        let figure = match self.figure {
            Figure::Overhead => format!("{} over", time(self.overhead())),
            Figure::Rate => format!("{:.2}×", self.ratio()),
        };
        [
            self.what.clone(),
            show(&self.ours),
            spread(&self.ours),
            self.against.clone(),
            show(&self.peer),
            figure,
            self.target.clone(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what,
            "against": self.against,
            "target": self.target,
            "ours": self.ours.json(),
            "peer": self.peer.json(),
            "ratio": self.ratio(),
            "overhead_ns": self.overhead(),
        })
    }
}

/// The rows, aligned, with the state of the machine below them.
pub fn table(rows: &[Row]) -> String {
    let head = [
        "what", "ours", "spread", "against", "peer", "figure", "to reach",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: [usize; 7] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for line in &lines {
        let mut written = String::new();
        for (cell, width) in line.iter().zip(widths) {
            let _ = write!(written, "{cell:<width$}  ");
        }
        let _ = writeln!(text, "{}", written.trim_end());
    }
    let _ = writeln!(text, "{} cores, load {}", cores(), load());
    text
}

/// The rows for programs.
pub fn as_json(rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows.iter().map(Row::json).collect();
    json!({"cores": cores(), "load": load(), "rows": rows})
}

fn cores() -> usize {
    available_parallelism().map_or(0, std::num::NonZero::get)
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    averages.join(" ")
}

fn time(nanos: f64) -> String {
    match nanos.abs() {
        below if below < 100.0 => format!("{nanos:.1} ns"),
        below if below < 10_000.0 => format!("{nanos:.0} ns"),
        below if below < 10_000_000.0 => format!("{:.1} µs", nanos / 1e3),
        _ => format!("{:.1} ms", nanos / 1e6),
    }
}

/// A whole number in groups of three.
fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_middle_and_the_spread() {
        let sample = Sample::of((0..=100).rev().map(f64::from).collect());
        let expected = Sample {
            median: 50.0,
            low: 10.0,
            high: 90.0,
        };
        assert_eq!(sample, expected);
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(count(1_234_567.0), "1 234 567");
        assert_eq!(count(12.0), "12");
        assert_eq!(time(2.34), "2.3 ns");
        assert_eq!(time(999.4), "999 ns");
        assert_eq!(time(12_345.0), "12.3 µs");
    }
}
