//! The methods for whoever edits rules: a file's text, a first draft, saving, renaming and deleting, and how busy rules were.

mod activity;
mod delete;
mod rename;
mod rule_file;
mod source;
mod writable_file;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError, plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::draft::draft;
use crate::engine::RuleEngine;
use crate::format::Trigger;
use crate::load::ProjectRules;

use activity::{Activity, ActivityParams};
use delete::{DeleteParams, Deleted};
use rename::RenameParams;
use source::{RuleSourceText, SourceParams};
use writable_file::{Saved, WriteError};
use write::WriteParams;

/// Implements the methods that read and write rule files.
pub(crate) struct RuleEditor {
    engine: Arc<RuleEngine>,
    /// The directory of the user's rules.
    user: Option<PathBuf>,
    /// Held while a file is compared with the version the caller read, and replaced.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Deserialize, JsonSchema)]
struct TemplateParams {
    /// The id of the new rule.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[a-z0-9-]+$"))]
    id: String,
    /// The trigger of the rule.
    trigger: Trigger,
}

/// A template for a new rule.
#[derive(Serialize, JsonSchema)]
struct Template {
    /// The suggested file name.
    file: String,
    /// The text of the rule, with comments and tests.
    text: String,
}

#[plugin(name = "rules")]
impl RuleEditor {
    /// Read the text of a rule file, with its scripts, its version and its problems. Pass the version to
    /// `rules.write` to save a change.
    #[method(scope = "rules:read")]
    async fn source(&self, ctx: &CallCtx, p: SourceParams) -> Result<RuleSourceText, CallError> {
        source::read(self, ctx, p).await
    }

    /// Generate the text of a new rule, with comments and tests. Nothing is written.
    #[method(scope = "rules:read")]
    async fn template(&self, _ctx: &CallCtx, p: TemplateParams) -> Result<Template, CallError> {
        Ok(Template {
            file: format!("{}.toml", p.id),
            text: draft(&p.id, p.trigger.as_str()),
        })
    }

    /// Save a rule file of the user or the project, and its scripts if they are passed too. The file is replaced
    /// atomically, and the rule is in force when the call returns. A text with errors is rejected with all its
    /// problems.
    #[method(scope = "rules:admin", mutates)]
    async fn write(&self, ctx: &CallCtx, p: WriteParams) -> Result<Saved, CallError> {
        Ok(write::write(self, ctx, p).await?)
    }

    /// Rename a rule of the user or the project: its id and its file. Log entries keep the old id.
    #[method(scope = "rules:admin", mutates)]
    async fn rename(&self, ctx: &CallCtx, p: RenameParams) -> Result<Saved, CallError> {
        Ok(rename::rename(self, ctx, p).await?)
    }

    /// Delete the file of a rule of the user or the project. Its scripts are kept, because other rules may use
    /// them. A rule that it had overridden is in force again.
    #[method(scope = "rules:admin", mutates)]
    async fn delete(&self, ctx: &CallCtx, p: DeleteParams) -> Result<Deleted, CallError> {
        Ok(delete::delete(self, ctx, p).await?)
    }

    /// Count how often each rule fired for you on each of the last `days` days.
    #[method(scope = "rules:read")]
    async fn activity(&self, ctx: &CallCtx, p: ActivityParams) -> Result<Activity, CallError> {
        activity::count(self, ctx, p).await
    }
}

impl RuleEditor {
    pub(crate) fn new(engine: Arc<RuleEngine>, user: Option<PathBuf>) -> Self {
        Self {
            engine,
            user,
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// The rules of the call's project, after a scan of their files.
    async fn rules(&self, ctx: &CallCtx) -> ProjectRules {
        let project = ctx.project.as_ref().map(|project| project.id.clone());
        self.engine.store.scan(project.clone()).await;
        self.engine.store.rules_of(project.as_ref()).await
    }

    /// The active rule of a file, as `plugin/id`.
    async fn label_of(&self, ctx: &CallCtx, path: &str) -> Option<String> {
        let rules = self.rules(ctx).await;
        let mut used = rules.loaded.rules.rules().iter();
        let used = used.find(|rule| rule.origin.path == path)?;
        Some(used.label.clone())
    }

    /// Fails if an active rule has this name.
    async fn must_be_free(&self, ctx: &CallCtx, rule: &str) -> Result<(), WriteError> {
        let rules = self.rules(ctx).await;
        let mut used = rules.loaded.rules.rules().iter();
        match used.any(|used| used.label == rule) {
            true => Err(WriteError::Taken {
                rule: rule.to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// The current problems of a file.
    async fn problems_of(&self, ctx: &CallCtx, path: &str) -> Vec<Problem> {
        let rules = self.rules(ctx).await;
        let problems = rules.loaded.problems.iter();
        problems
            .filter(|problem| problem.fault.path == path)
            .cloned()
            .collect()
    }
}
