//! The user's `config.toml`, changed in one place and otherwise left as it is.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dodona_proto::ExitKind;
use toml_edit::{DocumentMut, Item, Table};

use crate::failure::Failure;

/// The file, as it is being changed.
pub(super) struct ConfigFile {
    /// The file itself, where the usual name is a link to it.
    path: PathBuf,
    document: DocumentMut,
}

impl ConfigFile {
    /// Reads the file; one that is not there is empty.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                let message = format!("could not read `{}`: {error}", path.display());
                return Err(Failure::new(ExitKind::Storage, message));
            }
        };
        let document = text
            .parse()
            .map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
        Ok(Self { path, document })
    }

    /// The table of a model; it is made if it is not there.
    pub(super) fn model(&mut self, name: &str) -> Result<&mut Table, Failure> {
        let mut models = Table::new();
        // Without keys of its own it needs no header.
        models.set_implicit(true);
        let models = self
            .document
            .entry("models")
            .or_insert(Item::Table(models))
            .as_table_mut();
        let found = models.and_then(|models| {
            let model = models.entry(name).or_insert(Item::Table(Table::new()));
            model.as_table_mut()
        });
        found.ok_or_else(|| {
            let message = format!("`models.{name}` is not written as a table of its own");
            Failure::usage(message).hint(format!("write it as `[models.{name}]` with keys below"))
        })
    }

    /// Makes a model the one that answers when nobody says which.
    pub(super) fn set_default(&mut self, name: &str) -> Result<(), Failure> {
        let agent = self
            .document
            .entry("agent")
            .or_insert(Item::Table(Table::new()));
        let Some(agent) = agent.as_table_like_mut() else {
            return Err(Failure::usage("`agent` is not a table"));
        };
        agent.insert("model", toml_edit::value(name));
        Ok(())
    }

    /// The whole text, as it would be written.
    pub(super) fn text(&self) -> String {
        self.document.to_string()
    }

    /// Writes it in place of the old one, whole or not at all, and with the same permissions.
    pub(super) fn write(&self) -> Result<&Path, Failure> {
        let written = self.replace().map_err(|error| {
            let message = format!("could not write `{}`: {error}", self.path.display());
            Failure::new(ExitKind::Storage, message)
        });
        written.map(|()| self.path.as_path())
    }

    fn replace(&self) -> io::Result<()> {
        let new = self.path.with_extension("toml.new");
        let mut file = fs::File::create(&new)?;
        if let Ok(old) = fs::metadata(&self.path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}
