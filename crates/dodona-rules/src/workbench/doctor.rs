//! `rules.doctor`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_plugin::store::journal::{EventFilter, Place};
use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Workbench, blocking};
use crate::compile::CompiledRule;
use crate::format::Trigger;
use crate::identity::Scope;
use crate::log::Liveness;
use crate::testing::run_tests;

/// After how many times of asking in vain a rule is worth a look.
const MANY: u64 = 1_000;

/// How rules are.
#[derive(Serialize, JsonSchema)]
pub(super) struct CheckUp {
    /// How many rules there are.
    rules: usize,
    /// What is worth a look, the worst first.
    findings: Vec<Finding>,
    /// Whether nothing is wrong; what is only worth knowing does not count.
    healthy: bool,
}

/// Something worth a look.
#[derive(Serialize, JsonSchema)]
pub(super) struct Finding {
    severity: FindingSeverity,
    kind: FindingKind,
    /// Which rule, as `plugin/id`; nothing where a file has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The file.
    path: String,
    /// Where in the file, from 1; 0 for the file as a whole.
    line: usize,
    /// What it is.
    message: String,
    /// The next thing to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FindingSeverity {
    /// Something does not work.
    Error,
    /// Something may not be as it was meant.
    Warning,
    /// Good to know.
    Info,
}

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FindingKind {
    /// A file with a fault.
    BrokenFile,
    /// A file with something doubtful.
    DoubtfulFile,
    /// A rule that can never fire.
    NeverFires,
    /// A rule that fails when it is asked.
    Fails,
    /// A rule whose notifications are dropped.
    Dropped,
    /// A test that does not pass.
    TestFails,
    /// A rule that was never asked.
    NeverAsked,
    /// A rule that was asked often and never fired.
    NeverFired,
    /// A rule that is off.
    Off,
}

pub(super) async fn check(bench: &Workbench, ctx: &CallCtx) -> Result<CheckUp, CallError> {
    let live = &bench.live;
    let rules = bench.rules(ctx).await;
    let mut findings: Vec<Finding> = rules.library.problems.iter().map(of_problem).collect();
    let mut alive = live.log.liveness(ctx).await?;
    let off = live.host.disabled(&ctx.principal.user);
    let seen = triggers_seen(bench, ctx).await?;
    let all = rules.library.rules.rules().to_vec();
    for rule in &all {
        let liveness = alive.remove(&rule.label).unwrap_or_default();
        let is_off = !rule.is_core && off.contains(&rule.label);
        findings.extend(of_rule(rule, &liveness, is_off, &seen));
    }
    findings.extend(failing_tests(bench, ctx, all.clone()).await?);
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
    let (severity, kind) = match problem.is_error() {
        true => (FindingSeverity::Error, FindingKind::BrokenFile),
        false => (FindingSeverity::Warning, FindingKind::DoubtfulFile),
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

/// What is worth saying of a rule that can run.
fn of_rule(
    rule: &CompiledRule,
    liveness: &Liveness,
    is_off: bool,
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
        let message = "it can never fire: its condition is false whatever happens";
        return about(Error, NeverFires, message.to_owned(), None);
    }
    if !rule.rule.enabled {
        let message = "it is off: its file says `enabled = false`";
        return about(Info, Off, message.to_owned(), None);
    }
    if is_off {
        let hint = format!("`dodona rules enable {}` switches it on again", rule.label);
        let message = "you switched it off";
        return about(Info, Off, message.to_owned(), Some(hint));
    }
    if liveness.total.failed > 0 && liveness.last_failed >= liveness.last_fired {
        let message = format!(
            "it failed {} of {} times, last with: {}",
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
                "it was never asked, although its trigger has happened ({trigger}): it is newer, or was off"
            ),
            false => format!("it was never asked: its trigger has not happened yet ({trigger})"),
        };
        return about(Info, NeverAsked, message, None);
    }
    if liveness.total.fired == 0 && liveness.total.evaluated >= MANY {
        let message = format!(
            "it was asked {} times and never fired",
            liveness.total.evaluated
        );
        let hint = format!("`dodona rules explain {} --last` shows why", rule.label);
        return about(Warning, NeverFired, message, Some(hint));
    }
    None
}

/// The triggers of which the journal has an event.
async fn triggers_seen(bench: &Workbench, ctx: &CallCtx) -> Result<BTreeSet<Trigger>, CallError> {
    let mut seen = BTreeSet::new();
    for trigger in Trigger::ALL {
        let filter = EventFilter {
            project: ctx.project.as_ref().map(|project| project.id.clone()),
            kinds: vec![trigger.event_type().to_owned()],
            ..EventFilter::of(ctx.principal.user.clone())
        };
        if !bench.history.page(filter, Place::End).await?.is_empty() {
            seen.insert(trigger);
        }
    }
    Ok(seen)
}

async fn failing_tests(
    bench: &Workbench,
    ctx: &CallCtx,
    rules: Vec<Arc<CompiledRule>>,
) -> Result<Vec<Finding>, CallError> {
    let (host, user) = (Arc::clone(&bench.live.host), ctx.principal.user.clone());
    let scripts = Arc::clone(&bench.scripts);
    let work = move || {
        // Of all others it is told with their files, where they were run when those were read.
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
