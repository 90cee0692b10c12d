//! Words that ask rather than say: dropped from a question unless nothing else is left.

/// Sorted, so that a word is found by halving.
const STOP: &[&str] = &[
    "a",
    "about",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "but",
    "by",
    "can",
    "could",
    "define",
    "definition",
    "did",
    "do",
    "does",
    "explain",
    "for",
    "from",
    "had",
    "has",
    "have",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "me",
    "mean",
    "means",
    "my",
    "of",
    "on",
    "or",
    "our",
    "please",
    "s",
    "shall",
    "should",
    "show",
    "so",
    "such",
    "t",
    "tell",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "us",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
];

/// Whether a lower-case word is one of them.
pub(super) fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(STOP.is_sorted());
        assert!(is_stop("whether") && !is_stop("rule"));
    }
}
