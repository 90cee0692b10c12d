//! Thousands of random expressions, evaluated here and by simpleeval: the same value, or both fail.

use dodona_testkit::Chance;

use crate::generate::Generator;
use crate::simpleeval::{Answer, Peer, eval};

/// How many; `DODONA_EXPRESSIONS` asks for more.
fn expressions() -> usize {
    let asked = std::env::var("DODONA_EXPRESSIONS");
    asked
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(5_000)
}

/// The documented differences that a random expression can meet: integers have 64 bits, there are
/// limits of our own, and no complex numbers.
fn is_documented(ours: &Answer) -> bool {
    let complex = ours.text == "value" && ours.message.contains("complex number");
    ours.value.is_none() && (complex || matches!(ours.text.as_str(), "overflow" | "limit"))
}

#[test]
fn random_expressions_are_what_simpleeval_says() {
    let (seed, count) = (Chance::seed(), expressions());
    println!("DODONA_SEED={seed}");
    let mut generator = Generator::new(seed);
    let mut peer = Peer::start();
    let (mut values, mut differ) = (0, Vec::new());
    for _ in 0..count {
        let expr = generator.expression();
        let (ours, theirs) = (eval(&expr), peer.eval(&expr));
        values += usize::from(ours.value.is_some());
        if ours.value != theirs.value && !is_documented(&ours) {
            differ.push(format!(
                "{expr}\n  ours   {}\n  theirs {}",
                ours.text, theirs.text
            ));
        }
    }
    assert!(
        differ.is_empty(),
        "{} of {count} differ:\n{}",
        differ.len(),
        differ[..differ.len().min(40)].join("\n")
    );
    // If most failed, little would have been compared.
    assert!(values > count / 2, "only {values} have a value");
}
