//! `rules.doctor`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_plugin::store::journal::{EventFilter, ReadPosition};
use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::Serialize;

use super::{RuleAnalysis, blocking};
use crate::compile::CompiledRule;
use crate::format::Trigger;
use crate::identity::Scope;
use crate::log::Liveness;
use crate::testing::run_tests;

/// Number of evaluations without a firing after which a rule is reported.
const MANY: u64 = 1_000;

/// The result of the check.
#[derive(Serialize, JsonSchema)]
pub(super) struct CheckUp {
    /// Number of active rules.
    rules: usize,
    /// The findings, most severe first.
    findings: Vec<Finding>,
    /// True if there is no error and no warning.
    healthy: bool,
}

/// A finding about a rule or a file.
#[derive(Serialize, JsonSchema)]
pub(super) struct Finding {
    severity: FindingSeverity,
    kind: FindingKind,
    /// The rule, as `plugin/id`; absent if the file has no valid rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The path of the file.
    path: String,
    /// Line number, from 1; 0 for the whole file.
    line: usize,
    /// The finding as a sentence.
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FindingSeverity {
    /// A rule or a test fails.
    Error,
    /// Something is probably a mistake.
    Warning,
    /// For information; no action needed.
    Info,
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FindingKind {
    /// A file with an error.
    BrokenFile,
    /// A file with a warning.
    DoubtfulFile,
    /// A rule that can never fire.
    NeverFires,
    /// A rule whose evaluation fails.
    Fails,
    /// A rule whose notifications are dropped.
    Dropped,
    /// A test that fails.
    TestFails,
    /// A rule that was never evaluated.
    NeverAsked,
    /// A rule that was evaluated often and never fired.
    NeverFired,
    /// A rule that is disabled.
    Off,
}

pub(super) async fn check(analysis: &RuleAnalysis, ctx: &CallCtx) -> Result<CheckUp, CallError> {
    let engine = &analysis.engine;
    let rules = analysis.rules(ctx).await;
    let mut findings: Vec<Finding> = rules.loaded.problems.iter().map(of_problem).collect();
    let mut alive = engine.log.liveness(ctx).await?;
    let off = engine.host.disabled(&ctx.principal.user);
    let seen = triggers_seen(analysis, ctx).await?;
    let all = rules.loaded.rules.rules().to_vec();
    for rule in &all {
        let liveness = alive.remove(&rule.label).unwrap_or_default();
        let is_disabled = !rule.is_core && off.contains(&rule.label);
        findings.extend(of_rule(rule, &liveness, is_disabled, &seen));
    }
    findings.extend(failing_tests(analysis, ctx, all.clone()).await?);
    findings.sort_by(|a, b| {
        let order = a.severity.cmp(&b.severity);
        order.then_with(|| (&a.path, a.line).cmp(&(&b.path, b.line)))
    });
    let well = |finding: &Finding| finding.severity == FindingSeverity::Info;
    Ok(CheckUp {
        rules: all.len(),
        healthy: findings.iter().all(well),
        findings,
    })
}

fn of_problem(problem: &crate::Problem) -> Finding {
    let (severity, kind) = if problem.is_error() {
        (FindingSeverity::Error, FindingKind::BrokenFile)
    } else {
        (FindingSeverity::Warning, FindingKind::DoubtfulFile)
    };
    Finding {
        severity,
        kind,
        rule: None,
        path: problem.fault.path.clone(),
        line: problem.line(),
        message: problem.fault.message.clone(),
        hint: problem.fault.hint.clone(),
    }
}

/// Findings about an active rule.
fn of_rule(
    rule: &CompiledRule,
    liveness: &Liveness,
    is_disabled: bool,
    seen: &BTreeSet<Trigger>,
) -> Option<Finding> {
    use FindingKind::{Dropped, Fails, NeverAsked, NeverFired, NeverFires, Off};
    use FindingSeverity::{Error, Info, Warning};
    let about = |severity, kind, message: String, hint: Option<String>| {
        Some(Finding {
            severity,
            kind,
            rule: Some(rule.label.clone()),
            path: rule.origin.path.clone(),
            line: rule.rule.spots.condition.line,
            message,
            hint,
        })
    };
    let trigger = rule.rule.trigger;
    if rule
        .expression()
        .is_some_and(dodona_expr::Expr::never_holds)
    {
        let message = "can never fire: its condition is always false";
        return about(Error, NeverFires, message.to_owned(), None);
    }
    if !rule.rule.enabled {
        let message = "disabled: `enabled = false` in its file";
        return about(Info, Off, message.to_owned(), None);
    }
    if is_disabled {
        let hint = format!("`dodona rules enable {}` switches it on again", rule.label);
        let message = "disabled by you";
        return about(Info, Off, message.to_owned(), Some(hint));
    }
    if liveness.total.failed > 0 && liveness.last_failed >= liveness.last_fired {
        let message = format!(
            "failed {} of {} times, last error: {}",
            liveness.total.failed,
            liveness.total.evaluated.max(liveness.total.failed),
            liveness.last_error.as_deref().unwrap_or("no reason given"),
        );
        let hint = format!("`dodona rules log {} --failed` lists them", rule.label);
        return about(Error, Fails, message, Some(hint));
    }
    if liveness.total.dropped > 0 {
        let message = format!(
            "{} of its notifications were dropped; it fired {} times",
            liveness.total.dropped, liveness.total.fired,
        );
        let hint = format!("`dodona rules log {}` shows why", rule.label);
        return about(Warning, Dropped, message, Some(hint));
    }
    if liveness.total.evaluated == 0 {
        let message = match seen.contains(&trigger) {
            true => format!(
                "never evaluated, although its trigger has occurred ({trigger}): it is newer than these events, or was disabled"
            ),
            false => format!("never evaluated: its trigger has not occurred yet ({trigger})"),
        };
        return about(Info, NeverAsked, message, None);
    }
    if liveness.total.fired == 0 && liveness.total.evaluated >= MANY {
        let message = format!(
            "evaluated {} times and never fired",
            liveness.total.evaluated
        );
        let hint = format!("`dodona rules explain {} --last` shows why", rule.label);
        return about(Warning, NeverFired, message, Some(hint));
    }
    None
}

/// The triggers that occur in the journal.
async fn triggers_seen(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
) -> Result<BTreeSet<Trigger>, CallError> {
    let mut seen = BTreeSet::new();
    for trigger in Trigger::ALL {
        let filter = EventFilter {
            project: ctx.project.as_ref().map(|project| project.id.clone()),
            kinds: vec![trigger.event_type().to_owned()],
            ..EventFilter::of(ctx.principal.user.clone())
        };
        if !analysis
            .history
            .page(filter, ReadPosition::End)
            .await?
            .is_empty()
        {
            seen.insert(trigger);
        }
    }
    Ok(seen)
}

async fn failing_tests(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
    rules: Vec<Arc<CompiledRule>>,
) -> Result<Vec<Finding>, CallError> {
    let (host, user) = (
        Arc::clone(&analysis.engine.host),
        ctx.principal.user.clone(),
    );
    let scripts = Arc::clone(&analysis.scripts);
    let work = move || {
        // Failed tests of the other rules are reported with their files, because they ran when those were read.
        let of_plugins = |rule: &&Arc<CompiledRule>| matches!(rule.origin.scope, Scope::Plugin(_));
        let tests = rules.iter().filter(of_plugins).flat_map(|rule| {
            let settings = host.settings(&rule.key.plugin, &user).unwrap_or_default();
            run_tests(rule, &settings, &scripts)
        });
        tests.collect::<Vec<_>>()
    };
    let tested = blocking(work).await?;
    let failed = tested.into_iter().filter_map(|test| {
        let why = test.failure?;
        Some(Finding {
            severity: FindingSeverity::Error,
            kind: FindingKind::TestFails,
            message: format!("its test \"{}\" does not pass: {why}", test.name),
            hint: test.explained,
            rule: Some(test.rule),
            path: test.path,
            line: test.line,
        })
    });
    Ok(failed.collect())
}
