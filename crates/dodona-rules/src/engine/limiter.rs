//! What rules did before, as far as it keeps them from doing it again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::outcome::Suppressed;
use crate::compile::CompiledRule;
use crate::context::{EventFacts, Facts};
use crate::format::{Cooldown, OncePer};
use crate::identity::RuleKey;

/// The most places that are remembered. Beyond it, those that rested longest are forgotten.
const MOST_PLACES: usize = 20_000;

/// When rules fired last, by conversation, or by user and project outside of one.
#[derive(Debug, Default)]
pub struct Limiter {
    places: Mutex<HashMap<String, Place>>,
}

#[derive(Debug, Default)]
struct Place {
    rules: HashMap<RuleKey, Firing>,
    last: Option<Timestamp>,
}

/// The last time that a rule fired somewhere.
#[derive(Debug, Clone)]
struct Firing {
    at: Option<Timestamp>,
    turn: i64,
    query: Option<String>,
    /// In a session that has not ended since.
    in_session: bool,
}

/// A firing that was noted.
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
    /// Nothing has fired.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a rule whose condition holds may act. If so, it has fired.
    ///
    /// # Errors
    ///
    /// With what keeps it from acting.
    pub fn admit(&self, rule: &CompiledRule, facts: &Facts) -> Result<(), Suppressed> {
        let limits = &rule.rule.limits;
        if !limits.keep_from_acting() {
            return Ok(());
        }
        let mut places = self.places();
        if places.len() >= MOST_PLACES {
            forget(&mut places);
        }
        let place = places.entry(name(facts)).or_default();
        let now = Firing::now(facts);
        if let Some(last) = place.rules.get(&rule.key) {
            let cooldown = limits
                .cooldown
                .filter(|cooldown| lasts(*cooldown, last, &now));
            let once = limits.once_per.filter(|once| again(*once, last, &now));
            match (cooldown, once) {
                (_, Some(OncePer::Query)) => return Err(Suppressed::OncePerQuery),
                (_, Some(OncePer::Session)) => return Err(Suppressed::OncePerSession),
                (Some(_), None) => return Err(Suppressed::Cooldown),
                (None, None) => {}
            }
        }
        place.last = now.at;
        place.rules.insert(rule.key.clone(), now);
        Ok(())
    }

    /// Notes that the session of an event's conversation is over.
    pub fn session_ended(&self, facts: &Facts) {
        if let Some(place) = self.places().get_mut(&name(facts)) {
            for firing in place.rules.values_mut() {
                firing.in_session = false;
            }
        }
    }

    /// Notes what a rule did in an earlier process, the newest first. The sessions of that time
    /// have ended.
    pub(crate) fn recall(&self, rule: &RuleKey, firings: Vec<PastFiring>) {
        let mut places = self.places();
        for past in firings {
            let name = match past.context {
                Some(context) => context,
                None => outside(&past.user, &past.project),
            };
            let place = places.entry(name).or_default();
            place.last = place.last.max(Some(past.at));
            let firing = Firing {
                at: Some(past.at),
                turn: past.turn,
                query: past.query,
                in_session: false,
            };
            place.rules.entry(rule.clone()).or_insert(firing);
        }
    }

    fn places(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where an event happened, as far as limits go.
fn name(facts: &Facts) -> String {
    match &facts.context_id {
        Some(context) => context.clone(),
        None => outside(&facts.user.id, &facts.project.id),
    }
}

/// What is outside of a conversation.
fn outside(user: &str, project: &str) -> String {
    format!("{user}\n{project}")
}

fn lasts(cooldown: Cooldown, last: &Firing, now: &Firing) -> bool {
    match cooldown {
        // Outside of a conversation there are no turns to count.
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

fn again(once: OncePer, last: &Firing, now: &Firing) -> bool {
    match once {
        OncePer::Query => now.query.is_some() && now.query == last.query,
        OncePer::Session => now.in_session && last.in_session,
    }
}

/// Forgets the half of the places that rested longest.
fn forget(places: &mut HashMap<String, Place>) {
    let mut times: Vec<_> = places.values().map(|place| place.last).collect();
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().flatten();
    places.retain(|_, place| place.last > middle);
}
