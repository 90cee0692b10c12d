//! `dodona rules test`.

use std::fmt::Write as _;
use std::path::Path;

use dodona_proto::ExitKind;
use dodona_rules::{Problem, Tested, run_tests};
use dodona_script::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::{Done, Form, answer, check, files, near, short};
use crate::failure::Failure;
use crate::paint::{Paint, harmless, one_line};
use crate::session::Session;

#[derive(Default, Serialize, Deserialize)]
struct Tests {
    tests: Vec<Tested>,
    failed: usize,
    untested: Vec<String>,
    problems: Vec<Problem>,
}

/// Tests of the rules that are in use here, or of one of them.
pub(super) async fn all(
    session: &Session,
    rule: Option<String>,
    form: Form,
) -> Result<Done, Failure> {
    let tests: Tests = answer(session, "rules.test", json!({ "rule": rule })).await?;
    Ok(done(&tests, form))
}

/// Tests of files, whether or not they are in use.
pub(super) fn files(path: &Path, form: Form) -> Result<Done, Failure> {
    let scripts = Engine::new(1);
    let mut tests = Tests::default();
    for file in files::named(path)? {
        let loaded = files::load(&file);
        tests.problems.extend(loaded.problems);
        let Some(rule) = loaded.rule else { continue };
        let run = run_tests(&rule, &Map::new(), &scripts);
        if run.is_empty() {
            tests.untested.push(rule.key.to_string());
        }
        tests.tests.extend(run);
    }
    tests.failed = tests
        .tests
        .iter()
        .filter(|test| test.failure.is_some())
        .count();
    Ok(done(&tests, form))
}

fn done(tests: &Tests, form: Form) -> Done {
    let bad = tests.failed > 0 || tests.problems.iter().any(Problem::is_error);
    Done {
        text: form.text(tests, words),
        failure: bad.then_some(Failure::Told(ExitKind::Failed)),
    }
}

fn words(tests: &Tests, paint: Paint) -> String {
    let mut text = String::new();
    for problem in &tests.problems {
        text.push_str(&check::told(problem, paint));
    }
    let names = tests.tests.iter().map(|test| short(&test.rule).len());
    let names = names.max().unwrap_or(0);
    for test in &tests.tests {
        let word = match test.failure {
            None => paint.good("ok    ").to_string(),
            Some(_) => paint.bad("failed").to_string(),
        };
        let rule = short(&test.rule);
        let _ = writeln!(text, "{word}  {rule:names$}  {}", one_line(&test.name));
        if let Some(why) = &test.failure {
            let place = format!("{}:{}", near(&test.path), test.line);
            let _ = writeln!(text, "        {place}: {}", harmless(why));
        }
        if let Some(explained) = &test.explained {
            let _ = writeln!(text, "        {}", paint.dim(one_line(explained)));
        }
    }
    for rule in &tests.untested {
        let _ = writeln!(text, "{}  {}", paint.dim("none  "), short(rule));
    }
    let passed = tests.tests.len() - tests.failed;
    let _ = writeln!(text, "{passed} passed, {} failed", tests.failed);
    text
}
