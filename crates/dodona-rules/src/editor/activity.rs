//! `rules.activity`.

use std::collections::BTreeMap;

use dodona_plugin::{CallCtx, CallError};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuleEditor;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ActivityParams {
    /// Number of days, including today.
    #[serde(default = "fortnight")]
    #[schemars(range(min = 1, max = 90))]
    days: u16,
}

fn fortnight() -> u16 {
    14
}

/// Firings of rules per day.
#[derive(Serialize, JsonSchema)]
pub(super) struct Activity {
    /// The days in UTC, oldest first.
    days: Vec<String>,
    /// Number of firings on each day, by `plugin/id`. Rules without firings are absent.
    rules: BTreeMap<String, Vec<u64>>,
}

pub(super) async fn count(
    editor: &RuleEditor,
    ctx: &CallCtx,
    p: ActivityParams,
) -> Result<Activity, CallError> {
    let days = days(Timestamp::now(), p.days.clamp(1, 90));
    let first = days.first().cloned().unwrap_or_default();
    let engine = &editor.engine;
    let user = ctx.principal.user.to_string();
    let counted = engine.log.firings_by_day(user, first).await?;
    let mut rules: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (rule, day, times) in counted {
        if let Ok(place) = days.binary_search(&day) {
            rules.entry(rule).or_insert_with(|| vec![0; days.len()])[place] = times;
        }
    }
    Ok(Activity { days, rules })
}

/// The last days, oldest first, in the format of the log.
fn days(now: Timestamp, count: u16) -> Vec<String> {
    let today: Date = now.to_zoned(TimeZone::UTC).date();
    let back = (0..i64::from(count)).rev();
    back.map(|days| today.saturating_sub(days.days()).to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_back_over_months_and_end_today() {
        let now: Timestamp = "2024-03-02T23:59:59Z".parse().unwrap();
        assert_eq!(
            days(now, 4),
            ["2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]
        );
    }
}
