//! Choosing among lines where there is no room for all.

use super::super::count::Counter;
use super::{LineKind, SummaryLine, sort, tokens};

/// What the introduction and the headings may take, of which there are eight at most.
pub(in super::super) const FRAME: u64 = 115;

/// Who is given room, in which order, and which part of it, in sixteenths. What one does not need
/// is for the next round, in which all are asked again in the same order.
const SHARES: &[(&[LineKind], u64)] = &[
    (&[LineKind::Pinned], 16),
    (&[LineKind::Decision], 4),
    (&[LineKind::Command], 2),
    (&[LineKind::Number], 3),
    (&[LineKind::File], 2),
    (&[LineKind::Symbol], 2),
    (&[LineKind::Name], 1),
    (
        &[
            LineKind::Earlier,
            LineKind::Told,
            LineKind::Asked,
            LineKind::Said,
            LineKind::Did,
        ],
        2,
    ),
];

/// As many lines as there is room for, in the order in which they are read: of each kind the
/// latest. What comes of it has at most `limit` tokens.
pub(in super::super) fn fit(
    mut lines: Vec<SummaryLine>,
    limit: u64,
    counter: &Counter,
) -> Vec<SummaryLine> {
    lines.iter_mut().for_each(|line| line.count(counter));
    let mut room = limit;
    loop {
        let mut kept = fit_tokens(lines.clone(), room);
        sort(&mut kept);
        let used = tokens(counter, &kept);
        // Pieces may count for less than the whole.
        if used <= limit || kept.is_empty() {
            return kept;
        }
        room = room.saturating_sub(used - limit + 1);
    }
}

/// The same by the tokens that the lines have already.
pub(in super::super) fn fit_tokens(lines: Vec<SummaryLine>, limit: u64) -> Vec<SummaryLine> {
    let room = limit.saturating_sub(FRAME);
    let mut chosen = vec![false; lines.len()];
    let mut left = room;
    for whole in [false, true] {
        for (kinds, share) in SHARES {
            let may = match whole {
                true => left,
                false => left.min(room * share / 16),
            };
            left -= choose(&lines, &mut chosen, kinds, may);
        }
    }
    let kept = lines.into_iter().zip(chosen);
    kept.filter_map(|(line, chosen)| chosen.then_some(line))
        .collect()
}

/// Chooses lines of some kinds, the latest first, until the room is full. Answers what they take.
fn choose(lines: &[SummaryLine], chosen: &mut [bool], kinds: &[LineKind], room: u64) -> u64 {
    let mut of_kind: Vec<usize> = (0..lines.len())
        .filter(|index| !chosen[*index] && kinds.contains(&lines[*index].kind))
        .collect();
    of_kind.sort_by_key(|index| std::cmp::Reverse((lines[*index].position, *index)));
    let mut taken = 0;
    for index in of_kind {
        if taken + lines[index].tokens > room {
            break;
        }
        taken += lines[index].tokens;
        chosen[index] = true;
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dodona_proto::Message;
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::ExchangeId;

    fn bytes() -> Counter {
        Arc::new(|message| match message {
            Message::User { content } => 4 + content.len() as u64,
            _ => 0,
        })
    }

    fn lines() -> impl Strategy<Value = Vec<SummaryLine>> {
        let kind = prop::sample::select(LineKind::ALL.to_vec());
        let line = (kind, "[a-z]{1,60}", 0..100_u64).prop_map(|(kind, text, position)| {
            SummaryLine::new(kind, text).from(position, &ExchangeId::new())
        });
        prop::collection::vec(line, 0..200)
    }

    #[test]
    fn each_kind_has_its_share_and_what_is_over_goes_to_the_first() {
        let many = |kind, tokens| {
            (0..100).map(move |n| SummaryLine {
                tokens,
                ..SummaryLine::new(kind, format!("{n}")).from(n, &ExchangeId::new())
            })
        };
        let lines: Vec<SummaryLine> = many(LineKind::Decision, 10)
            .chain(many(LineKind::File, 10))
            .collect();
        let kept = fit_tokens(lines, FRAME + 1_600);
        let of = |kind| kept.iter().filter(|line| line.kind == kind).count();
        assert_eq!((of(LineKind::Decision), of(LineKind::File)), (100, 60));
        let oldest = kept.iter().filter(|line| line.kind == LineKind::File);
        assert_eq!(oldest.map(|line| line.position).min(), Some(40));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(11), ..ProptestConfig::default() })]
        #[test]
        fn there_is_a_bound_and_whoever_fits_stays(lines in lines(), limit in 0..6_000_u64) {
            let counter = bytes();
            let all = lines.len();
            let whole = {
                let mut sorted = lines.clone();
                sort(&mut sorted);
                tokens(&counter, &sorted)
            };
            let kept = fit(lines, limit, &counter);
            prop_assert!(tokens(&counter, &kept) <= limit);
            if whole + FRAME <= limit {
                prop_assert_eq!(kept.len(), all);
            }
        }
    }
}
