//! Small files that users write, read with a bound.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dodona_plugin::manifest::stays_inside;

/// The largest roster, manifest or file of settings.
const LARGEST: u64 = 1 << 20;

/// How many rule files a plugin may bring.
const MOST_RULES: usize = 1000;

/// A file's text; `None` if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, String> {
    let wrong = |error: io::Error| format!("failed to read the file: {error}");
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error)),
    };
    // Anything else, such as a pipe, could keep the reader waiting for ever.
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let file = fs::File::open(path).map_err(wrong)?;
    let length = file.take(LARGEST + 1).read_to_string(&mut text);
    if length.map_err(wrong)? as u64 > LARGEST {
        return Err(format!("it is larger than {} KiB", LARGEST >> 10));
    }
    Ok(Some(text))
}

/// A path below a directory, also once links are followed. It need not exist.
pub(crate) fn below(base: &Path, relative: &str) -> Result<PathBuf, String> {
    let outside = || format!("`{relative}` leads out of `{}`", base.display());
    if !stays_inside(relative) || Path::new(relative).is_absolute() {
        return Err(outside());
    }
    let path = base.join(relative);
    let Ok(base) = fs::canonicalize(base) else {
        return Ok(path);
    };
    // What does not exist yet leads nowhere by itself; its nearest existing parent may.
    let mut existing = path.as_path();
    loop {
        match fs::canonicalize(existing) {
            Ok(real) if real.starts_with(&base) => return Ok(path),
            Ok(_) => return Err(outside()),
            // A link whose target is missing still says where it leads.
            Err(_) if fs::symlink_metadata(existing).is_ok() => return Err(outside()),
            Err(_) => match existing.parent() {
                Some(parent) => existing = parent,
                None => return Ok(path),
            },
        }
    }
}

/// The files below a directory that patterns name, in order and each once. In a pattern `*`
/// stands for any part of one name.
pub(crate) fn matching(dir: &Path, patterns: &[String]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for pattern in patterns {
        let parts: Vec<&str> = pattern
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        walk(dir, dir, &parts, &mut found)?;
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn walk(root: &Path, dir: &Path, parts: &[&str], found: &mut Vec<PathBuf>) -> Result<(), String> {
    let Some((part, rest)) = parts.split_first() else {
        return Ok(());
    };
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(());
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| fits(part, name))
        .collect();
    names.sort();
    for name in names {
        let path = dir.join(&name);
        let relative = path.strip_prefix(root).map_err(|error| error.to_string())?;
        below(root, &relative.to_string_lossy())?;
        match rest.is_empty() {
            true if path.is_file() => found.push(path),
            true => {}
            false => walk(root, &path, rest, found)?,
        }
        if found.len() > MOST_RULES {
            return Err(format!(
                "its patterns name more than {MOST_RULES} rule files"
            ));
        }
    }
    Ok(())
}

/// Whether a name fits a pattern in which `*` is any text. Hidden files are named in full.
fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_files_and_nothing_else() {
        assert!(fits("*.toml", "a.toml") && fits("a*c*e", "abcde") && fits("a.toml", "a.toml"));
        assert!(!fits("*.toml", "a.lua") && !fits("a*a", "a") && !fits("*", ".hidden"));
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        fs::create_dir_all(dir.join("rules/more")).unwrap();
        for file in [
            "rules/b.toml",
            "rules/a.toml",
            "rules/x.lua",
            "rules/more/c.toml",
        ] {
            fs::write(dir.join(file), "").unwrap();
        }
        let patterns = ["rules/*.toml", "rules/*/c.toml", "./rules/a.toml"].map(str::to_owned);
        let found = matching(dir, &patterns).unwrap();
        let expected = ["rules/a.toml", "rules/b.toml", "rules/more/c.toml"];
        assert_eq!(found, expected.map(|file| dir.join(file)));
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("x.toml"), "").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("none"), inside.join("dangling")).unwrap();
        for path in ["link/x.toml", "link/new", "dangling", "../out", "/etc"] {
            assert!(
                below(&inside, path).unwrap_err().contains("leads out"),
                "{path}"
            );
        }
        assert_eq!(below(&inside, "a/b").unwrap(), inside.join("a/b"));
        assert!(matching(&inside, &["link/*.toml".to_owned()]).is_err());
    }

    #[test]
    fn what_is_no_file_or_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(&folder.path().join("none")), Ok(None));
        assert_eq!(read(folder.path()).unwrap_err(), "it is not a file");
        let large = folder.path().join("large");
        fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert_eq!(read(&large).unwrap_err(), "it is larger than 1024 KiB");
    }
}
