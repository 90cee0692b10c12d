//! Deleting what a plugin stored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::PluginName;

use super::PluginManager;

impl PluginManager {
    /// Deletes the data of a plugin that is not there any more: its databases and their backups, its
    /// data directory, and its state of all users.
    pub(crate) async fn delete_data(&self, name: &PluginName) -> Result<(), CallError> {
        if let Some(candidate) = self.view.load().candidates.get(name) {
            let message =
                format!("the data of `{name}` was not deleted: the plugin is still loaded");
            let error = CallError::new(ErrorCode::InvalidRequest, message);
            return Err(match &candidate.directory {
                Some(directory) => error.hint(format!(
                    "delete or move its directory `{}`, then run `dodona plugins remove {name} \
                     --delete-data` again",
                    directory.display()
                )),
                None => error.hint("run `dodona plugins list`"),
            });
        }
        let directory = self.services.data_dir.join("plugins").join(name.as_str());
        let has_directory = directory.is_dir();
        let values = self.services.state.delete_all(name).await?;
        if has_directory {
            self.delete_directory(name, directory).await?;
        }
        if has_directory || values > 0 {
            Ok(())
        } else {
            Err(CallError::new(
                ErrorCode::NotFound,
                format!("neither plugin `{name}` nor its data was found"),
            )
            .hint("run `dodona plugins list`"))
        }
    }

    async fn delete_directory(
        &self,
        name: &PluginName,
        directory: PathBuf,
    ) -> Result<(), CallError> {
        let failed = |error: io::Error| {
            let message = format!("could not delete the data of `{name}`");
            CallError::new(ErrorCode::Storage, message)
                .hint(format!("delete `data/plugins/{name}` yourself"))
                .log(error)
        };
        for file in databases(&directory).map_err(failed)? {
            let file = format!("plugins/{name}/{file}");
            self.services.store.remove(&file).await.map_err(failed)?;
        }
        let removed = tokio::task::spawn_blocking(move || fs::remove_dir_all(directory)).await;
        removed
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(failed)
    }
}

/// The names of the databases in a directory.
fn databases(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        if let Ok(name) = entry?.file_name().into_string()
            && name.ends_with(".db")
        {
            found.push(name);
        }
    }
    Ok(found)
}
