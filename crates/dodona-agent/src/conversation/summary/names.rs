//! Names of people, teams, products and places in a text.
//!
//! Nothing but its capital letter tells a name, so that what begins a sentence counts only where it
//! goes on like a name. What is missed is a name in the originals; what is found and is none costs a
//! line among the names and takes no room from other facts.

use super::facts::{CLAUSE_ENDS, MOST, bare, every_sentence};

/// How many words of its clause go with a name, on either side.
const WORDS_AROUND: usize = 5;

/// A name has no more words; what has more is a title.
const LONGEST: usize = 4;

/// Words with a capital letter that are no names, wherever they stand.
const NO_NAMES: &[&str] = &[
    "A", "Also", "An", "And", "Are", "As", "At", "But", "By", "For", "From", "He", "Her", "His",
    "How", "If", "In", "Is", "It", "Its", "My", "No", "Not", "Note", "Of", "On", "Or", "Our",
    "She", "So", "That", "The", "Their", "Then", "There", "These", "They", "This", "Those", "To",
    "Was", "We", "What", "When", "Where", "Which", "Who", "Why", "With", "Yes", "You", "Your",
];

/// Words that follow the name of somebody who does something, where it begins a sentence.
const DOES: &[&str] = &[
    "and",
    "approved",
    "approves",
    "asked",
    "asks",
    "handles",
    "knows",
    "leads",
    "maintains",
    "needs",
    "owns",
    "prefers",
    "reported",
    "reports",
    "reviewed",
    "reviews",
    "said",
    "says",
    "signs",
    "takes",
    "wants",
    "works",
    "wrote",
];

/// A name, and the words around it that tell what it is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) clause: String,
}

/// The names of a text, each clause of it once. Questions tell nothing of what they name, and code
/// that is quoted without a block names what it names by its own rules.
pub(super) fn names(text: &str) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    for sentence in every_sentence(text) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        if sentence.ends_with(['?', '{', '}', ';']) || is_title(&words) {
            continue;
        }
        for named in of_sentence(&words) {
            if found.iter().all(|other| other.clause != named.clause) {
                found.push(named);
            }
            if found.len() == MOST {
                return found;
            }
        }
    }
    found
}

/// The names of a sentence; one that stands in the clause of another comes with it.
fn of_sentence(words: &[&str]) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    let mut index = 0;
    while index < words.len() {
        let taken = run(words, index);
        if is_name(words, index, taken) {
            let named = named(words, index, taken);
            if found
                .iter()
                .all(|other| !other.clause.contains(&named.name))
            {
                found.push(named);
            }
        }
        index += taken.max(1);
    }
    found
}

/// Whether most of the words have capital letters: then these tell nothing.
fn is_title(words: &[&str]) -> bool {
    let is_capital = |word: &&&str| bare(word).starts_with(char::is_uppercase);
    let capitals = words.iter().filter(is_capital).count();
    words.len() > LONGEST && capitals * 2 > words.len()
}

/// How many words with capital letters follow each other from a place on, within their clause.
fn run(words: &[&str], index: usize) -> usize {
    let mut taken = 0;
    for word in &words[index..] {
        if !is_capitalised(word) {
            break;
        }
        taken += 1;
        if word.ends_with(CLAUSE_ENDS) {
            break;
        }
    }
    taken
}

fn is_name(words: &[&str], index: usize, taken: usize) -> bool {
    let begins = index == 0
        || words[index].starts_with(['"', '“', '\'', '('])
        || words[index - 1].ends_with([':', '.', '!']);
    let goes_on = || {
        let next = words.get(index + taken).filter(|_| taken == 1);
        next.is_some_and(|next| DOES.contains(&bare(next)))
    };
    (1..=LONGEST).contains(&taken) && (!begins || taken > 1 || goes_on())
}

/// `Priya`, `O'Neill`, `Meyer-Lund`; neither `JWT` nor `AuthService` nor `I`.
fn is_capitalised(word: &str) -> bool {
    let word = person(bare(word));
    let parts = || word.split(['-', '\'', '’']);
    let like_one = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.all(char::is_lowercase)
    };
    word.chars().count() > 1
        && !NO_NAMES.contains(&word)
        && parts().all(like_one)
        && parts().any(|part| part.chars().count() > 1)
}

/// A word without the ending that tells whose something is.
fn person(word: &str) -> &str {
    let ending = word.strip_suffix("'s").or(word.strip_suffix("’s"));
    ending.unwrap_or(word)
}

fn named(words: &[&str], index: usize, taken: usize) -> Named {
    let end = index + taken;
    let before = words[..index].iter().rev().take(WORDS_AROUND);
    let before = before
        .take_while(|word| !word.ends_with(CLAUSE_ENDS))
        .count();
    let ends = words[end - 1].ends_with(CLAUSE_ENDS);
    let after = words[end..].iter().take(WORDS_AROUND);
    let after = match ends {
        true => 0,
        false => after.clone().count().min(
            after
                .take_while(|word| !word.ends_with(CLAUSE_ENDS))
                .count()
                + 1,
        ),
    };
    let joined = |words: &[&str]| words.join(" ").trim_end_matches(CLAUSE_ENDS).to_owned();
    let name = joined(&words[index..end]);
    Named {
        name: person(bare(&name)).to_owned(),
        clause: joined(&words[index - before..end + after]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Vec<(String, String)> {
        let found = names(text).into_iter();
        found.map(|named| (named.name, named.clause)).collect()
    }

    #[test]
    fn names_are_found_with_the_words_around_them() {
        for (text, name, clause) in [
            (
                "The billing rollout belongs to Priya Raman, who knows it.",
                "Priya Raman",
                "The billing rollout belongs to Priya Raman",
            ),
            (
                "Priya Raman owns the billing rollout.",
                "Priya Raman",
                "Priya Raman owns the billing rollout",
            ),
            (
                "Alice signs every release herself.",
                "Alice",
                "Alice signs every release herself",
            ),
            (
                "Since then sessions live in Redis for a while, and in files.",
                "Redis",
                "Since then sessions live in Redis for a while",
            ),
            ("Ask O'Neill's team.", "Ask O'Neill", "Ask O'Neill's team"),
        ] {
            assert_eq!(of(text), [(name.to_owned(), clause.to_owned())], "{text}");
        }
    }

    #[test]
    fn what_only_has_a_capital_letter_is_none() {
        for text in [
            "Login issues a token.",
            "It is done. The rest follows, and I go on.",
            "It uses JWT and AuthService.",
            "Does Priya Raman know that?",
            "How To Install The Whole Thing At Once",
            "He said: Use it.",
            "pub struct Session {",
        ] {
            assert_eq!(of(text), [], "{text}");
        }
    }

    #[test]
    fn a_clause_is_told_once() {
        let found = of("The queue went from Kafka to Redis. The queue went from Kafka to Redis.");
        let clause = "The queue went from Kafka to Redis".to_owned();
        assert_eq!(found, [("Kafka".to_owned(), clause)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(12), ..ProptestConfig::default() })]
        #[test]
        fn no_text_is_too_strange(text in "\\PC*", marks in "[A-Za-zÄß .,:'\\n-]{0,120}") {
            for text in [text, marks] {
                let found = names(&text);
                prop_assert!(found.len() <= MOST);
                for named in found {
                    prop_assert!(named.clause.contains(&named.name), "{named:?}");
                }
            }
        }
    }
}
