//! The words of a question that say what it is about.

use std::collections::HashSet;

/// The most words that the name of something has.
const MOST_OF_A_NAME: usize = 4;

/// Words that questions have whatever they are about.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is",
    "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "should", "so", "tell", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "to", "was", "we", "were",
    "what", "when", "where", "which", "who", "why", "will", "with", "work", "works", "would",
    "you", "your",
];

/// Beginnings of the words that matter, lower-case. The beginning, because a question inflects
/// its words otherwise than its answer does.
pub(super) fn of_question(question: &str) -> Vec<String> {
    let is_common = |word: &String| COMMON.contains(&word.as_str());
    let mut words: Vec<String> = split(question).filter(|word| !is_common(word)).collect();
    if words.is_empty() {
        words = split(question).collect();
    }
    words.iter_mut().for_each(|word| *word = beginning(word));
    words.sort();
    words.dedup();
    words
}

/// Whether a question is about why, when or by whom something came to be.
pub(super) fn asks_for_reasons(question: &str) -> bool {
    split(question).any(|word| matches!(word.as_str(), "why" | "when" | "who" | "reason"))
}

/// Whether a question is about what a person has to do: "How do I add a rule?".
pub(super) fn asks_for_steps(question: &str) -> bool {
    let words: Vec<String> = split(question).take(3).collect();
    let is_person = |word: &String| matches!(word.as_str(), "i" | "one" | "we" | "you");
    match words.as_slice() {
        [how, to, ..] if how == "how" && to == "to" => true,
        [how, verb, who] if how == "how" => {
            matches!(verb.as_str(), "do" | "can" | "could" | "should" | "would") && is_person(who)
        }
        _ => false,
    }
}

/// Whether a text says what to do: numbered steps, a checklist or commands.
pub(super) fn has_steps(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("$ ")
            || line.starts_with("- [")
            || (after_number.len() < line.len() && after_number.starts_with(". "))
    })
}

/// Whether a question is about what was decided or said before.
pub(super) fn asks_for_decisions(question: &str) -> bool {
    let asks = [
        "agree",
        "agreed",
        "decide",
        "decided",
        "decision",
        "decisions",
        "settle",
        "settled",
    ];
    split(question).any(|word| asks.contains(&word.as_str()))
}

/// What a question wants to have explained: `the journal` of "What is the journal?".
pub(super) fn asked_what(question: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = split(question).collect();
    let is_what = |words: &[String]| match words {
        [first, second, ..] => {
            first == "what" && matches!(second.as_str(), "is" | "are" | "does" | "s")
        }
        _ => false,
    };
    if words
        .first()
        .is_some_and(|word| matches!(word.as_str(), "define" | "explain"))
    {
        words.remove(0);
    } else if is_what(&words) {
        words.drain(..2);
    } else {
        return None;
    }
    if words
        .last()
        .is_some_and(|word| matches!(word.as_str(), "mean" | "do" | "for"))
    {
        words.pop();
    }
    term(&words)
}

/// How a sentence begins that says what a question asks: `a rule is` of "What is a rule?".
pub(super) fn defining_phrase(question: &str) -> Option<String> {
    asked_what(question)?;
    let words: Vec<String> = split(question).collect();
    match words.as_slice() {
        [_, verb, name @ ..] if verb == "is" || verb == "are" => {
            Some(format!("{} {verb}", name.join(" ")))
        }
        _ => None,
    }
}

/// What a question wants to have explained at length: `the journal` of "How does the journal work?".
pub(super) fn asked_how(question: &str) -> Option<Vec<String>> {
    let words: Vec<String> = split(question).collect();
    let how = words.first()? == "how" && matches!(words.get(1)?.as_str(), "do" | "does");
    let works = matches!(words.last()?.as_str(), "work" | "function");
    (how && works && words.len() > 2)
        .then(|| term(&words[2..words.len() - 1]))
        .flatten()
}

/// The name of something, without its article.
fn term(words: &[String]) -> Option<Vec<String>> {
    let articles = words.iter().take_while(|word| is_article(word));
    let term: Vec<String> = words[articles.count()..].to_vec();
    (1..=MOST_OF_A_NAME).contains(&term.len()).then_some(term)
}

/// Words that declare what follows them, in any of the languages that are indexed.
const DECLARES: &[&str] = &[
    "class",
    "enum",
    "interface",
    "mod",
    "module",
    "protocol",
    "record",
    "struct",
    "trait",
    "type",
    "union",
];

/// Whether a text has the place where something is declared.
pub(super) fn declares(text: &str, term: &[String]) -> bool {
    text.lines().any(|line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| DECLARES.contains(&word))
            && words
                .find(|word| !word.is_empty())
                .is_some_and(|name| is_name(name, term))
    })
}

/// Whether a text is the name of something, however it is written: `HookRegistry`,
/// `hook_registry` and "Hook registries" are one.
pub(super) fn is_name(text: &str, term: &[String]) -> bool {
    let last = text.rsplit(['.', ':', '#', '>']).next().unwrap_or(text);
    let words: Vec<String> = split(last).collect();
    words.len() == term.len() && words.iter().zip(term).all(is_same)
}

/// What stands after a name and its article, where words begin with them.
pub(super) fn after_name<'w>(words: &'w [String], term: &[String]) -> Option<&'w [String]> {
    let articles = words.iter().take_while(|word| is_article(word)).count();
    let words = &words[articles..];
    let mut pairs = words.iter().zip(term);
    let is_named = words.len() >= term.len() && pairs.all(is_same);
    is_named.then(|| &words[term.len()..])
}

fn is_article(word: &str) -> bool {
    matches!(word, "a" | "an" | "the")
}

fn is_same((word, wanted): (&String, &String)) -> bool {
    singular(word) == singular(wanted)
}

/// Whether two texts have nearly the same words.
pub(super) fn are_alike(one: &str, other: &str) -> bool {
    let words = |text| split(text).collect::<HashSet<String>>();
    let (one, other) = (words(one), words(other));
    let common = one.intersection(&other).count();
    let all = one.len() + other.len() - common;
    // Four words of five.
    common * 5 >= all * 4
}

fn singular(word: &str) -> &str {
    match word.strip_suffix("ies") {
        Some(stem) if stem.len() > 1 => stem,
        _ => word
            .strip_suffix('s')
            .or(word.strip_suffix('y'))
            .unwrap_or(word),
    }
}

/// Whether a text tells why something is as it is.
pub(super) fn gives_reasons(text: &str) -> bool {
    let tells = [
        "because",
        "therefore",
        "instead",
        "reason",
        "reasons",
        "rather",
    ];
    split(text).any(|word| tells.contains(&word.as_str()))
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
pub(super) fn split(text: &str) -> impl Iterator<Item = String> {
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
    fn what_is_to_be_explained_is_found_by_its_name() {
        let term = |question| asked_what(question).map(|term| term.join(" "));
        for (question, expected) in [
            ("What is a hook registry?", Some("hook registry")),
            ("what's the journal", Some("journal")),
            ("What are `HookPoint`s?", Some("hook point s")),
            ("What does fuel mean?", Some("fuel")),
            ("Explain approvals", Some("approvals")),
            ("What is the best way to add a method here?", None),
            ("How do rules work?", None),
            ("What?", None),
        ] {
            assert_eq!(term(question).as_deref(), expected, "{question}");
        }
        assert_eq!(
            defining_phrase("What is a hook registry?").as_deref(),
            Some("a hook registry is")
        );
        assert_eq!(defining_phrase("Explain approvals"), None);
        assert_eq!(defining_phrase("Why is a hook registry here?"), None);
        let registry = asked_what("What is a hook registry?").unwrap();
        for name in [
            "HookRegistry",
            "hook_registry",
            "Hook registries",
            "dodona_hooks::HookRegistry",
        ] {
            assert!(is_name(name, &registry), "{name}");
        }
        assert!(!is_name("Hook", &registry) && !is_name("the hook registry of plugins", &registry));
    }

    #[test]
    fn what_is_to_be_explained_at_length_is_found_too() {
        let term = |question| asked_how(question).map(|term| term.join(" "));
        for (question, expected) in [
            ("How does compaction work?", Some("compaction")),
            ("how do the hook points work", Some("hook points")),
            ("How does work work?", Some("work")),
            ("How do I add a rule?", None),
            ("How does work?", None),
        ] {
            assert_eq!(term(question).as_deref(), expected, "{question}");
        }
    }

    #[test]
    fn what_a_person_has_to_do_is_asked_with_a_person_in_the_question() {
        for question in [
            "How do I add a rule?",
            "how to add a rule",
            "How can we add one?",
        ] {
            assert!(asks_for_steps(question), "{question}");
        }
        for question in ["How does a rule work?", "How are rules kept?", "How?"] {
            assert!(!asks_for_steps(question), "{question}");
        }
        for text in ["Then:\n\n$ make it", "1. Make it.", "- [ ] **Make it**"] {
            assert!(has_steps(text), "{text}");
        }
        assert!(!has_steps("It costs $ 5.\n- item\n12 of them. 1.5"));
    }

    #[test]
    fn a_declaration_is_known_by_the_word_before_the_name() {
        let term = asked_what("What is a hook point?").unwrap();
        assert!(declares(
            "/// A moment.\npub(crate) enum HookPoint {",
            &term
        ));
        assert!(declares("class HookPoint(Base):", &term));
        assert!(!declares("impl FromStr for HookPoint {", &term));
        assert!(!declares("struct Hook { point: HookPoint }", &term));
    }

    #[test]
    fn texts_that_differ_in_little_are_alike() {
        assert!(are_alike(
            "the rules are evaluated in order",
            "The rules are evaluated, in order."
        ));
        assert!(!are_alike(
            "the rules are evaluated",
            "the journal is written first"
        ));
    }

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
        assert_eq!(of_question("How do subagents work?"), ["subage"]);
        assert_eq!(of_question("How is it?"), ["how", "is", "it"]);
    }
}
