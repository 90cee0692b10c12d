//! `dodona plugins test`.

use std::fmt::Write as _;
use std::path::Path;

use dodona_extern::luau::trial::{self, Tested, Verdict};
use dodona_hub::Directory;
use dodona_plugin::reading::Problem;
use dodona_proto::ExitKind;
use serde::Serialize;

use super::check::{counted, find};
use super::{Done, Form};
use crate::excerpt;
use crate::failure::Failure;
use crate::paint::{Paint, harmless, one_line};

/// What the tests of a plugin came to.
#[derive(Serialize)]
struct Report {
    directory: String,
    tests: Vec<Tested>,
    failed: usize,
    problems: Vec<Problem>,
}

/// Runs the tests of a plugin and prints how they went.
pub(super) async fn run(plugin: &Path, form: Form) -> Result<(), Failure> {
    done(plugin, form).await?.print()
}

/// Runs the tests of a plugin.
pub(super) async fn done(plugin: &Path, form: Form) -> Result<Done, Failure> {
    let dir = find(plugin)?;
    let mut report = Report {
        directory: dir.display().to_string(),
        tests: Vec::new(),
        failed: 0,
        problems: Vec::new(),
    };
    let tested = match Directory::read(&dir) {
        Ok(directory) => trial::test(&dir, &directory.manifest).await,
        Err(problems) => Err(problems),
    };
    match tested {
        Ok((tests, problems)) => (report.tests, report.problems) = (tests, problems),
        Err(problems) => report.problems = problems,
    }
    if report.tests.is_empty() && report.problems.is_empty() {
        let message = format!("`{}` has no tests", report.directory);
        return Err(Failure::usage(message).hint(
            "write `[[tests]]` into `tests/main.toml`; `dodona plugins new NAME --luau` shows how",
        ));
    }
    let failed = |test: &&Tested| test.verdict != Verdict::Passed;
    report.failed = report.tests.iter().filter(failed).count();
    let bad = report.failed > 0 || !report.problems.is_empty();
    Ok(Done {
        text: form.text(&report, words),
        failure: bad.then_some(Failure::Told(ExitKind::Failed)),
    })
}

fn words(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        let _ = writeln!(text, "{}\n", excerpt::draw_problem(problem, paint));
    }
    for test in &report.tests {
        let name = one_line(&test.name);
        match &test.verdict {
            Verdict::Passed => {
                let _ = writeln!(text, "{}  {name}", paint.good("ok    "));
            }
            Verdict::Failed { why } => {
                let _ = writeln!(text, "{}  {name}", paint.bad("failed"));
                for line in why {
                    let _ = writeln!(text, "        {}", harmless(line));
                }
            }
        }
    }
    let _ = writeln!(
        text,
        "{}, {} failed",
        counted(report.tests.len(), "test"),
        report.failed
    );
    text
}
