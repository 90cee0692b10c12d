//! `rules.source`.

use dodona_plugin::{CallCtx, CallError, ErrorCode, schema_hash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::RuleEditor;
use super::rule_file::{Place, RuleFile};
use super::writable_file::Scripts;
use crate::Problem;
use crate::format::{self, Condition};
use crate::identity::Scope;
use crate::load::{BUNDLED, LARGEST, ProjectRules, read_text, script_below};
use crate::methods::find;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SourceParams {
    /// The rule: `plugin/id`, or `id` for a rule that belongs to no plugin.
    #[schemars(length(min = 1, max = 256))]
    rule: Option<String>,
    /// The path of the file, as `rules.list` and `rules.check` report it. Use it for a broken file, which has
    /// no rule.
    #[schemars(length(min = 1, max = 4096))]
    path: Option<String>,
}

/// The text of a rule file.
#[derive(Serialize, JsonSchema)]
pub(super) struct RuleSourceText {
    /// The active rule of the file, as `plugin/id`. If the file is broken, an older version may be active.
    rule: Option<String>,
    /// Where the file belongs.
    scope: Scope,
    /// Full path of the file.
    path: String,
    /// The file name without directory.
    file: String,
    /// The text in TOML.
    text: String,
    /// Pass it as `if_version` to `rules.write`.
    version: String,
    /// The scripts of the rule, by the path used in the rule. Scripts that cannot be read are absent.
    scripts: Scripts,
    /// Why the file is read-only.
    locked: Option<String>,
    /// The problems of the file.
    problems: Vec<Problem>,
}

pub(super) async fn read(
    editor: &RuleEditor,
    ctx: &CallCtx,
    p: SourceParams,
) -> Result<RuleSourceText, CallError> {
    let rules = editor.rules(ctx).await;
    let path = match (p.rule, p.path) {
        (Some(rule), None) => find(&rules, &rule)?.origin.path.clone(),
        (None, Some(path)) => path,
        _ => {
            let message = "pass either `rule` or `path`";
            return Err(CallError::new(ErrorCode::InvalidParams, message));
        }
    };
    let file = editor.file(ctx, &path);
    let file = file.ok_or_else(|| no_file(&path))?;
    let text = file.text().map_err(|why| {
        CallError::new(
            ErrorCode::Storage,
            format!("`{path}` cannot be read: {why}"),
        )
    })?;
    Ok(shown(&rules, &file, path, text))
}

fn no_file(path: &str) -> CallError {
    CallError::new(ErrorCode::NotFound, format!("`{path}` is not a rule file"))
        .hint("run `dodona rules list --json` or `dodona rules check --json` to see the paths")
}

fn shown(rules: &ProjectRules, file: &RuleFile, path: String, text: String) -> RuleSourceText {
    let loaded = &rules.loaded;
    let mut used = loaded.rules.rules().iter();
    let used = used.find(|rule| rule.origin.path == path);
    let problems = loaded.problems.iter();
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

/// The version of a text and its scripts: a hash.
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
            Some("This is a bundled core rule, which cannot be replaced.".to_owned())
        }
        Scope::Bundled if has_script => Some(
            "This is a bundled rule with a script. Save changed copies of both among your rules to replace it."
                .to_owned(),
        ),
        Scope::Bundled => Some(
            "This is a bundled rule. Save a changed copy among your rules to replace it."
                .to_owned(),
        ),
        Scope::Plugin(plugin) => Some(format!(
            "This rule belongs to plugin `{plugin}`. Change it there."
        )),
    }
}

impl RuleFile {
    /// The content of the file as text.
    pub(super) fn text(&self) -> Result<String, String> {
        match &self.place {
            Place::Program(name) => bundled(name).ok_or_else(|| "it is not there".to_owned()),
            Place::Disk(path) => read_text(path, LARGEST),
        }
    }

    /// The scripts that a text in this file refers to.
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
