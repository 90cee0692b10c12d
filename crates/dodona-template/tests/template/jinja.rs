//! The real Jinja2 renders the same templates to the same texts.

use std::io::Write as _;
use std::process::Stdio;

use dodona_template::{ErrorKind, Limits, Template};
use dodona_testkit::{Chance, Python};
use serde_json::{Value, json};

use super::generate::Generate;

/// How many templates are compared in one run.
const TEMPLATES: usize = 3_000;

/// Renders a template per line, each on its own; a fault of any sort is `null`.
const PEER: &str = r#"
import json, sys
from jinja2 import Environment
environment = Environment(extensions=["jinja2.ext.loopcontrols"])
for line in sys.stdin:
    case = json.loads(line)
    try:
        text = environment.from_string(case["template"]).render(case["context"])
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
    else:
        print(json.dumps({"text": text}))
"#;

#[test]
fn the_same_templates_give_the_same_texts() {
    let seed = Chance::seed();
    println!("DODONA_SEED={seed}");
    let mut generate = Generate::new(Chance::from_seed(seed));
    let cases: Vec<Value> = (0..TEMPLATES).map(|_| generate.case()).collect();
    let mut differences = Vec::new();
    let mut texts = 0;
    for (case, theirs) in cases.iter().zip(jinja(&cases)) {
        let ours = render(case);
        texts += usize::from(ours.get("text").is_some());
        if !agree(&ours, &theirs) {
            let context = &case["context"];
            let template = case["template"].as_str().unwrap_or_default();
            differences.push(format!(
                "{template}\n  with {context}\n  ours {ours}\n  jinja {theirs}"
            ));
        }
    }
    let shown = differences
        .iter()
        .take(10)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        differences.is_empty(),
        "{} differ, the first:\n{shown}",
        differences.len()
    );
    assert!(
        texts > TEMPLATES / 2,
        "only {texts} of {TEMPLATES} templates made a text"
    );
}

/// Both texts are the same, or neither made one, or a number did not fit in 64 bits, or the
/// template grew beyond our limits, which Jinja2 does not have.
fn agree(ours: &Value, theirs: &Value) -> bool {
    if ours["limit"] == true {
        return true;
    }
    let overflow = ours["error"]
        .as_str()
        .is_some_and(|error| error.contains("64 bits"));
    match (ours.get("text"), theirs.get("text")) {
        (None, _) if overflow => true,
        (Some(ours), Some(theirs)) => ours == theirs,
        (None, None) => true,
        _ => false,
    }
}

fn render(case: &Value) -> Value {
    let limits = Limits::prompt();
    let source = case["template"].as_str().unwrap_or_default();
    let text = Template::compile(source, &limits)
        .and_then(|template| template.render(&case["context"], &limits));
    match text {
        Ok(text) => json!({"text": text}),
        Err(error) => {
            json!({"error": error.to_string(), "limit": error.kind == ErrorKind::Limit})
        }
    }
}

fn jinja(cases: &[Value]) -> Vec<Value> {
    let python = Python::with(&["jinja2==3.1.6"]).expect("Python and the package are there");
    let mut peer = python
        .command()
        .args(["-c", PEER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = peer.stdin.take().expect("it was asked for");
    let lines: String = cases.iter().map(|case| format!("{case}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = peer.wait_with_output().expect("Python ends");
    writer
        .join()
        .expect("no panic")
        .expect("Python reads everything");
    let lines = String::from_utf8(output.stdout).expect("Python writes UTF-8");
    let answers: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(answers.len(), cases.len(), "Python answers every line");
    answers
}
