//! `dodona plugins check`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use dodona_extern::luau::trial;
use dodona_extern::{Declared, process};
use dodona_hub::Directory;
use dodona_plugin::manifest::{Code, ProcessProtocol};
use dodona_plugin::reading::Problem;
use dodona_proto::{ExitKind, PluginName, PluginState};
use dodona_rules::load::load_file;
use dodona_rules::{Problem as RuleProblem, Scope, Tested, run_tests};
use dodona_script::Engine;
use serde::Serialize;
use serde_json::json;

use super::list::{self, Listed};
use super::{Done, Form, answer};
use crate::cli::agents;
use crate::excerpt;
use crate::failure::Failure;
use crate::home::Home;
use crate::paint::{Paint, one_line};
use crate::session::Session;

/// Checks the roster and everything that it and the directories name.
pub(super) async fn all(session: &Session, form: Form) -> Result<Done, Failure> {
    let listed: Listed = answer(session, "plugins.check", json!({})).await?;
    let agents = agents::problems(session).await;
    let failed = |state| state == PluginState::Failed;
    let bad = listed.plugins.iter().filter(|status| failed(status.state));
    let wrong = listed.problems.len().max(bad.count()) + agents.len();
    let failure = (wrong > 0).then_some(Failure::Told(ExitKind::Failed));
    let checked = CheckedAll {
        listed,
        agent_problems: agents,
    };
    let text = form.text(&checked, report);
    Ok(Done { text, failure })
}

/// The plugins, and the problems of definitions of agents: tools that no plugin provides.
#[derive(Serialize)]
struct CheckedAll {
    #[serde(flatten)]
    listed: Listed,
    agent_problems: Vec<Problem>,
}

fn report(checked: &CheckedAll, paint: Paint) -> String {
    let listed = &checked.listed;
    let mut text = String::new();
    for problem in &listed.problems {
        let _ = writeln!(text, "{}\n", excerpt::draw_problem(problem, paint));
    }
    let failed: Vec<_> = listed
        .plugins
        .iter()
        .filter(|status| status.state == PluginState::Failed)
        .cloned()
        .collect();
    text.push_str(&list::lines(&failed, paint));
    text.push_str(&agents::problem_lines(&checked.agent_problems));
    if text.is_empty() {
        let count = listed.plugins.len();
        let roster = match &listed.roster {
            Some(path) if Path::new(path).exists() => one_line(path),
            _ => "no roster; the defaults apply".to_owned(),
        };
        let _ = writeln!(text, "{count} plugins, nothing wrong ({roster})");
    }
    text
}

/// What the check of one plugin came to.
#[derive(Serialize)]
struct Checked {
    directory: String,
    problems: Vec<Problem>,
    rules: usize,
    tests: Vec<Tested>,
    /// What its script or its process declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    declares: Option<Declared>,
}

impl Checked {
    fn is_well(&self) -> bool {
        self.problems.is_empty() && self.tests.iter().all(|test| test.failure.is_none())
    }
}

/// Checks one plugin and runs the tests of its rules.
pub(super) fn one(plugin: &Path, form: Form) -> Result<(), Failure> {
    let checked = check(&find(plugin)?);
    super::super::print(&form.text(&checked, words))?;
    match checked.is_well() {
        true => Ok(()),
        false => Err(Failure::Told(ExitKind::Failed)),
    }
}

/// A directory as it is named, or the user's plugin of that name.
pub(super) fn find(plugin: &Path) -> Result<PathBuf, Failure> {
    let named = plugin.to_str().and_then(|text| PluginName::new(text).ok());
    if plugin.is_dir() {
        return Ok(plugin.to_owned());
    }
    let mine = match named {
        Some(name) => Some(Home::find()?.config.join("plugins").join(name.as_str())),
        None => None,
    };
    mine.filter(|dir| dir.is_dir()).ok_or_else(|| {
        let message = format!("no such directory: `{}`", plugin.display());
        Failure::usage(message)
            .hint("name a directory with a `manifest.toml`, or one of your plugins by name")
    })
}

fn check(dir: &Path) -> Checked {
    let mut checked = Checked {
        directory: dir.display().to_string(),
        problems: Vec::new(),
        rules: 0,
        tests: Vec::new(),
        declares: None,
    };
    let directory = match Directory::read(dir) {
        Ok(directory) => directory,
        Err(problems) => {
            checked.problems = problems;
            return checked;
        }
    };
    let declared = match &directory.manifest.code {
        Some(Code::Script { .. }) => Some(trial::inspect(dir, &directory.manifest)),
        Some(Code::Process {
            protocol: ProcessProtocol::Dodona(_),
            ..
        }) => Some(process::inspect(dir, &directory.manifest)),
        _ => None,
    };
    match declared {
        Some(Ok(declared)) => checked.declares = Some(declared),
        Some(Err(problems)) => checked.problems.extend(problems),
        None => {}
    }
    let settings = directory.manifest.settings.iter();
    let settings = settings.map(|(name, setting)| (name.clone(), setting.default.clone()));
    let settings = settings.collect();
    let scripts = Engine::new(1);
    checked.rules = directory.rules.len();
    for file in &directory.rules {
        let loaded = load_file(file, Scope::Plugin(directory.manifest.id.clone()));
        let errors = loaded.problems.into_iter().filter(RuleProblem::is_error);
        checked.problems.extend(errors.map(|problem| problem.fault));
        if let Some(rule) = loaded.rule {
            checked.tests.extend(run_tests(&rule, &settings, &scripts));
        }
    }
    checked
}

fn words(checked: &Checked, paint: Paint) -> String {
    let mut text = String::new();
    for problem in &checked.problems {
        let _ = writeln!(text, "{}\n", excerpt::draw_problem(problem, paint));
    }
    for test in &checked.tests {
        let id = test.rule.rsplit('/').next().unwrap_or_default();
        let name = one_line(&format!("{id}: {}", test.name));
        let _ = match &test.failure {
            None => writeln!(text, "{}      {name}", paint.good("ok")),
            Some(why) => writeln!(
                text,
                "{}  {name}\n        {}",
                paint.bad("failed"),
                one_line(why)
            ),
        };
    }
    if let Some(declared) = &checked.declares {
        for method in &declared.methods {
            let about = method.description.lines().next().unwrap_or_default();
            let _ = writeln!(
                text,
                "method  {}  {}",
                method.name,
                paint.dim(one_line(about))
            );
        }
        for point in &declared.hooks {
            let _ = writeln!(text, "hook    {point}");
        }
        for prefix in &declared.events {
            let _ = writeln!(
                text,
                "event   {}",
                if prefix.is_empty() { "*" } else { prefix }
            );
        }
    }
    let failed = checked.tests.iter().filter(|test| test.failure.is_some());
    let _ = writeln!(
        text,
        "{}: {}, {}, {} failed, {}",
        one_line(&checked.directory),
        counted(checked.rules, "rule"),
        counted(checked.tests.len(), "test"),
        failed.count(),
        counted(checked.problems.len(), "problem")
    );
    text
}

pub(super) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
