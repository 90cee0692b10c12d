//! Broken rule files, and whether an earlier version of them is in force.

use std::collections::BTreeSet;

use dodona_proto::CallError;
use serde::Deserialize;
use serde_json::json;

use super::finding::Finding;
use crate::session::Session;

const CHECK: &str = "rules";

/// How many projects are looked at. Each has a set of rules of its own.
const MOST_PROJECTS: usize = 100;

#[derive(Deserialize)]
struct Checked {
    problems: Vec<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    severity: String,
    path: String,
    place: Option<Place>,
    message: String,
}

#[derive(Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

#[derive(Deserialize)]
struct Listed {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    rule: String,
    path: String,
    outdated: bool,
    inactive: Option<String>,
}

/// The rules of the user and of plugins, then those of the user's projects.
pub(super) async fn check(session: &mut Session) -> Vec<Finding> {
    let mut found = Found::default();
    if let Err(error) = found.look(session).await {
        let advice = "correct what is reported about the plugin `rules`";
        return vec![Finding::wrong(CHECK, error.message, advice)];
    }
    let projects = session.projects().await.unwrap_or_default();
    for project in projects.iter().take(MOST_PROJECTS) {
        // A project whose directory is gone has no rules.
        if session.turn_to(&project.id).await.is_ok() {
            let _ = found.look(session).await;
        }
    }
    if found.findings.is_empty() {
        let message = match found.rules.len() {
            1 => "1 rule, no broken file".to_owned(),
            count => format!("{count} rules, no broken file"),
        };
        return vec![Finding::ok(CHECK, message)];
    }
    found.findings
}

#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
    /// Files with a finding.
    broken: BTreeSet<String>,
    /// Files of rules.
    rules: BTreeSet<String>,
}

impl Found {
    async fn look(&mut self, session: &Session) -> Result<(), CallError> {
        let checked: Checked = session.ask("rules.check", json!({})).await?;
        let listed: Listed = session.ask("rules.list", json!({})).await?;
        self.rules
            .extend(listed.rules.iter().map(|rule| rule.path.clone()));
        for problem in checked.problems {
            // Rules of the user are in every project's set.
            if problem.severity == "error" && self.broken.insert(problem.path.clone()) {
                self.findings.push(finding(&problem, &listed.rules));
            }
        }
        Ok(())
    }
}

fn finding(problem: &Problem, rules: &[Rule]) -> Finding {
    let path = &problem.path;
    let place = match &problem.place {
        Some(place) => format!("{path}:{}:{}", place.line, place.column),
        None => path.clone(),
    };
    let version = rules
        .iter()
        .find(|rule| rule.path == *path && rule.outdated);
    let state = match version {
        Some(rule) if rule.inactive.is_none() => {
            format!("the last valid version of `{}` is in force", rule.rule)
        }
        Some(rule) => format!("the last valid version of `{}` is inactive", rule.rule),
        None => "no version of this file is in force".to_owned(),
    };
    let message = format!("{place}: {}\n{state}", problem.message);
    let advice = "correct the file; `dodona rules check` shows every error";
    Finding::wrong(CHECK, message, advice)
}
