//! The words by which something is found again.

use std::collections::HashSet;

/// Words that texts have whatever they are about.
const COMMON: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but",
    "by", "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her",
    "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "me", "more", "my",
    "no", "not", "now", "of", "on", "one", "or", "our", "out", "please", "say", "she", "should",
    "so", "some", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "to", "up", "us", "was", "we", "were", "what", "when", "where", "which", "who", "why",
    "will", "with", "would", "you", "your",
];

/// The longest word, in bytes: what is longer is no word of anybody's question.
const LONGEST: usize = 40;

/// The words of a text that say what it is about, each once, in their order. They are without
/// their endings, because a question inflects them otherwise than its answer does; names are split
/// where they are put together.
pub(crate) fn of(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut words: Vec<String> = sequence(text).collect();
    words.retain(|word| seen.insert(word.clone()));
    words
}

/// The words that follow each other in a text, each pair once.
pub(crate) fn pairs(text: &str) -> HashSet<(String, String)> {
    let words: Vec<String> = sequence(text).collect();
    let pairs = words.windows(2).map(|two| (two[0].clone(), two[1].clone()));
    pairs.collect()
}

fn sequence(text: &str) -> impl Iterator<Item = String> {
    split(text)
        .filter(|word| word.len() <= LONGEST && !COMMON.contains(&word.as_str()))
        .map(|word| stem(&word).to_owned())
}

/// What a letter is to its neighbours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Lower,
    Upper,
    Digit,
    /// Of a script without spaces between words: each is one.
    Alone,
    Other,
}

fn sort(c: char) -> Sort {
    match c {
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => Sort::Alone,
        _ if c.is_numeric() => Sort::Digit,
        _ if c.is_uppercase() => Sort::Upper,
        _ if c.is_alphabetic() => Sort::Lower,
        _ => Sort::Other,
    }
}

/// Words in lower case: `HookRegistry`, `hook_registry` and "hook registry" are the same two.
fn split(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = Sort::Other;
    for c in text.chars() {
        let now = sort(c);
        let goes_on = match (before, now) {
            (_, Sort::Other | Sort::Alone) | (Sort::Other | Sort::Alone, _) => false,
            (Sort::Upper, Sort::Lower) => true,
            (before, now) => before == now,
        };
        if !goes_on && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if now != Sort::Other {
            word.extend(c.to_lowercase());
        }
        before = now;
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty())
}

/// A word without its ending: "decided", "decides" and "decide" have one stem.
fn stem(word: &str) -> &str {
    if word.len() < 4 || !word.is_ascii() {
        return word;
    }
    let without = |word: &'_ str, ending: &str, least: usize| -> Option<usize> {
        let rest = word.strip_suffix(ending)?;
        (rest.len() >= least).then_some(rest.len())
    };
    let mut end = word.len();
    if !word.ends_with("ss") {
        end = without(word, "s", 3).unwrap_or(end);
    }
    for ending in ["ing", "ed"] {
        end = without(&word[..end], ending, 3).unwrap_or(end);
    }
    end = without(&word[..end], "ie", 3).unwrap_or(end);
    end = without(&word[..end], "e", 3).unwrap_or(end);
    end = without(&word[..end], "y", 3).unwrap_or(end);
    let letters = &word.as_bytes()[..end];
    match letters {
        [.., one, other] if one == other && letters.len() > 3 => &word[..end - 1],
        _ => &word[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_stem_are_one() {
        for same in [
            &["decide", "decides", "decided", "deciding"][..],
            &["token", "tokens", "Tokens"],
            &["drop", "drops", "dropped", "dropping"],
            &["retry", "retries"],
            &["cache", "caches", "cached", "caching"],
        ] {
            let stems: HashSet<String> = same.iter().flat_map(|word| of(word)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
    }

    #[test]
    fn names_are_split_and_common_words_left_out() {
        assert_eq!(
            of("What is in src/service17/HookRegistry.rs, and the 30ms?"),
            ["src", "servic", "17", "hook", "registr", "rs", "30", "ms"]
        );
        assert_eq!(of("設定 is"), ["設", "定"]);
        assert_eq!(of("is it the"), Vec::<String>::new());
    }
}
