//! The rule engine.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use dodona_plugin::activation::EventDraft;
use dodona_plugin::{Behalf, CallError, EventBus, RuleHost, StateOwner};
use dodona_proto::{Effect, PluginName, ProjectId, Severity, UserId};
use dodona_script::Engine;
use serde_json::{Value, json};

use super::combined_decisions::CombinedDecisions;
use super::rule_store::RuleStore;
use crate::compile::project_rules;
use crate::context::{Facts, Occurrence, RuleContext};
use crate::evaluate::{
    Decision, EvalError, Limiter, Outcome, RuleResult, Stage, TriggerEvaluation,
};
use crate::format::Trigger;
use crate::load::{LoadedRules, ProjectRules, TriggerRules};
use crate::log::Log;
use crate::settings;

/// Number of idle virtual machines for scripts that are kept for reuse.
const SCRIPT_MACHINES: usize = 4;

/// The type of the event that records decisions of rules in the journal.
pub(crate) const DECISIONS_EVENT: &str = "rules.decided";

/// Upper bound for the decisions journaled per event, in bytes of JSON. For larger ones only the size is
/// recorded.
const MAX_JOURNALED_BYTES: usize = 256 * 1024;

/// Evaluates the rules of a trigger and applies their decisions.
pub(crate) struct RuleEngine {
    pub(crate) store: Arc<RuleStore>,
    pub(crate) host: Arc<dyn RuleHost>,
    pub(crate) log: Arc<Log>,
    bus: Arc<dyn EventBus>,
    scripts: Engine,
    limiter: Limiter,
    /// Set when the cooldowns of an earlier process have been restored.
    cooldowns_restored: tokio::sync::OnceCell<()>,
    /// One lock for each user and project. Held while rules that set state are evaluated.
    state_locks: Mutex<HashMap<EventOwner, Weak<tokio::sync::Mutex<()>>>>,
}

/// EventOwner event it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EventOwner {
    pub(crate) user: UserId,
    pub(crate) project: Option<ProjectId>,
}

impl RuleEngine {
    pub(crate) fn new(
        store: Arc<RuleStore>,
        host: Arc<dyn RuleHost>,
        bus: Arc<dyn EventBus>,
        log: Arc<Log>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            host,
            log,
            bus,
            scripts: Engine::new(SCRIPT_MACHINES),
            limiter: Limiter::new(),
            cooldowns_restored: tokio::sync::OnceCell::new(),
            state_locks: Mutex::default(),
        })
    }

    /// Evaluates all enabled rules for the event, stores their state changes, journals and logs every
    /// rule that fired or failed, and returns the effects and the verdict.
    pub(crate) async fn evaluate(
        self: &Arc<Self>,
        owner: EventOwner,
        occurrence: Occurrence,
    ) -> CombinedDecisions {
        let project = self.store.rules_of(owner.project.as_ref()).await;
        let Occurrence { trigger, mut facts } = occurrence;
        if let Some(reason) = &project.loaded.unreadable
            && trigger == Trigger::OnToolCall
        {
            // Fail closed: a rule that could not be read might deny this call.
            return CombinedDecisions::denying(format!(
                "tools are disabled because the rules cannot be read: {reason}"
            ));
        }
        let has_rules = !project.loaded.rules.at(trigger).is_empty();
        if has_rules {
            self.restore_cooldowns(&project.loaded).await;
            facts.user.settings = self.user_settings(&owner.user, &project);
            facts.project.settings = Arc::clone(&project.settings);
        }
        let facts = Arc::new(facts);
        let decisions = if has_rules {
            self.decide(&owner, trigger, &facts, &project.loaded).await
        } else {
            CombinedDecisions::default()
        };
        if trigger == Trigger::OnSessionEnd {
            self.limiter.end_session(&facts);
        }
        decisions
    }

    /// The user's settings as rules see them: `[settings]` of `config.toml`, and the user's settings of
    /// plugins under `plugins`. A project cannot change them.
    pub(crate) fn user_settings(&self, user: &UserId, rules: &ProjectRules) -> Arc<Value> {
        let choices = self.host.choices(user);
        if choices.is_empty() {
            return Arc::clone(&rules.user_settings);
        }
        let mut settings = rules.user_settings.as_object().cloned().unwrap_or_default();
        settings.insert(settings::PLUGINS.to_owned(), Value::Object(choices));
        Arc::new(Value::Object(settings))
    }

    /// Reads, once per process, when rules with a cooldown fired in an earlier process.
    async fn restore_cooldowns(&self, loaded: &LoadedRules) {
        let restore = async {
            let rules = loaded.rules.rules().iter();
            for rule in rules.filter(|rule| rule.rule.limits.cooldown.is_some()) {
                match self.log.last_firings(&rule.label).await {
                    Ok(firings) => self.limiter.restore(&rule.key, firings),
                    Err(error) => {
                        tracing::warn!(%error, "failed to read when rules fired before; cooldowns start again");
                        return;
                    }
                }
            }
        };
        self.cooldowns_restored.get_or_init(|| restore).await;
    }

    async fn decide(
        self: &Arc<Self>,
        owner: &EventOwner,
        trigger: Trigger,
        facts: &Arc<Facts>,
        loaded: &Arc<LoadedRules>,
    ) -> CombinedDecisions {
        let rules = loaded.rules.at(trigger);
        let disabled = self.host.disabled(&owner.user);
        self.log.remember(loaded);
        rules.count_evaluation(owner, &disabled, facts.outside_surface());
        // Tools may run in parallel. Without the lock, two events could read the same counter value and
        // one increment would be lost.
        let lock = rules.sets_state().then(|| self.state_lock(owner));
        let _held = match &lock {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        let mut results = match self.build_contexts(owner, rules, facts).await {
            Ok(contexts) => self.run_rules(trigger, loaded, contexts, disabled).await,
            Err(error) => fail_all(rules, &format!("failed to read the state: {error}")),
        };
        let mut decisions = CombinedDecisions::default();
        for result in &mut results {
            self.store_state(owner, result).await;
            decisions.add(owner.project.as_ref(), result);
        }
        if !results.is_empty() {
            self.journal(owner, trigger, facts, &results).await;
            self.log.note(owner, trigger, facts, results);
        }
        decisions
    }

    /// One context for the rules of each plugin, because each plugin has its own state and settings.
    async fn build_contexts(
        &self,
        owner: &EventOwner,
        rules: &TriggerRules,
        facts: &Arc<Facts>,
    ) -> Result<Vec<RuleContext>, CallError> {
        let mut base = RuleContext::new(Arc::clone(facts));
        if owner.project.is_some() && rules.reads_project_state() {
            let state = self
                .host
                .state(&owner.state_owner(&project_rules()))
                .await?;
            base = base.with_project_state(state.values);
        }
        let mut contexts = Vec::new();
        for plugin in rules.plugin_names() {
            let state = self.host.state(&owner.state_owner(plugin)).await?;
            let settings = self.host.settings(plugin, &owner.user).unwrap_or_default();
            contexts.push(base.of_plugin(state.values, Arc::new(Value::Object(settings))));
        }
        Ok(contexts)
    }

    /// Runs the rules. If one has a script, on a blocking thread, because scripts block.
    async fn run_rules(
        self: &Arc<Self>,
        trigger: Trigger,
        loaded: &Arc<LoadedRules>,
        contexts: Vec<RuleContext>,
        disabled: Arc<BTreeSet<String>>,
    ) -> Vec<RuleResult> {
        let rules = loaded.rules.at(trigger);
        if !rules.has_scripts() {
            return self.run_rules_now(rules, &contexts, &disabled);
        }
        let (engine, loaded) = (Arc::clone(self), Arc::clone(loaded));
        let work = move || engine.run_rules_now(loaded.rules.at(trigger), &contexts, &disabled);
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
            tracing::error!(%trigger, "evaluating rules panicked");
            // Not an empty list: a rule that might deny fails closed.
            fail_all(rules, "the evaluation panicked")
        })
    }

    fn run_rules_now(
        &self,
        rules: &TriggerRules,
        contexts: &[RuleContext],
        disabled: &BTreeSet<String>,
    ) -> Vec<RuleResult> {
        let evaluation = TriggerEvaluation {
            rules,
            contexts,
            limiter: &self.limiter,
            scripts: &self.scripts,
            is_disabled: &|rule| {
                !disabled.is_empty() && !rule.is_core && disabled.contains(&rule.label)
            },
        };
        evaluation.evaluate()
    }

    /// Stores the state that a rule sets, before the event continues: the next event must see it.
    async fn store_state(&self, owner: &EventOwner, result: &mut RuleResult) {
        let owner = owner.state_owner(&result.rule.namespace);
        let mut failed = None;
        for (index, decision) in result.outcome.decisions.iter().enumerate() {
            let Decision::Effect(Effect::SetState { key, value }) = decision else {
                continue;
            };
            if let Err(error) = self.host.set_state(&owner, key, value.clone()).await {
                let (stage, message) = (Stage::Action(index), error.to_string());
                failed.get_or_insert_with(|| Box::new(EvalError { stage, message }));
            }
        }
        let error = &mut result.outcome.error;
        *error = error.take().or(failed);
        if let Some(error) = error {
            tracing::warn!(rule = result.rule.label, "rule failed: {error}");
        }
    }

    /// Records the decisions in the journal, for explain, backtest and reevaluation.
    async fn journal(
        &self,
        owner: &EventOwner,
        trigger: Trigger,
        facts: &Facts,
        results: &[RuleResult],
    ) {
        let recorded = results
            .iter()
            .filter(|result| result.outcome.suppressed.is_none());
        let mut room = MAX_JOURNALED_BYTES;
        let rules: Vec<Value> = recorded
            .map(|result| decision_record(result, &mut room))
            .collect();
        if rules.is_empty() {
            return;
        }
        let behalf = Behalf {
            user: &owner.user,
            project: owner.project.as_ref(),
            call: None,
        };
        let draft = EventDraft {
            kind: DECISIONS_EVENT,
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
            tracing::warn!(%error, "failed to journal the decisions of rules");
        }
    }

    fn state_lock(&self, owner: &EventOwner) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self
            .state_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(owner).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(owner.clone(), Arc::downgrade(&lock));
        lock
    }
}

/// The decision of a rule for the journal. Without the outcome if it exceeds the remaining bytes.
fn decision_record(result: &RuleResult, room: &mut usize) -> Value {
    let rule = &result.rule.label;
    let outcome = json!(result.outcome);
    let size = outcome.to_string().len();
    match room.checked_sub(size) {
        Some(left) => {
            *room = left;
            json!({ "rule": rule, "outcome": outcome })
        }
        None => json!({ "rule": rule, "outcome_bytes": size }),
    }
}

impl EventOwner {
    fn state_owner(&self, plugin: &PluginName) -> StateOwner {
        StateOwner {
            user: self.user.clone(),
            project: self.project.clone(),
            plugin: plugin.clone(),
        }
    }
}

/// A failure of every rule of the trigger.
fn fail_all(rules: &TriggerRules, reason: &str) -> Vec<RuleResult> {
    let failed = |rule: &Arc<crate::CompiledRule>| RuleResult {
        rule: Arc::clone(rule),
        outcome: Outcome::failed(EvalError {
            stage: Stage::Condition,
            message: reason.to_owned(),
        }),
        elapsed: std::time::Duration::ZERO,
    };
    rules.rules().map(failed).collect()
}
