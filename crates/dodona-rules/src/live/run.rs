//! One event, from its facts to what is done about it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use dodona_plugin::activation::EventDraft;
use dodona_plugin::{Behalf, CallError, EventBus, RuleHost, StateOwner};
use dodona_proto::{Effect, ProjectId, Severity, UserId};
use dodona_script::Engine;
use serde_json::{Value, json};

use super::book::Rulebook;
use super::decided::Decided;
use crate::compile::project_rules;
use crate::context::{Facts, Occurrence, RuleContext};
use crate::engine::{Answer, Decision, EvalError, Limiter, Outcome, Round, Stage};
use crate::format::Trigger;
use crate::load::{Library, ProjectRules, TriggerRules};
use crate::log::Log;
use crate::settings;

/// How many virtual machines for scripts are kept.
const MACHINES: usize = 4;

/// The event by which the journal knows what rules decided.
pub(crate) const DECIDED: &str = "rules.decided";

/// The most bytes of decisions that are journaled of one event.
const MOST_JOURNALED: usize = 256 * 1024;

/// The engine at work.
pub(crate) struct Live {
    pub(crate) book: Arc<Rulebook>,
    pub(crate) host: Arc<dyn RuleHost>,
    pub(crate) log: Arc<Log>,
    bus: Arc<dyn EventBus>,
    scripts: Engine,
    limiter: Limiter,
    /// Whether it is known what rules did in an earlier process.
    recalled: tokio::sync::OnceCell<()>,
    /// One lock for each user and project whose state is being changed.
    changing: Mutex<HashMap<Whose, Weak<tokio::sync::Mutex<()>>>>,
}

/// Whose event it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Whose {
    pub(crate) user: UserId,
    pub(crate) project: Option<ProjectId>,
}

impl Live {
    pub(crate) fn new(
        book: Arc<Rulebook>,
        host: Arc<dyn RuleHost>,
        bus: Arc<dyn EventBus>,
        log: Arc<Log>,
    ) -> Arc<Self> {
        Arc::new(Self {
            book,
            host,
            log,
            bus,
            scripts: Engine::new(MACHINES),
            limiter: Limiter::new(),
            recalled: tokio::sync::OnceCell::new(),
            changing: Mutex::default(),
        })
    }

    /// Asks the rules about an event. What they say is kept, noted and told.
    pub(crate) async fn run(self: &Arc<Self>, whose: Whose, occurrence: Occurrence) -> Decided {
        let project = self.book.of(whose.project.as_ref()).await;
        let Occurrence { trigger, mut facts } = occurrence;
        if let Some(why) = &project.library.unreadable
            && trigger == Trigger::OnToolCall
        {
            return Decided::refusing(format!(
                "no tool runs because the rules cannot be read: {why}"
            ));
        }
        let is_asked = !project.library.rules.at(trigger).is_empty();
        if is_asked {
            self.recall(&project.library).await;
            facts.user.settings = self.user_settings(&whose.user, &project);
            facts.project.settings = Arc::clone(&project.settings);
        }
        let facts = Arc::new(facts);
        let decided = match is_asked {
            true => self.decide(&whose, trigger, &facts, &project.library).await,
            false => Decided::default(),
        };
        if trigger == Trigger::OnSessionEnd {
            self.limiter.session_ended(&facts);
        }
        decided
    }

    /// The settings of a user as rules see them: `[settings]` of `config.toml`, and what the user
    /// set for plugins under `plugins`. A project adds nothing to them.
    pub(crate) fn user_settings(&self, user: &UserId, rules: &ProjectRules) -> Arc<Value> {
        let choices = self.host.choices(user);
        if choices.is_empty() {
            return Arc::clone(&rules.user_settings);
        }
        let mut settings = rules.user_settings.as_object().cloned().unwrap_or_default();
        settings.insert(settings::PLUGINS.to_owned(), Value::Object(choices));
        Arc::new(Value::Object(settings))
    }

    /// Finds out, once, when rules that wait fired in an earlier process.
    async fn recall(&self, library: &Library) {
        let recalling = async {
            let rules = library.rules.rules().iter();
            for rule in rules.filter(|rule| rule.rule.limits.cooldown.is_some()) {
                match self.log.last_firings(&rule.label).await {
                    Ok(firings) => self.limiter.recall(&rule.key, firings),
                    Err(error) => {
                        tracing::warn!(%error, "when rules fired before cannot be read");
                        return;
                    }
                }
            }
        };
        self.recalled.get_or_init(|| recalling).await;
    }

    async fn decide(
        self: &Arc<Self>,
        whose: &Whose,
        trigger: Trigger,
        facts: &Arc<Facts>,
        library: &Arc<Library>,
    ) -> Decided {
        let rules = library.rules.at(trigger);
        let off = self.host.disabled(&whose.user);
        self.log.remember(library);
        rules.count_round(whose, &off, facts.outside_surface());
        // Events of tools that run side by side must not count from the same number.
        let changing = rules.sets_state().then(|| self.lock(whose));
        let _changing = match &changing {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        let mut answers = match self.contexts(whose, rules, facts).await {
            Ok(contexts) => self.ask(trigger, library, contexts, off).await,
            Err(error) => all_failed(rules, &format!("the state cannot be read: {error}")),
        };
        let mut decided = Decided::default();
        for answer in &mut answers {
            self.keep_state(whose, answer).await;
            decided.add(whose.project.as_ref(), answer);
        }
        if !answers.is_empty() {
            self.journal(whose, trigger, facts, &answers).await;
            self.log.note(whose, trigger, facts, answers);
        }
        decided
    }

    /// The context as the rules of each plugin see it.
    async fn contexts(
        &self,
        whose: &Whose,
        rules: &TriggerRules,
        facts: &Arc<Facts>,
    ) -> Result<Vec<RuleContext>, CallError> {
        let mut base = RuleContext::new(Arc::clone(facts));
        if whose.project.is_some() && rules.reads_project_state() {
            let state = self.host.state(&whose.owner(&project_rules())).await?;
            base = base.with_project_state(state.values);
        }
        let mut contexts = Vec::new();
        for plugin in rules.plugin_names() {
            let state = self.host.state(&whose.owner(plugin)).await?;
            let settings = self.host.settings(plugin, &whose.user).unwrap_or_default();
            contexts.push(base.of_plugin(state.values, Arc::new(Value::Object(settings))));
        }
        Ok(contexts)
    }

    /// Asks every rule. Where one is a script, on a thread that may be blocked.
    async fn ask(
        self: &Arc<Self>,
        trigger: Trigger,
        library: &Arc<Library>,
        contexts: Vec<RuleContext>,
        off: Arc<BTreeSet<String>>,
    ) -> Vec<Answer> {
        let rules = library.rules.at(trigger);
        if !rules.has_scripts() {
            return self.ask_now(rules, &contexts, &off);
        }
        let (live, library) = (Arc::clone(self), Arc::clone(library));
        let work = move || live.ask_now(library.rules.at(trigger), &contexts, &off);
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
            tracing::error!(%trigger, "evaluating rules panicked");
            // Not an empty list: a `deny` that was not evaluated must deny.
            all_failed(rules, "the evaluation panicked")
        })
    }

    fn ask_now(
        &self,
        rules: &TriggerRules,
        contexts: &[RuleContext],
        off: &BTreeSet<String>,
    ) -> Vec<Answer> {
        let round = Round {
            rules,
            contexts,
            limiter: &self.limiter,
            scripts: &self.scripts,
            is_off: &|rule| !off.is_empty() && !rule.is_core && off.contains(&rule.label),
        };
        round.ask()
    }

    /// Keeps what a rule sets. It is stored before the event goes on.
    async fn keep_state(&self, whose: &Whose, answer: &mut Answer) {
        let owner = whose.owner(&answer.rule.namespace);
        let mut failed = None;
        for (index, decision) in answer.outcome.decisions.iter().enumerate() {
            let Decision::Effect(Effect::SetState { key, value }) = decision else {
                continue;
            };
            if let Err(error) = self.host.set_state(&owner, key, value.clone()).await {
                let (stage, message) = (Stage::Action(index), error.to_string());
                failed.get_or_insert_with(|| Box::new(EvalError { stage, message }));
            }
        }
        let error = &mut answer.outcome.error;
        *error = error.take().or(failed);
        if let Some(error) = error {
            tracing::warn!(rule = answer.rule.label, "a rule failed: {error}");
        }
    }

    /// Puts what was decided into the journal, so that it can be explained and done again.
    async fn journal(&self, whose: &Whose, trigger: Trigger, facts: &Facts, answers: &[Answer]) {
        let told = answers
            .iter()
            .filter(|answer| answer.outcome.suppressed.is_none());
        let mut room = MOST_JOURNALED;
        let rules: Vec<Value> = told.map(|answer| decision(answer, &mut room)).collect();
        if rules.is_empty() {
            return;
        }
        let behalf = Behalf {
            user: &whose.user,
            project: whose.project.as_ref(),
            call: None,
        };
        let draft = EventDraft {
            kind: DECIDED,
            source: "rules",
            severity: Severity::Info,
            payload: json!({
                "trigger": trigger,
                "context_id": facts.context_id,
                "query_id": facts.query_id,
                "turn": facts.turn.number,
                "rules": rules,
            }),
            behalf: Some(behalf),
            id: None,
        };
        if let Err(error) = self.bus.publish(draft).await {
            tracing::warn!(%error, "what rules decided could not be journaled");
        }
    }

    fn lock(&self, whose: &Whose) -> Arc<tokio::sync::Mutex<()>> {
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = changing.get(whose).and_then(Weak::upgrade) {
            return lock;
        }
        changing.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        changing.insert(whose.clone(), Arc::downgrade(&lock));
        lock
    }
}

/// What a rule decided, for the journal. What does not fit any more is named and left out.
fn decision(answer: &Answer, room: &mut usize) -> Value {
    let rule = &answer.rule.label;
    let outcome = json!(answer.outcome);
    let size = outcome.to_string().len();
    match room.checked_sub(size) {
        Some(left) => {
            *room = left;
            json!({ "rule": rule, "outcome": outcome })
        }
        None => json!({ "rule": rule, "outcome_bytes": size }),
    }
}

impl Whose {
    fn owner(&self, plugin: &dodona_proto::PluginName) -> StateOwner {
        StateOwner {
            user: self.user.clone(),
            project: self.project.clone(),
            plugin: plugin.clone(),
        }
    }
}

/// No rule could be evaluated.
fn all_failed(rules: &TriggerRules, why: &str) -> Vec<Answer> {
    let failed = |rule: &Arc<crate::CompiledRule>| Answer {
        rule: Arc::clone(rule),
        outcome: Outcome::failed(EvalError {
            stage: Stage::Condition,
            message: why.to_owned(),
        }),
        elapsed: std::time::Duration::ZERO,
    };
    rules.rules().map(failed).collect()
}
