//! Whether a newer version of the program has used the home.
//!
//! Every database refuses a schema that it does not know. That is too late for the home as a whole: other
//! databases would be written by then, and a plugin such as `rules` would be left out without the user
//! noticing. So the recorded versions of all databases are compared before anything is opened.

use std::path::Path;

use thiserror::Error;

/// The databases of the program, each with the newest schema version that it supports.
fn supported() -> impl Iterator<Item = (&'static str, usize)> {
    let crates = [
        dodona_store::journal::SCHEMAS,
        dodona_hub::SCHEMAS,
        dodona_agent::SCHEMAS,
        dodona_knowledge::SCHEMAS,
        dodona_rules::SCHEMAS,
    ];
    crates.into_iter().flatten().copied()
}

/// A home that a newer version of the program has used.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "this home directory belongs to a newer version of Dodona: `{file}` has schema version {found}, \
     and version {} of the program supports up to {known}", env!("CARGO_PKG_VERSION")
)]
pub(crate) struct NewerHome {
    file: &'static str,
    found: usize,
    known: usize,
}

impl NewerHome {
    /// What the user can do.
    pub(crate) const HINT: &str =
        "install the newer version again, or set DODONA_HOME to a different directory";
}

/// Refuses a home whose databases have a newer schema. No file is changed. The caller owns the home.
pub(crate) fn check(data: &Path) -> Result<(), NewerHome> {
    for (file, known) in supported() {
        // Missing and damaged databases are reported where they are opened.
        let found = dodona_store::recorded_version(&data.join(file)).unwrap_or(0) as usize;
        if found > known {
            return Err(NewerHome { file, found, known });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dodona_hub::PluginHub;

    use super::*;
    use crate::config::Settings;
    use crate::home::Home;
    use crate::plugins;

    fn databases(folder: &Path, prefix: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                found.extend(databases(&entry.path(), &format!("{name}/")));
            } else if name.ends_with(".db") {
                found.push(name);
            }
        }
        found.sort();
        found
    }

    #[tokio::test]
    async fn every_database_of_a_new_home_is_listed_with_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::below(folder.path()).unwrap();
        let settings = Settings::default();
        let plugins = plugins::all(&home, &settings);
        let hub = PluginHub::start(home.paths(), settings.hub, plugins)
            .await
            .unwrap();
        hub.stop(Duration::from_secs(2)).await;
        for file in databases(&home.data, "") {
            let version = dodona_store::recorded_version(&home.data.join(&file));
            let listed = supported().find(|(known, _)| *known == file);
            let listed = listed.map(|(_, known)| u32::try_from(known).unwrap());
            assert_eq!(listed, version, "{file}");
        }
        assert_eq!(check(&home.data), Ok(()));
    }
}
