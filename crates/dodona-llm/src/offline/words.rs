//! The words of a question that say what it is about.

/// Words that questions have whatever they are about.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is",
    "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "should", "so", "tell", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "to", "was", "we", "were",
    "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// Beginnings of the words that matter, lower-case. The beginning, because a question inflects
/// its words otherwise than its answer does.
pub(super) fn of_question(question: &str) -> Vec<String> {
    let mut words: Vec<String> = split(question)
        .filter(|word| !COMMON.contains(&word.as_str()))
        .map(|word| beginning(&word))
        .collect();
    words.sort();
    words.dedup();
    words
}

/// Whether a question is about why, when or by whom something came to be.
pub(super) fn asks_for_reasons(question: &str) -> bool {
    split(question).any(|word| matches!(word.as_str(), "why" | "when" | "who" | "reason"))
}

/// Which of the words a text has.
pub(super) fn in_text(text: &str, words: &[String]) -> usize {
    let mut seen = vec![false; words.len()];
    for word in split(text) {
        for (seen, wanted) in seen.iter_mut().zip(words) {
            *seen |= word.starts_with(wanted.as_str());
        }
    }
    seen.into_iter().filter(|seen| *seen).count()
}

/// Words, lower-case; names are split where they are put together.
fn split(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before_lower = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before_lower) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before_lower = c.is_lowercase();
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty())
}

fn beginning(word: &str) -> String {
    let letters = word.chars().count();
    // `evaluated` and `evaluation` share six letters; short words are kept whole.
    word.chars()
        .take(if letters <= 4 {
            letters
        } else {
            (letters - 2).clamp(4, 6)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_reduced_to_what_it_is_about() {
        assert_eq!(
            of_question("How are the rules evaluated?"),
            ["evalua", "rule"]
        );
        assert_eq!(
            in_text(
                "fn evaluateRule(rule: &Rule)",
                &of_question("How are rules evaluated?")
            ),
            2
        );
        assert_eq!(
            in_text("nothing here", &of_question("How are rules evaluated?")),
            0
        );
    }
}
