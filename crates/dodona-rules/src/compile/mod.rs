//! A rule ready for evaluation: condition type-checked against the trigger, templates compiled.

mod action;
mod guard;

use std::path::Path;
use std::sync::Arc;

use dodona_expr::Expr;
use dodona_plugin::PROJECT_RULES;
use dodona_plugin::reading::{self, Reading};
use dodona_proto::{PluginName, Surface};
use dodona_script::Script;

pub(crate) use action::CompiledAction;
use guard::Guard;

use crate::Problem;
use crate::context::schema;
use crate::format::{Condition, OnError, Rule, Trigger, within};
use crate::identity::{RuleKey, STANDALONE, Scope};
use crate::reads::Reads;
use crate::settings::{SettingRead, SettingsOwner};

/// Where a rule comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Decides what the rule may declare, such as `core`.
    pub scope: Scope,
    /// The path of the file, as shown in messages.
    pub path: String,
}

/// A rule that can be evaluated many times, from many threads.
#[derive(Debug)]
pub struct CompiledRule {
    // First field, so that it shares a cache line with the reference count of the `Arc`.
    pub(crate) actions: Vec<CompiledAction>,
    /// The content of its file.
    pub rule: Rule,
    pub key: RuleKey,
    /// The key as text, `plugin/id`.
    pub label: String,
    /// Where the rule comes from.
    pub origin: Origin,
    /// The plugin whose state and settings the rule uses. A project's own rules have a separate state, so that
    /// they cannot change the state that the user's rules read.
    pub namespace: PluginName,
    /// Whether the rule cannot be disabled: `core` in a trusted file.
    pub is_core: bool,
    /// The large or optional parts of an event that the condition and the actions read.
    pub reads: Reads,
    /// The settings of user and project that the condition reads. Unknown for a script.
    pub settings_read: Vec<SettingRead>,
    pub(crate) condition: CompiledCondition,
    /// The guard of its script.
    guard: Option<Guard>,
}

#[derive(Debug)]
pub enum CompiledCondition {
    Expression(Expr),
    Script(Arc<Script>),
}

/// Returns the source of a script by the path used in the rule.
pub type ScriptSource<'s> = dyn Fn(&str) -> Result<String, String> + 's;

impl CompiledRule {
    /// Compiles a rule that was parsed from `text`. If there is no result, the problems contain an error.
    pub fn compile(
        rule: Rule,
        text: &str,
        origin: Origin,
        scripts: &ScriptSource<'_>,
    ) -> (Option<Self>, Vec<Problem>) {
        let mut errors = Reading::new(origin.path.clone(), text);
        let mut warnings = Reading::new(origin.path.clone(), text);
        let condition = condition(&rule, text, scripts, &mut errors, &mut warnings);
        let actions = action::prepare(&rule, text, &mut errors);
        let (plugin, is_core) = standing(&rule, &origin.scope, &mut warnings);
        let problems = (errors.into_problems().into_iter().map(Problem::error))
            .chain(warnings.into_problems().into_iter().map(Problem::warning))
            .collect();
        let key = RuleKey {
            plugin,
            id: rule.id.clone(),
        };
        let compiled = condition.zip(actions).map(|(asked, actions)| Self {
            reads: asked.reads | Reads::of_actions(&rule.actions),
            label: key.to_string(),
            namespace: namespace(&key, &origin.scope),
            key,
            origin,
            is_core,
            settings_read: asked.settings_read,
            condition: asked.condition,
            guard: asked.guard,
            actions,
            rule,
        });
        (compiled, problems)
    }

    /// A warning if the rule's file is not named after its id, as `token-budget.toml` is for
    /// `id = "token-budget"`. Bundled rules have no file of their own.
    pub fn file_name_warning(&self) -> Option<Problem> {
        if self.origin.scope == Scope::Bundled {
            return None;
        }
        let (path, id) = (&self.origin.path, &self.rule.id);
        let file = Path::new(path).file_name()?.to_str()?;
        let expected = format!("{id}.toml");
        if file == expected {
            return None;
        }
        let spot = &self.rule.spots.id;
        Some(Problem::warning(reading::Problem {
            path: path.clone(),
            place: Some(reading::Place {
                line: spot.line,
                column: spot.column,
                width: spot.span.len(),
                text: spot.text.clone(),
            }),
            message: format!("the file is named `{file}`, but the id of its rule is `{id}`"),
            hint: Some(format!("rename the file to `{expected}`")),
        }))
    }

    /// The condition, if it is an expression.
    pub fn expression(&self) -> Option<&Expr> {
        match &self.condition {
            CompiledCondition::Expression(expr) => Some(expr),
            CompiledCondition::Script(_) => None,
        }
    }

    /// The condition, if it is a script.
    pub fn script(&self) -> Option<&Arc<Script>> {
        match &self.condition {
            CompiledCondition::Expression(_) => None,
            CompiledCondition::Script(script) => Some(script),
        }
    }

    /// An expression that must be true for the rule to fire: its condition, or the guard of its script. A script
    /// may have none.
    pub(crate) fn asked_first(&self) -> Option<&Expr> {
        let guard = self.guard.as_ref().map(|guard| &guard.expr);
        self.expression().or(guard)
    }

    /// Whether that expression is equivalent to the whole script.
    pub(crate) fn is_told_by_expression(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.is_whole)
    }

    /// Whether the rule is evaluated for a tool call outside a query. Rules that may deny a call always are;
    /// others only for the surfaces in `surfaces`.
    pub(crate) fn covers_outside(&self, surface: Surface) -> bool {
        self.may_refuse() || self.rule.surfaces.contains(&surface)
    }

    /// Whether the rule may return `deny` or `require_approval`, by its actions or from its script.
    pub(crate) fn may_refuse(&self) -> bool {
        self.rule.trigger == Trigger::OnToolCall
            && (OnError::default_for(&self.rule.actions) == OnError::Closed
                || self.script().is_some())
    }

    pub fn condition(&self) -> &CompiledCondition {
        &self.condition
    }
}

fn namespace(key: &RuleKey, scope: &Scope) -> PluginName {
    match scope {
        Scope::Project => project_rules(),
        _ => key.plugin.clone(),
    }
}

/// The namespace of a project's own rules.
pub(crate) fn project_rules() -> PluginName {
    PluginName::new(PROJECT_RULES).expect("`project-rules` is a valid plugin name")
}

/// The plugin of a rule, and whether its `core` applies. Warns about declarations that do not apply.
fn standing(rule: &Rule, scope: &Scope, warnings: &mut Reading<'_>) -> (PluginName, bool) {
    let own = match scope {
        Scope::Plugin(name) => name.clone(),
        _ => PluginName::new(STANDALONE).expect("`rules` is a plugin's name"),
    };
    let mut plugin = own.clone();
    if let Some(named) = rule.plugin_id.as_ref().filter(|named| **named != own) {
        if scope.is_trusted() {
            plugin = named.clone();
        } else {
            let message = format!(
                "`plugin_id` is only allowed in bundled rules and your own; this rule belongs to `{own}`"
            );
            warnings.fault(rule.spots.plugin_id.span.clone(), message);
        }
    }
    if rule.core && !scope.is_trusted() {
        let message = "`core` is only allowed in bundled rules and your own; it is ignored here";
        warnings.fault(rule.spots.core.span.clone(), message);
    }
    (plugin, rule.core && scope.is_trusted())
}

/// A compiled condition and what it reads.
struct CheckedCondition {
    condition: CompiledCondition,
    reads: Reads,
    settings_read: Vec<SettingRead>,
    guard: Option<Guard>,
}

fn condition(
    rule: &Rule,
    text: &str,
    scripts: &ScriptSource<'_>,
    errors: &mut Reading<'_>,
    warnings: &mut Reading<'_>,
) -> Option<CheckedCondition> {
    let spot = &rule.spots.condition;
    match &rule.condition {
        Condition::Expression(source) => {
            let place = |span: dodona_expr::Span| within(text, spot, source, span.start..span.end);
            let expr = match Expr::compile(source, schema(rule.trigger)) {
                Ok(expr) => expr,
                Err(error) => {
                    let span = place(error.span());
                    match error.hint() {
                        Some(hint) => errors.fault_with(span, error.message(), hint),
                        None => errors.fault(span, error.message()),
                    }
                    return None;
                }
            };
            for warning in expr.warnings() {
                warnings.fault(place(warning.span), warning.message.clone());
            }
            let reads = Reads::of_expression(&expr, rule.trigger);
            let schema = schema(rule.trigger);
            let setting = |key: dodona_expr::KeyRead| {
                let owner = SettingsOwner::of_path(schema.slot_path(key.slot)?)?;
                let span = place(key.span);
                Some(SettingRead::new(warnings, owner, key, span))
            };
            let settings_read = expr.keys().into_iter().filter_map(setting).collect();
            Some(CheckedCondition {
                condition: CompiledCondition::Expression(expr),
                reads,
                settings_read,
                guard: None,
            })
        }
        Condition::Script(path) => {
            let compiled = scripts(path).and_then(|source| {
                let script = Script::compile(&source, path);
                let script = script.map_err(|error| format!("`{path}`: {error}"))?;
                Ok(CheckedCondition {
                    condition: CompiledCondition::Script(Arc::new(script)),
                    reads: Reads::of_source(&source),
                    settings_read: Vec::new(),
                    guard: guard::of_script(&source, rule.trigger),
                })
            });
            match compiled {
                Ok(asked) => Some(asked),
                Err(why) => {
                    errors.fault(spot.span.clone(), why);
                    None
                }
            }
        }
    }
}
