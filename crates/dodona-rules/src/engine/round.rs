//! One event, and all rules of its trigger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dodona_expr::Run;
use dodona_proto::Surface;
use dodona_script::{Engine, Script, Session};
use dodona_template::Memo;

use super::evaluate::{PANICKED, act_with, failed, guarded, run_script, session};
use super::limiter::Limiter;
use super::outcome::{EvalError, Matched, Outcome, Suppressed};
use super::places::Places;
use crate::compile::CompiledRule;
use crate::context::RuleContext;
use crate::load::{Entry, TriggerRules};

/// How long the scripts of one namespace (the user's rules, a plugin's, the project's) may take at
/// one event. The rest of that namespace is then not run, which is a failure of those rules. No
/// namespace can use up the time of another.
const SCRIPTS_TIME: Duration = Duration::from_secs(2);

/// For how many answers room is made at once: many rules may be asked, few of them fire.
const ROOM: usize = 128;

/// A rule that has something to say: it fired, was kept from it, or failed.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Which.
    pub rule: Arc<CompiledRule>,
    /// What it said.
    pub outcome: Outcome,
    /// How long that took. Rules whose conditions are expressions are asked together, so each of
    /// these has its part of their time.
    pub elapsed: Duration,
}

/// What is needed to ask the rules of a trigger.
pub struct Round<'r> {
    /// The rules.
    pub rules: &'r TriggerRules,
    /// The context as the rules of each plugin see it, in the order of
    /// [`TriggerRules::plugin_names`].
    pub contexts: &'r [RuleContext],
    /// What rules did before.
    pub limiter: &'r Limiter,
    /// Runs scripts.
    pub scripts: &'r Engine,
    /// Which rules are not asked, because the user switched them off.
    pub is_off: &'r (dyn Fn(&CompiledRule) -> bool + Sync),
}

/// A round under way.
struct Asking<'r> {
    round: &'r Round<'r>,
    runs: Vec<Run<'r>>,
    /// For each plugin, once one of its scripts is come to.
    sessions: Vec<Option<Session<'r>>>,
    /// For each plugin, what its messages have said.
    memos: Vec<Memo>,
    answers: Vec<Answer>,
    began: Instant,
    in_scripts: Duration,
    /// For each plugin, how long its scripts took.
    script_times: Vec<Duration>,
    /// The surface of a call outside of a query.
    outside: Option<Surface>,
    /// Which of the answers are those of scripts, and how long each took.
    of_scripts: Vec<(usize, Duration)>,
}

impl Round<'_> {
    /// Asks every rule that may have something to say, in order; answers with those that do. All
    /// see the same context: what one decides, another sees at the next event. A rule that fails
    /// fails alone.
    pub fn ask(&self) -> Vec<Answer> {
        let sets = self.rules.plugins().iter().zip(self.contexts);
        let runs: Vec<Run<'_>> = sets
            .map(|(plugin, context)| plugin.expressions.run(context))
            .collect();
        let open = self.open(&runs);
        let mut asking = Asking {
            round: self,
            sessions: runs.iter().map(|_| None).collect(),
            memos: runs.iter().map(|_| Memo::new()).collect(),
            script_times: vec![Duration::ZERO; runs.len()],
            outside: self.outside(),
            runs,
            answers: Vec::with_capacity(open.len().min(ROOM)),
            began: Instant::now(),
            in_scripts: Duration::ZERO,
            of_scripts: Vec::new(),
        };
        open.in_order(|place| asking.ask(&self.rules.entries()[place]));
        asking.finish()
    }

    /// The surface, if the event is a call of a tool outside of a query.
    fn outside(&self) -> Option<Surface> {
        let context = self.contexts.first()?;
        context.facts().outside_surface()
    }

    /// Whether a rule whose condition holds may act.
    #[inline]
    fn admit(&self, entry: &Entry, context: &RuleContext) -> Result<(), Suppressed> {
        match entry.is_limited {
            true => self.limiter.admit(&entry.rule, context.facts()),
            false => Ok(()),
        }
    }

    /// The rules that are worth asking: those whose conditions may hold or fail.
    fn open(&self, runs: &[Run<'_>]) -> Places {
        let mut open = Places::of(self.rules.entries().len());
        for place in self.rules.always() {
            open.add(*place);
        }
        for (plugin, run) in self.rules.plugins().iter().zip(runs) {
            run.open(|index| open.add(plugin.places[index]));
        }
        open
    }
}

impl Asking<'_> {
    fn ask(&mut self, entry: &Entry) {
        if let Some(surface) = self.outside
            && !entry.rule.covers_outside(surface)
        {
            return;
        }
        let script = entry.script.as_ref();
        if let Some(script) = script.filter(|_| !entry.is_told) {
            return self.ask_script(entry, script);
        }
        let Some(index) = entry.expression else {
            return;
        };
        let run = &mut self.runs[entry.plugin];
        let matched = match run.test_plain(index) {
            Some(false) => return,
            Some(true) => Ok(Matched::Yes),
            None => match script {
                // What goes wrong in a script is told in its own words.
                Some(script) => return self.ask_script(entry, script),
                None => match guarded(|| run.test(index)) {
                    Some(Ok(false)) => return,
                    Some(Ok(true)) => Ok(Matched::Yes),
                    Some(Err(error)) => Err(failed(error.to_string())),
                    None => Err(failed(PANICKED.to_owned())),
                },
            },
        };
        if !(self.round.is_off)(&entry.rule) {
            self.answer(entry, matched);
        }
    }

    fn ask_script(&mut self, entry: &Entry, script: &Script) {
        if (self.round.is_off)(&entry.rule) {
            return;
        }
        let began = Instant::now();
        let matched = self.script(entry.plugin, script);
        let answered = self.answers.len();
        if matched != Ok(Matched::No) {
            self.answer(entry, matched);
        }
        let elapsed = began.elapsed();
        self.in_scripts += elapsed;
        self.script_times[entry.plugin] += elapsed;
        let new = answered..self.answers.len();
        self.of_scripts.extend(new.map(|answer| (answer, elapsed)));
    }

    fn script(&mut self, plugin: usize, script: &Script) -> Result<Matched, EvalError> {
        if self.script_times[plugin] > SCRIPTS_TIME {
            return Err(failed(format!(
                "it was not run: the scripts before it took longer than {SCRIPTS_TIME:?}"
            )));
        }
        let round = self.round;
        let session = self.sessions[plugin]
            .get_or_insert_with(|| session(&round.contexts[plugin], round.scripts));
        run_script(script, session)
    }

    /// Notes what a rule says whose condition holds or failed.
    fn answer(&mut self, entry: &Entry, matched: Result<Matched, EvalError>) {
        self.answers.push(Answer {
            rule: Arc::clone(&entry.rule),
            outcome: Outcome::default(),
            elapsed: Duration::ZERO,
        });
        let Some(Answer { outcome, .. }) = self.answers.last_mut() else {
            return;
        };
        let context = &self.round.contexts[entry.plugin];
        match matched {
            Ok(matched) => match self.round.admit(entry, context) {
                Ok(()) => {
                    let memo = &mut self.memos[entry.plugin];
                    act_with(&entry.rule, context, matched, memo, outcome);
                    if self.outside.is_some() && entry.rule.rule.surfaces.is_empty() {
                        outcome.keep_refusals();
                    }
                }
                Err(suppressed) => outcome.suppressed = Some(suppressed),
            },
            Err(error) => outcome.error = Some(Box::new(error)),
        }
    }

    /// What all of them said, each with its time.
    fn finish(self) -> Vec<Answer> {
        let mut answers = self.answers;
        let together = self.began.elapsed().saturating_sub(self.in_scripts);
        let asked = answers.len() - self.of_scripts.len();
        let part = together / u32::try_from(asked.max(1)).unwrap_or(u32::MAX);
        for answer in &mut answers {
            answer.elapsed = part;
        }
        for (answer, elapsed) in self.of_scripts {
            answers[answer].elapsed = elapsed;
        }
        answers
    }
}
