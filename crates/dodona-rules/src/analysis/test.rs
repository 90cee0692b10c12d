//! `rules.test`.

use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::changed_rule::{self, RuleText};
use super::{RuleAnalysis, blocking};
use crate::Problem;
use crate::compile::CompiledRule;
use crate::methods::{find, must_be_active};
use crate::testing::{Tested, run_tests};

#[derive(Deserialize, JsonSchema)]
pub(super) struct TestParams {
    /// Run only the tests of this rule: `plugin/id`, or `id` for a rule that belongs to no plugin.
    #[schemars(length(min = 1, max = 256))]
    rule: Option<String>,
    /// Unsaved rule files to test instead of the active rules.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    texts: Vec<RuleText>,
}

/// The results of tests.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tests {
    /// The tests, grouped by rule.
    tests: Vec<Tested>,
    /// Number of failed tests.
    failed: usize,
    /// Rules without tests, as `plugin/id`.
    untested: Vec<String>,
    /// Problems of the texts passed in `texts`.
    problems: Vec<Problem>,
}

pub(super) async fn run(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
    p: TestParams,
) -> Result<Tests, CallError> {
    let (rules, problems) = chosen(analysis, ctx, p).await?;
    let user = ctx.principal.user.clone();
    let (scripts, host) = (
        Arc::clone(&analysis.scripts),
        Arc::clone(&analysis.engine.host),
    );
    let work = move || {
        let run = |rule: &Arc<CompiledRule>| {
            let settings = host.settings(&rule.key.plugin, &user).unwrap_or_default();
            run_tests(rule, &settings, &scripts)
        };
        rules
            .iter()
            .map(|rule| (rule.label.clone(), run(rule)))
            .collect::<Vec<_>>()
    };
    let done = blocking(work).await?;
    let untested = done.iter().filter(|(_, tests)| tests.is_empty());
    let untested = untested.map(|(label, _)| label.clone()).collect();
    let tests: Vec<Tested> = done.into_iter().flat_map(|(_, tests)| tests).collect();
    Ok(Tests {
        failed: tests.iter().filter(|test| test.failure.is_some()).count(),
        tests,
        untested,
        problems,
    })
}

type Chosen = (Vec<Arc<CompiledRule>>, Vec<Problem>);

async fn chosen(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
    p: TestParams,
) -> Result<Chosen, CallError> {
    if !p.texts.is_empty() {
        return Ok(changed_rule::load(p.texts));
    }
    let rules = analysis.rules(ctx).await;
    Ok(match p.rule {
        Some(name) => {
            let rule = find(&rules, &name)?;
            must_be_active(&rules, &rule)?;
            (vec![rule], Vec::new())
        }
        None => (rules.loaded.rules.active().cloned().collect(), Vec::new()),
    })
}
