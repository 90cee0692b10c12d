//! Programs from npm to compare ourselves with, installed where nothing else sees them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::target_directory;

/// What to do if the system lacks what we need.
const HINT: &str = "install Node with npm, on Debian and Ubuntu with `apt-get install npm`, or run \
                    `cargo xtask test packages`";

/// The oldest Node that the packages run on.
const MAJOR: u32 = 20;

/// The Node that is installed beside the packages where the system's is older: npm has it too.
const NEWER: &str = "node@22.21.0";

/// What npm calls its lock file.
const LOCK: &str = "package-lock.json";

/// A Node with some packages, in a folder below the target directory.
#[derive(Debug)]
pub struct Node {
    home: PathBuf,
}

impl Node {
    /// Installs the packages, or finds what an earlier run installed. They are named as npm wants
    /// them, with their exact versions (`left-pad@1.3.0`); npm's own settings say from where.
    ///
    /// # Errors
    ///
    /// If npm or a package cannot be had; the text says what to install.
    pub fn with(packages: &[&str]) -> Result<Self> {
        for package in packages {
            let version = package.rsplit_once('@').map_or("", |(_, version)| version);
            let is_exact = version.split('.').count() >= 3;
            ensure!(is_exact, "`{package}` names no exact version");
        }
        let folder = target_directory()?.join("node");
        fs::create_dir_all(&folder)?;
        let home = folder.join(slug(packages));
        // Tests run in several processes at once; one of them installs.
        let lock = File::create(home.with_extension("lock"))?;
        lock.lock().context("waiting for another test to install")?;
        let ready = home.join("ready");
        if !ready.exists() {
            install(&home, packages)?;
            File::create(&ready)?;
        }
        Ok(Self { home })
    }

    /// Installs what the lock file of a folder names, or finds what an earlier run installed.
    ///
    /// # Errors
    ///
    /// If npm or a package cannot be had; the text says what to install.
    pub fn locked(project: &Path) -> Result<Self> {
        Self::locked_on(project, MAJOR)
    }

    /// The same for packages that need at least this Node; where the system's is older, a newer
    /// one is installed beside them.
    ///
    /// # Errors
    ///
    /// If npm or a package cannot be had; the text says what to install.
    pub fn locked_on(project: &Path, major: u32) -> Result<Self> {
        let name = project.file_name().context("the folder has no name")?;
        let folder = target_directory()?.join("node");
        fs::create_dir_all(&folder)?;
        let home = folder.join(name);
        let lock = File::create(home.with_extension("lock"))?;
        lock.lock().context("waiting for another test to install")?;
        // What was installed is what the lock file said then.
        let (wanted, ready) = (fs::read(project.join(LOCK))?, home.join("ready"));
        if fs::read(&ready).is_ok_and(|installed| installed == wanted) {
            return Ok(Self { home });
        }
        fresh(&home)?;
        for file in ["package.json", LOCK] {
            fs::copy(project.join(file), home.join(file))?;
        }
        // Not `ci`: it refuses a lock file that leaves out what other platforms would need.
        npm(&home, &["install", "--no-save", "--ignore-scripts"], &[])?;
        if system_major().unwrap_or(0) < major {
            npm(&home, &["install", "--no-save"], &[NEWER])?;
        }
        fs::write(ready, wanted)?;
        Ok(Self { home })
    }

    /// Node, to be given a script; packages are found from its working directory.
    pub fn command(&self) -> Command {
        let own = self.home.join("node_modules/.bin/node");
        let program = if own.exists() { own } else { "node".into() };
        let mut command = Command::new(program);
        command.current_dir(&self.home);
        command
    }
}

/// A folder name for a list of packages.
fn slug(packages: &[&str]) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    packages.join("_").chars().map(plain).collect()
}

fn install(home: &Path, packages: &[&str]) -> Result<()> {
    fresh(home)?;
    // Without it npm would look for a project further up.
    fs::write(home.join("package.json"), "{ \"private\": true }\n")?;
    let mut packages = packages.to_vec();
    packages.extend((system_major().unwrap_or(0) < MAJOR).then_some(NEWER));
    npm(home, &["install"], &packages)
}

/// An empty folder, whatever an interrupted run left behind.
fn fresh(home: &Path) -> Result<()> {
    if home.exists() {
        fs::remove_dir_all(home)?;
    }
    Ok(fs::create_dir_all(home)?)
}

fn npm(home: &Path, verb: &[&str], packages: &[&str]) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.current_dir(home)
        .args(verb)
        .args(["--silent", "--no-audit", "--no-fund"])
        .args(packages);
    let output = npm.output().context(HINT)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{npm:?} failed: {}", said.trim());
    }
    Ok(())
}

/// The first number of the version of the system's Node.
fn system_major() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version
        .trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_an_exact_version_is_refused() {
        for package in [
            "left-pad",
            "@scope/name",
            "@scope/name@1",
            "left-pad@latest",
        ] {
            let error = Node::with(&[package]).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("`{package}` names no exact version")
            );
        }
    }
}
