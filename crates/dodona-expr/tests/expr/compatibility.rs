//! The reference documents say the truth: each line of the tables of differences is tried here and
//! in simpleeval, and everything that can be named is in the reference.

use std::path::PathBuf;

use dodona_expr::Schema;
use dodona_proto::RULE_CONTEXT;

use crate::simpleeval::{Answer, Peer, eval};

fn document(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The lines `| expression | simpleeval | here |` of the section on expressions.
fn differences() -> Vec<[String; 3]> {
    let text = document("compatibility.md");
    let section = text
        .split("\n## ")
        .find(|part| part.starts_with("Expressions"))
        .unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<String> = line
            .trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect();
        <[String; 3]>::try_from(cells).unwrap()
    })
    .collect()
}

/// Whether an answer is what a cell says: `value` in backticks, `value`, `error`, or an error of a
/// kind.
fn agrees(cell: &str, answer: &Answer) -> bool {
    match (cell, &answer.value) {
        ("error", value) => value.is_none(),
        ("value", value) => value.is_some(),
        (cell, None) => cell == format!("error `{}`", answer.text),
        (cell, Some(_)) => cell == format!("`{}`", answer.text),
    }
}

#[test]
fn every_documented_difference_is_one() {
    let mut peer = Peer::start();
    let rows = differences();
    assert!(rows.len() > 40, "only {} lines were found", rows.len());
    for [expression, theirs, ours] in rows {
        let source = expression.trim_matches('`');
        let (their_answer, our_answer) = (peer.eval(source), eval(source));
        assert!(
            agrees(&theirs, &their_answer),
            "{source}: simpleeval says {their_answer:?}, not {theirs}"
        );
        assert!(
            agrees(&ours, &our_answer),
            "{source}: we say {our_answer:?}, not {ours}"
        );
    }
}

#[test]
fn the_reference_names_every_field_and_function_of_a_rule() {
    let text = document("expressions.md");
    let schema = Schema::parse(RULE_CONTEXT).unwrap();
    // Records that are always there need no line of their own.
    let implied = [
        "context",
        "context.turn",
        "context.history",
        "context.user",
        "context.project",
    ];
    for path in schema.paths().filter(|path| !implied.contains(path)) {
        assert!(
            text.contains(&format!("| `{path}` |")),
            "`{path}` is not in the reference"
        );
    }
    for function in schema.functions() {
        assert!(
            text.contains(&format!("| `{function}(")),
            "`{function}` is not in the reference"
        );
    }
    for line in text
        .lines()
        .filter(|line| line.starts_with("| `context.") && !line.contains('('))
    {
        let path = line.split('`').nth(1).unwrap();
        assert!(
            schema.slot(path).is_some(),
            "`{path}` is in the reference only"
        );
    }
}
