//! Cooldowns and `once_per` limits of rules.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::outcome::Suppressed;
use crate::compile::CompiledRule;
use crate::context::{EventFacts, Facts};
use crate::format::{Cooldown, OncePer};
use crate::identity::RuleKey;

/// Maximum number of conversations with firings in memory. When it is reached, the older half is removed.
const MAX_HISTORIES: usize = 20_000;

/// Remembers the last firing of each rule, by conversation, or by user and project outside conversations.
#[derive(Debug, Default)]
pub struct Limiter {
    histories: Mutex<HashMap<String, FiringHistory>>,
}

#[derive(Debug, Default)]
struct FiringHistory {
    rules: HashMap<RuleKey, Firing>,
    last: Option<Timestamp>,
}

/// The last firing of a rule in one conversation.
#[derive(Debug, Clone)]
struct Firing {
    at: Option<Timestamp>,
    turn: i64,
    query: Option<String>,
    /// The session of the firing has not ended.
    in_session: bool,
}

/// A firing read from the log.
#[derive(Debug, Clone)]
pub(crate) struct PastFiring {
    pub(crate) user: String,
    pub(crate) project: String,
    pub(crate) context: Option<String>,
    pub(crate) query: Option<String>,
    pub(crate) turn: i64,
    pub(crate) at: Timestamp,
}

impl Firing {
    fn now(facts: &Facts) -> Self {
        Self {
            at: facts.event.as_ref().and_then(EventFacts::time),
            turn: facts.turn.number,
            query: facts.query_id.clone(),
            in_session: facts.context_id.is_some(),
        }
    }
}

impl Limiter {
    /// A limiter without firings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a firing of a rule whose condition matched.
    ///
    /// # Errors
    ///
    /// If a cooldown or `once_per` suppresses it. Then nothing is recorded.
    pub fn admit(&self, rule: &CompiledRule, facts: &Facts) -> Result<(), Suppressed> {
        let limits = &rule.rule.limits;
        if !limits.can_suppress() {
            return Ok(());
        }
        let mut histories = self.histories();
        if histories.len() >= MAX_HISTORIES {
            remove_oldest(&mut histories);
        }
        let history = histories.entry(history_key(facts)).or_default();
        let now = Firing::now(facts);
        if let Some(last) = history.rules.get(&rule.key) {
            let cooldown = limits
                .cooldown
                .filter(|cooldown| is_cooling_down(*cooldown, last, &now));
            let once = limits
                .once_per
                .filter(|once| has_fired_before(*once, last, &now));
            match (cooldown, once) {
                (_, Some(OncePer::Query)) => return Err(Suppressed::OncePerQuery),
                (_, Some(OncePer::Session)) => return Err(Suppressed::OncePerSession),
                (Some(_), None) => return Err(Suppressed::Cooldown),
                (None, None) => {}
            }
        }
        history.last = now.at;
        history.rules.insert(rule.key.clone(), now);
        Ok(())
    }

    /// Ends the session of the event's conversation for `once_per = "session"`.
    pub fn end_session(&self, facts: &Facts) {
        if let Some(history) = self.histories().get_mut(&history_key(facts)) {
            for firing in history.rules.values_mut() {
                firing.in_session = false;
            }
        }
    }

    /// Restores firings of an earlier process, the newest first. Their sessions have ended.
    pub(crate) fn restore(&self, rule: &RuleKey, firings: Vec<PastFiring>) {
        let mut histories = self.histories();
        for past in firings {
            let name = match past.context {
                Some(context) => context,
                None => outside_key(&past.user, &past.project),
            };
            let history = histories.entry(name).or_default();
            history.last = history.last.max(Some(past.at));
            let firing = Firing {
                at: Some(past.at),
                turn: past.turn,
                query: past.query,
                in_session: false,
            };
            history.rules.entry(rule.clone()).or_insert(firing);
        }
    }

    fn histories(&self) -> MutexGuard<'_, HashMap<String, FiringHistory>> {
        self.histories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The conversation of an event, or its user and project.
fn history_key(facts: &Facts) -> String {
    match &facts.context_id {
        Some(context) => context.clone(),
        None => outside_key(&facts.user.id, &facts.project.id),
    }
}

fn outside_key(user: &str, project: &str) -> String {
    format!("{user}\n{project}")
}

fn is_cooling_down(cooldown: Cooldown, last: &Firing, now: &Firing) -> bool {
    match cooldown {
        // There are no turns outside a conversation.
        Cooldown::Turns(turns) => {
            let passed = u64::try_from(now.turn - last.turn).unwrap_or(0);
            now.turn > 0 && passed < turns
        }
        Cooldown::Time(time) => match (now.at, last.at) {
            (Some(now), Some(last)) => {
                let passed = Duration::try_from(now.duration_since(last)).unwrap_or_default();
                passed < time
            }
            _ => false,
        },
    }
}

fn has_fired_before(once: OncePer, last: &Firing, now: &Firing) -> bool {
    match once {
        OncePer::Query => now.query.is_some() && now.query == last.query,
        OncePer::Session => now.in_session && last.in_session,
    }
}

/// Removes the older half.
fn remove_oldest(histories: &mut HashMap<String, FiringHistory>) {
    let mut times: Vec<_> = histories.values().map(|history| history.last).collect();
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().flatten();
    histories.retain(|_, history| history.last > middle);
}
