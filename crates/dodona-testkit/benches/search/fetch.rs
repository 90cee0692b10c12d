//! The data: fetched once, from where everybody gets it, and kept below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Below the target folder, so that `cargo clean` takes it away.
fn cache(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("search")
        .join(name)
}

/// The files of Debian packages, unpacked and not installed: that needs no privileges, and the
/// machine stays as it is.
pub(crate) fn debian(packages: &[&str]) -> Result<PathBuf> {
    kept("debian", packages, |dir| {
        let fetch = Command::new("apt-get")
            .arg("download")
            .args(packages)
            .current_dir(dir)
            .output();
        if !fetch.is_ok_and(|output| output.status.success()) {
            // The package lists of a fresh machine are empty or old.
            run(Command::new("apt-get").args(["update", "--quiet"]))?;
            run(Command::new("apt-get")
                .arg("download")
                .args(packages)
                .current_dir(dir))?;
        }
        for package in files(dir) {
            run(Command::new("dpkg-deb").arg("-x").arg(package).arg(dir))?;
        }
        // Links between pages are left as they are: a page is read once, under its own name.
        run(Command::new("find").arg(dir.join("usr/share")).args([
            "-type", "f", "-name", "*.gz", "-exec", "gzip", "-d", "-f", "{}", "+",
        ]))
    })
}

/// The sources of published crates, each `name-version`.
pub(crate) fn crates(names: &[(&str, &str)]) -> Result<PathBuf> {
    let shown: Vec<String> = names.iter().map(|(n, v)| format!("{n}-{v}")).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    kept("crates", &shown, |dir| {
        let mut manifest =
            "[package]\nname = \"data\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n[dependencies]\n"
                .to_owned();
        for (name, version) in names {
            manifest.push_str(&format!("{name} = \"={version}\"\n"));
        }
        fs::write(dir.join("Cargo.toml"), manifest)?;
        fs::write(dir.join("lib.rs"), "")?;
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        run(Command::new(cargo)
            .args(["vendor", "--quiet", "--versioned-dirs"])
            .current_dir(dir))
    })
    .map(|dir| dir.join("vendor"))
}

/// The sources inside Python wheels, each `name==version`.
pub(crate) fn wheels(names: &[&str]) -> Result<PathBuf> {
    kept("wheels", names, |dir| {
        let pip = [
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
        ];
        run(Command::new("python3")
            .args(pip)
            .args(names)
            .current_dir(dir))?;
        for wheel in files(dir) {
            run(Command::new("python3")
                .args(["-m", "zipfile", "-e"])
                .arg(wheel)
                .arg(dir.join("unpacked")))?;
        }
        Ok(())
    })
    .map(|dir| dir.join("unpacked"))
}

/// Makes a folder with `fill`, unless one for the same names is there. The list of names is
/// written last: a folder without it is half made.
fn kept(kind: &str, names: &[&str], fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let (dir, list) = (cache(kind), names.join("\n"));
    let mark = dir.join("complete");
    if fs::read_to_string(&mark).is_ok_and(|known| known == list) {
        return Ok(dir);
    }
    eprintln!("fetching {kind}: {}", names.join(" "));
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    fill(&dir).with_context(|| format!("could not fetch the {kind} data of this bench"))?;
    fs::write(mark, list)?;
    Ok(dir)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("could not start {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// The files directly in a folder, sorted.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found
}

/// Every text file below a folder with one of these endings, as path below it and text; sorted.
pub(crate) fn texts(root: &Path, wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else {
                continue;
            };
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let below = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
                if wanted(&below)
                    && let Ok(text) = fs::read_to_string(&path)
                {
                    found.push((below.into_owned(), text));
                }
            }
        }
    }
    found.sort();
    found
}
