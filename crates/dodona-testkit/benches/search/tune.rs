//! Choosing the numbers of the ranking, on the half of the items that is not reported.
//!
//! One number at a time is made smaller and larger, and kept where the mean of the sets' MRR
//! grows. `cargo xtask bench search -- --tune [ROUNDS]`.

use anyhow::Result;
use dodona_knowledge::search::Tuning;

use crate::quality::{self, Ours};
use crate::sets::{Half, Set};

/// A number of the ranking by its name.
type Dial = (&'static str, fn(&mut Tuning) -> &mut f32);

const DIALS: &[Dial] = &[
    ("boost title", |t| &mut t.boost[0]),
    ("boost heading", |t| &mut t.boost[1]),
    ("boost symbol", |t| &mut t.boost[2]),
    ("boost path", |t| &mut t.boost[3]),
    ("length title", |t| &mut t.length[0]),
    ("length heading", |t| &mut t.length[1]),
    ("length symbol", |t| &mut t.length[2]),
    ("length path", |t| &mut t.length[3]),
    ("length body", |t| &mut t.length[4]),
    ("saturation", |t| &mut t.saturation),
    ("whole", |t| &mut t.whole),
    ("joined", |t| &mut t.joined),
    ("short", |t| &mut t.short),
    ("prefix known", |t| &mut t.prefix[0]),
    ("coverage", |t| &mut t.coverage),
    ("proximity", |t| &mut t.proximity),
    ("name", |t| &mut t.name),
    ("file", |t| &mut t.file),
    ("named", |t| &mut t.named),
    ("spread", |t| &mut t.spread),
    ("first", |t| &mut t.first),
    ("brevity", |t| &mut t.brevity),
    ("sense", |t| &mut t.sense),
];

/// A difference below this is noise.
const NOTICEABLE: f64 = 0.0004;

/// Prints what each change does, and the numbers that did best.
pub(crate) fn run(sets: &[Set], rounds: usize) -> Result<()> {
    let indexed = sets.iter().map(Ours::new).collect::<Result<Vec<_>>>()?;
    let mut best = Tuning::default();
    let mut reached = measure(sets, &indexed, &best)?;
    println!("{:<16} {}", "as it is", show(&reached));
    for _ in 0..rounds {
        for (name, dial) in DIALS {
            for factor in [0.6, 1.6] {
                let mut tried = best.clone();
                let value = dial(&mut tried);
                *value = if *value == 0.0 { 0.15 } else { *value * factor };
                let value = *value;
                let scores = measure(sets, &indexed, &tried)?;
                let kept = mean(&scores) > mean(&reached) + NOTICEABLE;
                println!(
                    "{name:<16} {value:<6.3} {}{}",
                    show(&scores),
                    if kept { "  kept" } else { "" }
                );
                if kept {
                    (best, reached) = (tried, scores);
                    break;
                }
            }
        }
    }
    println!("{best:#?}");
    Ok(())
}

fn measure(sets: &[Set], indexed: &[Ours], tuning: &Tuning) -> Result<Vec<f64>> {
    std::thread::scope(|scope| {
        let runs: Vec<_> = sets
            .iter()
            .zip(indexed)
            .map(|(set, indexed)| {
                scope.spawn(move || {
                    let items = set.half(Half::Tuned);
                    quality::score(set, &items, |q, n| indexed.search(tuning, q, n))
                        .map(|score| score.mrr_10)
                })
            })
            .collect();
        let joined = runs
            .into_iter()
            .map(|run| run.join().expect("no search panics"));
        joined.collect()
    })
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

fn show(scores: &[f64]) -> String {
    let each: Vec<String> = scores.iter().map(|score| format!("{score:.4}")).collect();
    format!("{} mean {:.4}", each.join(" "), mean(scores))
}
