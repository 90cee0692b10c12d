//! Numbered migrations in a plugin's directory: `migrations/0001_words.sql`.

use std::fs;
use std::io::Read;
use std::path::Path;

use dodona_plugin::reading::Problem;
use dodona_plugin::store::Migration;

/// The folder in the plugin's directory.
const FOLDER: &str = "migrations";

/// The most migrations, and the largest.
const MAX_FILES: usize = 999;
const MAX_BYTES: u64 = 1 << 20;

/// Reads the migrations of a plugin, in order; none without the folder. Every fault is reported.
pub(crate) fn read(directory: &Path) -> Result<Vec<Migration>, Vec<Problem>> {
    let folder = directory.join(FOLDER);
    let whole = |why: String| vec![Problem::of_file(folder.display().to_string(), why)];
    let mut names = match fs::read_dir(&folder) {
        Ok(entries) => entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".sql"))
            .take(MAX_FILES + 1)
            .collect::<Vec<_>>(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(whole(format!("it cannot be read: {error}"))),
    };
    if names.len() > MAX_FILES {
        return Err(whole(format!("it has more than {MAX_FILES} migrations")));
    }
    names.sort();
    let (mut migrations, mut problems) = (Vec::new(), Vec::new());
    for (name, expected) in names.iter().zip(1..) {
        match one(directory, &folder, name, expected) {
            Ok(migration) => migrations.push(migration),
            Err(why) => {
                let path = folder.join(name).display().to_string();
                problems.push(Problem::of_file(path, why));
            }
        }
    }
    match problems.is_empty() {
        true => Ok(migrations),
        false => Err(problems),
    }
}

fn one(directory: &Path, folder: &Path, name: &str, expected: u32) -> Result<Migration, String> {
    let version = version(name).ok_or(
        "its name is not that of a migration; write four digits, `_`, a few words and `.sql`, such as \
         `0001_words.sql`",
    )?;
    if version != expected {
        return Err(format!(
            "migration {expected:04} is missing: numbers count up from 0001 without a gap, and each \
             is used once"
        ));
    }
    let sql = text(directory, &folder.join(name))?;
    Ok(Migration {
        version,
        name: format!("{FOLDER}/{name}").into(),
        sql: sql.into(),
    })
}

/// The number of `0001_words.sql`.
fn version(name: &str) -> Option<u32> {
    let (number, rest) = name.strip_suffix(".sql")?.split_once('_')?;
    let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    match is_number && !rest.is_empty() {
        true => number.parse().ok(),
        false => None,
    }
}

/// The text of a file that is really below the directory, links followed.
fn text(directory: &Path, path: &Path) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("it cannot be read: {error}");
    let real = fs::canonicalize(path).map_err(wrong)?;
    if !real.starts_with(fs::canonicalize(directory).map_err(wrong)?) {
        return Err("it leads out of the plugin's directory".to_owned());
    }
    if !fs::metadata(&real).map_err(wrong)?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let file = fs::File::open(&real).map_err(wrong)?;
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(wrong)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(format!("it is larger than {} KiB", MAX_BYTES >> 10)),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(FOLDER)).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(FOLDER).join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn migrations_are_read_in_order_and_other_files_passed_over() {
        let folder = plugin(&[
            ("0002_more.sql", "second"),
            ("0001_words.sql", "first"),
            ("README.md", "x"),
        ]);
        let read = read(folder.path()).unwrap();
        let told: Vec<(u32, &str, &str)> = read
            .iter()
            .map(|one| (one.version, &*one.name, &*one.sql))
            .collect();
        assert_eq!(
            told,
            [
                (1, "migrations/0001_words.sql", "first"),
                (2, "migrations/0002_more.sql", "second")
            ]
        );
        assert!(
            super::read(tempfile::tempdir().unwrap().path())
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn gaps_duplicates_and_bad_names_are_reported() {
        for (files, why) in [
            (&[("0002_a.sql", "")][..], "migration 0001 is missing"),
            (
                &[("0001_a.sql", ""), ("0001_b.sql", "")],
                "migration 0002 is missing",
            ),
            (&[("1_a.sql", "")], "0001_words.sql"),
            (&[("0001.sql", "")], "0001_words.sql"),
            (&[("one_a.sql", "")], "0001_words.sql"),
        ] {
            let problems = read(plugin(files).path()).unwrap_err();
            let told = problems[0].to_string();
            assert!(told.contains(why) && told.contains("migrations"), "{told}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out() {
        let folder = plugin(&[]);
        let link = folder.path().join(FOLDER).join("0001_a.sql");
        std::os::unix::fs::symlink("/etc/hostname", link).unwrap();
        let told = read(folder.path()).unwrap_err()[0].to_string();
        assert!(told.contains("leads out"), "{told}");
    }
}
