//! The methods for whoever edits rules: a file's text, a first draft, saving, renaming and deleting, and how busy rules were.

mod activity;
mod delete;
mod file;
mod own;
mod rename;
mod source;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError, plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::draft::draft;
use crate::format::Trigger;
use crate::live::Live;
use crate::load::ProjectRules;

use activity::{Activity, ActivityParams};
use delete::{DeleteParams, Deleted};
use own::{Saved, WriteError};
use rename::RenameParams;
use source::{RuleSourceText, SourceParams};
use write::WriteParams;

/// What the methods share.
pub(crate) struct Desk {
    live: Arc<Live>,
    /// Where the user keeps rules.
    user: Option<PathBuf>,
    /// Held while a file is compared with what the writer saw, and replaced.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Deserialize, JsonSchema)]
struct TemplateParams {
    /// What the rule will be called.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[a-z0-9-]+$"))]
    id: String,
    /// When it is asked.
    trigger: Trigger,
}

/// A rule to start from.
#[derive(Serialize, JsonSchema)]
struct Template {
    /// What its file would be called.
    file: String,
    /// With comments and tests.
    text: String,
}

#[plugin(name = "rules")]
impl Desk {
    /// Reads the text of a rule's file, with its scripts and with what is wrong with it.
    #[method(scope = "rules:read")]
    async fn source(&self, ctx: &CallCtx, p: SourceParams) -> Result<RuleSourceText, CallError> {
        source::read(self, ctx, p).await
    }

    /// Makes the text of a rule to start from, with comments and tests. Nothing is written.
    #[method(scope = "rules:read")]
    async fn template(&self, _ctx: &CallCtx, p: TemplateParams) -> Result<Template, CallError> {
        Ok(Template {
            file: format!("{}.toml", p.id),
            text: draft(&p.id, p.trigger.as_str()),
        })
    }

    /// Saves a rule's file, among the user's rules or the project's, whole or not at all, and the script
    /// that it names if that is given too. It counts once this has answered. A text that could not run
    /// is refused with all that is wrong with it.
    #[method(scope = "rules:admin", mutates)]
    async fn write(&self, ctx: &CallCtx, p: WriteParams) -> Result<Saved, CallError> {
        Ok(write::write(self, ctx, p).await?)
    }

    /// Gives a rule of the user or the project another id, and its file that name. What it did so far
    /// stays in the log under the old one.
    #[method(scope = "rules:admin", mutates)]
    async fn rename(&self, ctx: &CallCtx, p: RenameParams) -> Result<Saved, CallError> {
        Ok(rename::rename(self, ctx, p).await?)
    }

    /// Deletes the file of a rule of the user or the project. A script that it names stays: other rules
    /// may name it too. A rule whose place it had taken counts again.
    #[method(scope = "rules:admin", mutates)]
    async fn delete(&self, ctx: &CallCtx, p: DeleteParams) -> Result<Deleted, CallError> {
        Ok(delete::delete(self, ctx, p).await?)
    }

    /// Counts how often rules acted for you on each of the last days.
    #[method(scope = "rules:read")]
    async fn activity(&self, ctx: &CallCtx, p: ActivityParams) -> Result<Activity, CallError> {
        activity::count(self, ctx, p).await
    }
}

impl Desk {
    pub(crate) fn new(live: Arc<Live>, user: Option<PathBuf>) -> Self {
        Self {
            live,
            user,
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// The rules of the call's project, as their files are now.
    async fn rules(&self, ctx: &CallCtx) -> ProjectRules {
        let project = ctx.project.as_ref().map(|project| project.id.clone());
        self.live.book.look(project.clone()).await;
        self.live.book.of(project.as_ref()).await
    }

    /// The rule that is in use from a file, as `plugin/id`.
    async fn label_of(&self, ctx: &CallCtx, path: &str) -> Option<String> {
        let rules = self.rules(ctx).await;
        let mut used = rules.library.rules.rules().iter();
        let used = used.find(|rule| rule.origin.path == path)?;
        Some(used.label.clone())
    }

    /// Refuses where a rule is in use under that name.
    async fn must_be_free(&self, ctx: &CallCtx, rule: &str) -> Result<(), WriteError> {
        let rules = self.rules(ctx).await;
        let mut used = rules.library.rules.rules().iter();
        match used.any(|used| used.label == rule) {
            true => Err(WriteError::Taken {
                rule: rule.to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// What is wrong with a file, as it is now.
    async fn problems_of(&self, ctx: &CallCtx, path: &str) -> Vec<Problem> {
        let rules = self.rules(ctx).await;
        let problems = rules.library.problems.iter();
        problems
            .filter(|problem| problem.fault.path == path)
            .cloned()
            .collect()
    }
}
