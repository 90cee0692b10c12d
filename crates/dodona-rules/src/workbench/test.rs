//! `rules.test`.

use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::changed::{self, RuleText};
use super::{Workbench, blocking};
use crate::Problem;
use crate::compile::CompiledRule;
use crate::methods::{find, must_be_active};
use crate::testing::{Tested, run_tests};

#[derive(Deserialize, JsonSchema)]
pub(super) struct TestParams {
    /// Only of this rule: `plugin/id`, or `id` alone of a rule that belongs to no plugin.
    #[schemars(length(min = 1, max = 256))]
    rule: Option<String>,
    /// Texts of rules to test in place of those in use.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    texts: Vec<RuleText>,
}

/// How tests went.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tests {
    /// Each test, rule by rule.
    tests: Vec<Tested>,
    /// How many did not pass.
    failed: usize,
    /// Rules that have none, as `plugin/id`.
    untested: Vec<String>,
    /// What is wrong with texts that were given.
    problems: Vec<Problem>,
}

pub(super) async fn run(
    bench: &Workbench,
    ctx: &CallCtx,
    p: TestParams,
) -> Result<Tests, CallError> {
    let (rules, problems) = chosen(bench, ctx, p).await?;
    let user = ctx.principal.user.clone();
    let (scripts, host) = (Arc::clone(&bench.scripts), Arc::clone(&bench.live.host));
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

async fn chosen(bench: &Workbench, ctx: &CallCtx, p: TestParams) -> Result<Chosen, CallError> {
    if !p.texts.is_empty() {
        return Ok(changed::load(p.texts));
    }
    let rules = bench.rules(ctx).await;
    Ok(match p.rule {
        Some(name) => {
            let rule = find(&rules, &name)?;
            must_be_active(&rules, &rule)?;
            (vec![rule], Vec::new())
        }
        None => (rules.library.rules.active().cloned().collect(), Vec::new()),
    })
}
