//! `rules.source`.

use dodona_plugin::{CallCtx, CallError, ErrorCode, schema_hash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Desk;
use super::file::{Place, RuleFile};
use super::own::Scripts;
use crate::Problem;
use crate::format::{self, Condition};
use crate::identity::Scope;
use crate::load::{BUNDLED, LARGEST, ProjectRules, read_text, script_below};
use crate::methods::find;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SourceParams {
    /// Which rule: `plugin/id`, or `id` alone of a rule that belongs to no plugin.
    #[schemars(length(min = 1, max = 256))]
    rule: Option<String>,
    /// Which file, as rules and problems call it: for one that has no rule, because it is broken.
    #[schemars(length(min = 1, max = 4096))]
    path: Option<String>,
}

/// A rule's file.
#[derive(Serialize, JsonSchema)]
pub(super) struct RuleSourceText {
    /// The rule that is in use from it, as `plugin/id`; of a broken one it may be an older version.
    rule: Option<String>,
    /// Where it belongs.
    scope: Scope,
    /// All of its path.
    path: String,
    /// Its name alone.
    file: String,
    /// The text.
    text: String,
    /// Goes into `if_version` of `rules.write`.
    version: String,
    /// The scripts that it names, by the paths by which it does; those that cannot be read are absent.
    scripts: Scripts,
    /// Why it cannot be saved from here.
    locked: Option<String>,
    /// What is wrong with it.
    problems: Vec<Problem>,
}

pub(super) async fn read(
    desk: &Desk,
    ctx: &CallCtx,
    p: SourceParams,
) -> Result<RuleSourceText, CallError> {
    let rules = desk.rules(ctx).await;
    let path = match (p.rule, p.path) {
        (Some(rule), None) => find(&rules, &rule)?.origin.path.clone(),
        (None, Some(path)) => path,
        _ => {
            let message = "name either a `rule` or a `path`";
            return Err(CallError::new(ErrorCode::InvalidParams, message));
        }
    };
    let file = desk.file(ctx, &path);
    let file = file.ok_or_else(|| no_file(&path))?;
    let text = file.text().map_err(|why| {
        CallError::new(
            ErrorCode::Storage,
            format!("`{path}` cannot be shown: {why}"),
        )
    })?;
    Ok(shown(&rules, &file, path, text))
}

fn no_file(path: &str) -> CallError {
    CallError::new(ErrorCode::NotFound, format!("no rule is in `{path}`"))
        .hint("`dodona rules list --json` and `dodona rules check --json` have the paths")
}

fn shown(rules: &ProjectRules, file: &RuleFile, path: String, text: String) -> RuleSourceText {
    let library = &rules.library;
    let mut used = library.rules.rules().iter();
    let used = used.find(|rule| rule.origin.path == path);
    let problems = library.problems.iter();
    let problems = problems.filter(|problem| problem.fault.path == path);
    let scripts = file.scripts(&path, &text);
    let core = used.is_some_and(|rule| rule.is_core);
    RuleSourceText {
        rule: used.map(|rule| rule.label.clone()),
        scope: file.scope.clone(),
        file: path
            .rsplit(['/', ':'])
            .next()
            .unwrap_or_default()
            .to_owned(),
        version: version(&text, &scripts),
        locked: locked(&file.scope, core, !scripts.is_empty()),
        scripts,
        problems: problems.cloned().collect(),
        path,
        text,
    }
}

/// What tells one text of a file and its scripts from another.
pub(super) fn version(text: &str, scripts: &Scripts) -> String {
    if scripts.is_empty() {
        return schema_hash(&Value::from(text));
    }
    schema_hash(&json!([text, scripts]))
}

fn locked(scope: &Scope, core: bool, has_script: bool) -> Option<String> {
    match scope {
        Scope::User | Scope::Project => None,
        Scope::Bundled if core => {
            Some("It is a core rule of the program, and nothing replaces it.".to_owned())
        }
        Scope::Bundled if has_script => Some(
            "It comes with the program, with a script. Save changed copies among your rules: they take its place."
                .to_owned(),
        ),
        Scope::Bundled => Some(
            "It comes with the program. Save a changed copy among your rules: it takes its place."
                .to_owned(),
        ),
        Scope::Plugin(plugin) => Some(format!(
            "It comes with the plugin `{plugin}` and is changed there."
        )),
    }
}

impl RuleFile {
    /// Its text, if it is one.
    pub(super) fn text(&self) -> Result<String, String> {
        match &self.place {
            Place::Program(name) => bundled(name).ok_or_else(|| "it is not there".to_owned()),
            Place::Disk(path) => read_text(path, LARGEST),
        }
    }

    /// The scripts that a text names which is here, or will be.
    pub(super) fn scripts(&self, path: &str, text: &str) -> Scripts {
        let (rule, _) = format::parse(path, text);
        let Some(Condition::Script(script)) = rule.map(|rule| rule.condition) else {
            return Scripts::new();
        };
        let source = match &self.place {
            Place::Program(_) => bundled(&script),
            Place::Disk(path) => path
                .parent()
                .and_then(|directory| script_below(directory, &script).ok()),
        };
        source
            .into_iter()
            .map(|text| (script.clone(), text))
            .collect()
    }
}

fn bundled(name: &str) -> Option<String> {
    let found = BUNDLED.iter().find(|file| file.path == name)?;
    Some(found.text.to_owned())
}
