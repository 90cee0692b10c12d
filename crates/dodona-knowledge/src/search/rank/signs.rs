//! What speaks for a passage.

use std::collections::HashMap;

use super::look::Seen;
use crate::search::query::Plan;
use crate::search::tuning::Tuning;

/// How far from the asked distance two words still count as neighbours.
const NEAR: u32 = 4;

/// What speaks for a passage, each sign before its weight, and all in the unit of `terms`: so
/// much rarity.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// The terms of the question, by BM25F.
    pub(super) terms: f32,
    /// The terms that are there at all, whatever they earned.
    pub(super) coverage: f32,
    /// Neighbours in the question that are neighbours in the passage.
    pub(super) proximity: f32,
    /// A symbol that is exactly what was asked.
    pub(super) name: f32,
    /// The words of the symbol that were asked for, by the share of the symbol that they are.
    pub(super) named: f32,
    /// What the best passages of the same file earned, term by term.
    pub(super) file: f32,
    /// The terms that are anywhere in the file.
    pub(super) spread: f32,
    /// The first passage of its file that has anything to say.
    pub(super) first: f32,
    /// The length of the passage: it speaks against it.
    pub(super) length: f32,
}

impl Signs {
    /// The score.
    pub(super) fn weighed(&self, tuning: &Tuning) -> f32 {
        self.terms
            + tuning.coverage * self.coverage
            + tuning.proximity * self.proximity
            + tuning.name * self.name
            + tuning.named * self.named
            + tuning.file * self.file
            + tuning.spread * self.spread
            + tuning.first * self.first
            - tuning.brevity * self.length
    }
}

/// What the candidates of each file say together.
pub(super) struct Files(HashMap<u64, Together>);

struct Together {
    /// What each unit earned at best.
    best: Vec<f32>,
    first_line: u64,
}

impl Files {
    pub(super) fn of(all: &[Seen], rarity: &[f32]) -> Self {
        let mut files: HashMap<u64, Together> = HashMap::new();
        for seen in all {
            let file = files.entry(seen.file).or_insert_with(|| Together {
                best: vec![0.0; rarity.len()],
                first_line: seen.line,
            });
            file.first_line = file.first_line.min(seen.line);
            for (best, earned) in file.best.iter_mut().zip(&seen.earned) {
                *best = best.max(*earned);
            }
        }
        Self(files)
    }
}

/// The signs of a candidate.
pub(super) fn of(seen: &Seen, plan: &Plan, rarity: &[f32], files: &Files) -> Signs {
    let placed: Vec<usize> = (0..plan.units.len())
        .filter(|index| plan.units[*index].place.is_some())
        .collect();
    let present = |earned: &[f32]| -> f32 {
        let there = placed.iter().filter(|index| earned[**index] > 0.0);
        there.map(|index| rarity[*index]).sum()
    };
    let asked: f32 = placed.iter().map(|index| rarity[*index]).sum();
    let mut signs = Signs {
        terms: seen.earned.iter().sum(),
        coverage: present(&seen.earned),
        proximity: proximity(seen, plan, &placed, rarity),
        name: seen.name,
        named: named(seen, &placed, rarity),
        length: asked * (1.0 + seen.body_terms as f32).ln(),
        ..Signs::default()
    };
    if let Some(file) = files.0.get(&seen.file) {
        signs.file = file.best.iter().sum();
        signs.spread = present(&file.best);
        if seen.line == file.first_line {
            signs.first = asked;
        }
    }
    signs
}

fn proximity(seen: &Seen, plan: &Plan, placed: &[usize], rarity: &[f32]) -> f32 {
    let pairs = placed.windows(2).map(|pair| {
        let place = |at: usize| plan.units[pair[at]].place.unwrap_or(0);
        let gap = u32::try_from(place(1) - place(0)).unwrap_or(u32::MAX);
        let (first, second) = (&seen.positions[pair[0]], &seen.positions[pair[1]]);
        let worth = rarity[pair[0]].min(rarity[pair[1]]);
        apart(first, second, gap).map_or(0.0, |d| worth / (1.0 + d as f32))
    });
    pairs.sum()
}

/// How rare the words are that the symbol shares with the question, by the share of its words
/// that they are.
fn named(seen: &Seen, placed: &[usize], rarity: &[f32]) -> f32 {
    let (mut count, mut worth) = (0_u32, 0.0);
    for index in placed.iter().filter(|index| seen.in_symbol[**index]) {
        count += 1;
        worth += rarity[*index];
    }
    // An identifier of several parts is there as a whole, too.
    let words = match seen.symbol_terms {
        0 | 1 => 1,
        more => more - 1,
    };
    worth * (count as f32 / words as f32).min(1.0)
}

/// How far two words are from standing `gap` apart, if they are near at all.
fn apart(first: &[u32], second: &[u32], gap: u32) -> Option<u32> {
    let mut second = second.to_vec();
    second.sort_unstable();
    let mut best = NEAR + 1;
    for position in first {
        let ideal = position.saturating_add(gap);
        let at = second.partition_point(|p| *p < ideal);
        let around = second[at.saturating_sub(1)..].iter().take(2);
        best = around.map(|p| p.abs_diff(ideal)).fold(best, u32::min);
    }
    (best <= NEAR).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_measured_from_where_they_should_stand() {
        assert_eq!(apart(&[3], &[4], 1), Some(0));
        assert_eq!(apart(&[3, 90], &[1, 93], 1), Some(2));
        assert_eq!(apart(&[3], &[40], 1), None);
        assert_eq!(apart(&[], &[4], 1), None);
        assert_eq!(apart(&[5], &[4], 1), Some(2));
    }
}
