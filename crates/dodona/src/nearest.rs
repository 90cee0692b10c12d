//! What a misspelt word most likely meant.

/// The candidate nearest to a word, if any is near enough.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: String = word.chars().take(128).collect();
    let distances = candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate));
    distances
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_wins_and_nothing_far_does() {
        assert_eq!(nearest("dealy_ms", ["to", "delay_ms"]), Some("delay_ms"));
        assert_eq!(nearest("tx", ["text", "to"]), Some("to"));
        assert_eq!(nearest("elephant", ["to", "delay_ms"]), None);
    }
}
