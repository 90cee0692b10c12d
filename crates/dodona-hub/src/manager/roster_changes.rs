//! What somebody changes about the roster while the hub runs.

use std::path::{Path, PathBuf};

use dodona_plugin::{CallError, Capabilities, ErrorCode};
use dodona_proto::PluginName;

use super::discover::Kind;
use super::roster_edit::{self, Change, Subject};
use super::{PluginManager, ROSTER, files};

impl PluginManager {
    /// Changes what the roster says about a plugin.
    pub(crate) async fn change(&self, name: &PluginName, change: Change) -> Result<(), CallError> {
        let _editing = self.editing.lock().await;
        let subject = self.subject(name, &change)?;
        self.write(subject, change, None).await
    }

    /// Writes a new plugin into the roster, and its settings into its own file.
    pub(crate) async fn add(
        &self,
        name: &PluginName,
        module: String,
        settings: Option<String>,
    ) -> Result<(), CallError> {
        let _editing = self.editing.lock().await;
        if self.view.load().candidates.contains_key(name) {
            let message = format!("there is a plugin `{name}` already");
            return Err(
                CallError::new(ErrorCode::InvalidRequest, message).hint(format!(
                    "choose another name, or run `dodona plugins remove {name}`"
                )),
            );
        }
        let subject = Subject {
            name: name.clone(),
            module,
            class: None,
        };
        self.write(subject, Change::Add, settings).await
    }

    /// Takes back what [`PluginManager::add`] wrote.
    pub(crate) async fn take_back(&self, name: &PluginName) -> Result<(), CallError> {
        self.change(name, Change::Remove).await?;
        if let Some(dir) = self.config_dir() {
            let _ = std::fs::remove_file(settings_file(dir, name));
        }
        Ok(())
    }

    async fn write(
        &self,
        subject: Subject,
        change: Change,
        settings: Option<String>,
    ) -> Result<(), CallError> {
        let Some(dir) = self.config_dir().cloned() else {
            let message = "this hub has no configuration directory, and so no roster";
            return Err(CallError::new(ErrorCode::InvalidRequest, message));
        };
        let work = move || {
            if let Some(settings) = settings {
                write_settings(&dir, &subject.name, &settings)?;
            }
            write_roster(&dir.join(ROSTER), &subject, &change)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| {
            Err(CallError::new(
                ErrorCode::Internal,
                "changing the roster failed",
            ))
        })
    }
    /// What the roster would call a plugin, if it can be changed so.
    fn subject(&self, name: &PluginName, change: &Change) -> Result<Subject, CallError> {
        let view = self.view.load();
        let invalid = |message| CallError::new(ErrorCode::InvalidRequest, message);
        let Some(candidate) = view.candidates.get(name) else {
            let message = format!("plugin `{name}` not found");
            return Err(
                CallError::new(ErrorCode::NotFound, message).hint("run `dodona plugins list`")
            );
        };
        if matches!(change, Change::Remove) && candidate.kind == Kind::Builtin {
            return Err(invalid(format!("`{name}` is built in"))
                .hint(format!("run `dodona plugins disable {name}`")));
        }
        if candidate.kind == Kind::Own {
            return Err(invalid(format!(
                "`{name}` is part of the hub and always there"
            )));
        }
        if let Some(project) = &candidate.project {
            let message = format!("`{name}` belongs to the project `{project}`");
            return Err(invalid(message).hint("see `dodona trust`"));
        }
        if matches!(change, Change::Enabled(false)) && self.sources.is_essential(name) {
            return Err(invalid(format!("`{name}` is always active")));
        }
        let capable = matches!(change, Change::Grant(_) | Change::Revoke(_));
        if capable && candidate.capabilities == Capabilities::All && candidate.manifest.is_some() {
            let message = format!("`{name}` is built in and granted everything");
            return Err(invalid(message).hint(format!(
                "to restrict it, write `capabilities = […]` into `[plugin.{name}]`"
            )));
        }
        Ok(Subject {
            name: name.clone(),
            module: candidate.module.clone(),
            class: self.sources.class_of(name),
        })
    }
}

fn write_roster(path: &Path, subject: &Subject, change: &Change) -> Result<(), CallError> {
    let shown = path.display();
    let wrong = |why: String| {
        let message = format!("`{shown}` cannot be changed: {why}");
        CallError::new(ErrorCode::InvalidRequest, message).hint("run `dodona plugins check`")
    };
    let text = files::read(path).map_err(wrong)?.unwrap_or_default();
    let changed = roster_edit::changed(&text, subject, change).map_err(wrong)?;
    roster_edit::write(path, &changed).map_err(|error| unwritten(&shown, error))
}

fn settings_file(dir: &Path, name: &PluginName) -> PathBuf {
    dir.join("plugins").join(format!("{name}.toml"))
}

/// A file of settings is not written over: somebody may have set something.
fn write_settings(dir: &Path, name: &PluginName, text: &str) -> Result<(), CallError> {
    let path = settings_file(dir, name);
    if path.exists() {
        let message = format!("`{}` already contains settings", path.display());
        return Err(CallError::new(ErrorCode::InvalidRequest, message)
            .hint("edit that file, or delete it first"));
    }
    roster_edit::write(&path, text).map_err(|error| unwritten(&path.display(), error))
}

fn unwritten(shown: &dyn std::fmt::Display, error: std::io::Error) -> CallError {
    let message = format!("`{shown}` cannot be written: {error}");
    CallError::new(ErrorCode::Storage, message)
}
