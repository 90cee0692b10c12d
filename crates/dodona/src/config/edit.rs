//! A `config.toml`, changed in one place and otherwise left as it is.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dodona_proto::ExitKind;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::{ConfigError, must_be_inside, project_file};
use crate::failure::Failure;

/// The file, as it is being changed.
pub(crate) struct ConfigFile {
    /// The file itself, where the usual name is a link to it.
    path: PathBuf,
    document: DocumentMut,
}

impl ConfigFile {
    /// Reads the file; one that is not there is empty.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
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

    /// Reads the file of a project. A symbolic link is refused: it could lead to any file.
    pub(crate) fn of_project(root: &Path) -> Result<Self, Failure> {
        let file = project_file(root);
        must_be_inside(&file).map_err(|error: ConfigError| Failure::from(error))?;
        Self::read(&file)
    }

    /// The table of a model; it is made if it is not there.
    pub(crate) fn model(&mut self, name: &str) -> Result<&mut Table, Failure> {
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

    /// Removes the table of a model.
    pub(crate) fn remove_model(&mut self, name: &str) {
        if let Some(models) = self
            .document
            .get_mut("models")
            .and_then(Item::as_table_like_mut)
        {
            models.remove(name);
        }
    }

    /// Sets the default model.
    pub(crate) fn set_default(&mut self, name: &str) -> Result<(), Failure> {
        self.set(&["agent", "model"], Value::from(name))
    }

    /// Sets a key. Tables on the way are created; the comment after a value stays.
    pub(crate) fn set(&mut self, path: &[&str], mut value: Value) -> Result<(), Failure> {
        let (last, tables) = path.split_last().expect("a key has a name");
        let table = self.table(tables)?;
        match table.get_mut(last) {
            Some(Item::Value(old)) => {
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
            Some(Item::None) | None => {
                // With the spaces that are usual in a table of this kind.
                value.decor_mut().clear();
                table.insert(last, Item::Value(value));
            }
            Some(_) => {
                let message = format!("`{}` is a table, not a value", path.join("."));
                return Err(Failure::usage(message).hint("name a key in it"));
            }
        }
        Ok(())
    }

    /// Removes a key. Returns whether it was there.
    pub(crate) fn unset(&mut self, path: &[&str]) -> bool {
        let (last, tables) = path.split_last().expect("a key has a name");
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for name in tables {
            match table.get_mut(name).and_then(Item::as_table_like_mut) {
                Some(inner) => table = inner,
                None => return false,
            }
        }
        let is_value = table.get(last).is_some_and(Item::is_value);
        is_value && table.remove(last).is_some()
    }

    /// A table by its path, which is created if it does not exist.
    fn table(&mut self, path: &[&str]) -> Result<&mut dyn TableLike, Failure> {
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for (depth, name) in path.iter().enumerate() {
            if !table.contains_key(name) {
                let mut new = Table::new();
                // Only the innermost table gets keys of its own, and so a header.
                new.set_implicit(depth + 1 < path.len());
                table.insert(name, Item::Table(new));
            }
            let inner = table.get_mut(name).and_then(Item::as_table_like_mut);
            table = inner.ok_or_else(|| {
                Failure::usage(format!("`{}` is not a table", path[..=depth].join(".")))
            })?;
        }
        Ok(table)
    }

    /// The whole text, as it would be written.
    pub(crate) fn text(&self) -> String {
        self.document.to_string()
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it in place of the old one, whole or not at all, and with the same permissions.
    pub(crate) fn write(&self) -> Result<&Path, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, edit: impl FnOnce(&mut ConfigFile)) -> String {
        let mut file = ConfigFile {
            path: PathBuf::from("config.toml"),
            document: text.parse().unwrap(),
        };
        edit(&mut file);
        file.text()
    }

    #[test]
    fn a_key_is_set_and_everything_else_stays() {
        let text = "# mine\n[agent]\nmax_turns = 3 # few\n\n[journal]\nmax_age = \"1d\"\n";
        let now = edited(text, |file| {
            file.set(&["agent", "max_turns"], Value::from(5)).unwrap();
            file.set(&["settings", "strict"], Value::from(true))
                .unwrap();
            file.set(&["limits", "user", "burst"], Value::from(7))
                .unwrap();
        });
        let expected = "# mine\n[agent]\nmax_turns = 5 # few\n\n[journal]\nmax_age = \"1d\"\n\n\
                        [settings]\nstrict = true\n\n[limits.user]\nburst = 7\n";
        assert_eq!(now, expected);
    }

    #[test]
    fn inline_and_dotted_tables_are_edited_too() {
        let text = "settings = { a = 1 }\nlimits.user.burst = 2\n";
        let now = edited(text, |file| {
            file.set(&["settings", "b"], Value::from("x")).unwrap();
            file.set(&["limits", "user", "burst"], Value::from(3))
                .unwrap();
            assert!(file.unset(&["settings", "a"]));
            assert!(!file.unset(&["settings", "c"]));
            assert!(!file.unset(&["nothing", "c"]));
        });
        assert_eq!(now, "settings = { b = \"x\" }\nlimits.user.burst = 3\n");
    }

    #[test]
    fn a_table_is_not_replaced_by_a_value() {
        edited("[settings]\na = 1\n", |file| {
            assert!(file.set(&["settings"], Value::from(1)).is_err());
            assert!(file.set(&["settings", "a", "b"], Value::from(1)).is_err());
            assert!(!file.unset(&["settings"]));
        });
    }
}
