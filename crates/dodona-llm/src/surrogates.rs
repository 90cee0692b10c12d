//! Letters that a server has cut in two.
//!
//! Outside the first 65 536 characters, JSON writes a letter as a pair of escapes. A server that
//! counts in those units, as JavaScript does, may send one half in one event and the other in the
//! next; neither is JSON that a text can be read from.

use std::borrow::Cow;

/// Puts halves together again, from one event to the next.
#[derive(Debug, Default)]
pub(crate) struct Surrogates {
    /// The first half, as it was written, until the second comes.
    first: Option<String>,
}

/// An escape is `\u` and four digits.
const ESCAPE: usize = 6;

enum Half {
    First,
    Second,
}

impl Surrogates {
    /// The event's data with whole letters only: a first half waits for its second, and a second
    /// half that nothing precedes becomes the mark of a letter that was lost.
    pub(crate) fn mend<'a>(&mut self, data: &'a str) -> Cow<'a, str> {
        let mut mended = String::new();
        let mut kept = 0;
        let mut at = 0;
        while let Some(found) = data[at..].find('\\') {
            at += found;
            let Some(half) = half(&data[at..]) else {
                // Another escape; what follows the backslash is not looked at again.
                at += 1 + data[at + 1..].chars().next().map_or(0, char::len_utf8);
                continue;
            };
            let end = at + ESCAPE;
            let pairs = matches!(half, Half::First)
                && matches!(self::half(&data[end..]), Some(Half::Second));
            if pairs {
                at = end + ESCAPE;
                continue;
            }
            mended.push_str(&data[kept..at]);
            match half {
                Half::First => self.first = Some(data[at..end].to_owned()),
                Half::Second => match self.first.take() {
                    Some(first) => mended.extend([&first, &data[at..end]]),
                    None => mended.push('\u{fffd}'),
                },
            }
            kept = end;
            at = end;
        }
        match kept {
            0 => Cow::Borrowed(data),
            _ => Cow::Owned(mended + &data[kept..]),
        }
    }
}

/// Which half of a letter an escape at the beginning of a text is, if it is one.
fn half(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mend(events: &[&str]) -> Vec<String> {
        let mut surrogates = Surrogates::default();
        events
            .iter()
            .map(|data| surrogates.mend(data).into_owned())
            .collect()
    }

    #[test]
    fn halves_meet_again() {
        let halves = [r#"{"a":"x\ud83e"}"#, r#"{"a":"\udd80y"}"#];
        let whole = [r#"{"a":"x"}"#, r#"{"a":"\ud83e\udd80y"}"#];
        assert_eq!(mend(&halves), whole);
        assert_eq!(mend(&[r#""\udd80""#]), ["\"\u{fffd}\""]);
    }

    #[test]
    fn whole_letters_and_other_escapes_stay() {
        let fine = [
            r#""\ud83e\udd80 \\ud83e \" \u00e4 \n""#,
            r#""plain""#,
            r"\",
            r"\u12",
            r#""\ud83""#,
        ];
        assert_eq!(mend(&fine), fine);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(15), ..ProptestConfig::default() })]
        #[test]
        fn any_text_is_taken(texts in proptest::collection::vec(".{0,20}|(\\\\|u|d|8|c|0|漢){0,20}", 0..5)) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            mend(&texts);
        }

        #[test]
        fn json_comes_out_as_it_went_in(text in "\\PC{0,20}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(mend(&[&json]), [json.as_str()]);
        }
    }
}
