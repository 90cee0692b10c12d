//! `dodona rules check`.

use std::fmt::Write as _;
use std::path::PathBuf;

use dodona_proto::ExitKind;
use dodona_rules::Problem;
use dodona_rules::settings::Declared;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Done, Form, answer, files, near};
use crate::config;
use crate::failure::Failure;
use crate::home::Home;
use crate::paint::{Paint, harmless};
use crate::project;
use crate::session::Session;
use crate::shell::Shell;

#[derive(Serialize, Deserialize)]
struct Checked {
    rules: usize,
    problems: Vec<Problem>,
}

/// Checks the rules that are in use here.
pub(super) async fn all(session: &Session, form: Form) -> Result<Done, Failure> {
    let checked: Checked = answer(session, "rules.check", json!({})).await?;
    Ok(done(&checked, form))
}

/// Checks files, whether or not they are in use.
pub(super) fn files(shell: &Shell, paths: &[PathBuf], form: Form) -> Result<Done, Failure> {
    let settings = declared(shell).unwrap_or_default();
    let mut checked = Checked {
        rules: 0,
        problems: Vec::new(),
    };
    for path in paths {
        for file in files::named(path)? {
            let loaded = files::load(&file);
            checked.rules += usize::from(loaded.rule.is_some());
            checked.problems.extend(loaded.problems);
            if let Some(rule) = &loaded.rule {
                let declared = Declared::of(&settings.0, &settings.1);
                checked.problems.extend(declared.problems(rule));
                checked.problems.extend(rule.file_name_warning());
            }
        }
    }
    Ok(done(&checked, form))
}

/// The settings that rules can read here, the user's and the project's. Settings that cannot be read
/// are reported by `dodona config show`.
fn declared(shell: &Shell) -> Option<(Map<String, Value>, Map<String, Value>)> {
    let root = project::root(shell.project.as_deref()).ok()?;
    let user = Home::find().ok()?.config_file();
    let (settings, _) = config::load_with_project(&user, root.as_deref()).ok()?;
    let user = settings.rule_settings.into_iter().collect();
    Some((user, settings.project.rule_settings.into_iter().collect()))
}

fn done(checked: &Checked, form: Form) -> Done {
    let errors = checked.problems.iter().any(Problem::is_error);
    Done {
        text: form.text(checked, words),
        failure: errors.then_some(Failure::Told(ExitKind::Failed)),
    }
}

fn words(checked: &Checked, paint: Paint) -> String {
    let mut text = String::new();
    for problem in &checked.problems {
        text.push_str(&told(problem, paint));
    }
    if checked.problems.is_empty() {
        let rules = match checked.rules {
            1 => "1 rule".to_owned(),
            many => format!("{many} rules"),
        };
        let _ = writeln!(text, "{rules}, nothing wrong");
    }
    text
}

/// A problem with its place, its line and what to try.
pub(super) fn told(problem: &Problem, paint: Paint) -> String {
    let mut place = near(&problem.fault.path);
    if problem.fault.place.is_some() {
        let _ = write!(place, ":{}:{}", problem.line(), problem.column());
    }
    let word = match problem.is_error() {
        true => paint.bad("error:").to_string(),
        false => paint.note("warning:").to_string(),
    };
    let mut message = harmless(&problem.fault.message).into_owned();
    if let Some(hint) = &problem.fault.hint {
        let _ = write!(message, ", {}", harmless(hint));
    }
    let mut told = format!("{place}  {word} {message}\n");
    if let Some(excerpt) = problem.excerpt() {
        for line in excerpt.lines() {
            let _ = writeln!(told, "{}", paint.dim(harmless(line)));
        }
    }
    told
}
