//! Python libraries to compare ourselves with, installed where nothing else sees them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::target_directory;

/// What to do if the system lacks what we need.
const HINT: &str = "install Python 3 with its venv module, on Debian and Ubuntu with \
                    `apt-get install python3 python3-venv`, or run `cargo xtask test packages`";

/// What to do if a package cannot be had.
const NO_INDEX: &str = "pip could not get them; it needs a package index, and takes its address \
                        from its own settings (`pip config list`)";

/// A Python with some packages, in a virtual environment below the target directory.
///
/// ```no_run
/// use dodona_testkit::Python;
/// use serde_json::json;
///
/// let python = Python::with(&["simpleeval==1.0.8"])?;
/// let mut peer = python.lines("import sys\nfor line in sys.stdin: print(line, end='', flush=True)")?;
/// assert_eq!(peer.ask(&json!({"a": 1}))?, json!({"a": 1}));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Debug)]
pub struct Python {
    interpreter: PathBuf,
}

impl Python {
    /// Makes the environment, or finds the one that an earlier run made. Packages are named as pip
    /// wants them, with their exact versions (`jinja2==3.1.6`); pip's own settings say from where.
    ///
    /// # Errors
    ///
    /// If Python, its venv module or a package cannot be had; the text says what to install.
    pub fn with(packages: &[&str]) -> Result<Self> {
        for package in packages {
            ensure!(package.contains("=="), "`{package}` names no exact version");
        }
        let folder = target_directory()?.join("python");
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
        Ok(Self {
            interpreter: interpreter(&home),
        })
    }

    /// The files of a package, unpacked and not installed: for what it carries, without what it
    /// needs. It is named as pip wants it, with its exact version.
    ///
    /// # Errors
    ///
    /// If Python, its venv module or the package cannot be had; the text says what to install.
    pub fn unpack(package: &str) -> Result<PathBuf> {
        ensure!(package.contains("=="), "`{package}` names no exact version");
        let folder = target_directory()?.join("python");
        fs::create_dir_all(&folder)?;
        let home = folder.join(format!("{}-unpacked", slug(&[package])));
        let lock = File::create(home.with_extension("lock"))?;
        lock.lock().context("waiting for another test to install")?;
        let (files, ready) = (home.join("files"), home.join("ready"));
        if !ready.exists() {
            install(&home, &[])?;
            unpack(&home, package, &files)?;
            File::create(&ready)?;
        }
        Ok(files)
    }

    /// The interpreter, to be given a script.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.env("PYTHONUTF8", "1").env("PYTHONHASHSEED", "0");
        command
    }

    /// Runs a program that answers each line with a line, all of them JSON.
    ///
    /// # Errors
    ///
    /// If the interpreter does not start.
    pub fn lines(&self, program: &str) -> Result<Lines> {
        let mut child = self
            .command()
            .args(["-u", "-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting Python")?;
        let input = child.stdin.take().context("Python has no input")?;
        let output = child.stdout.take().context("Python has no output")?;
        Ok(Lines {
            child,
            input: Some(BufWriter::new(input)),
            output: BufReader::new(output),
        })
    }
}

/// A program that answers each line with a line. It ends when this is dropped.
#[derive(Debug)]
pub struct Lines {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
}

impl Lines {
    /// One question, one answer.
    ///
    /// # Errors
    ///
    /// If the program has ended, or answers with something that is no JSON.
    pub fn ask(&mut self, question: &Value) -> Result<Value> {
        let input = self.input.as_mut().context("the program has ended")?;
        serde_json::to_writer(&mut *input, question)?;
        input.write_all(b"\n")?;
        input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("the program answered {line:?}"))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // Without input it ends by itself; a program that does not is stopped.
        self.input = None;
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A folder name for a list of packages.
fn slug(packages: &[&str]) -> String {
    let mut names = packages.to_vec();
    names.sort_unstable();
    let joined = names.join("_").replace("==", "-");
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    joined.chars().map(plain).collect()
}

fn interpreter(home: &Path) -> PathBuf {
    if cfg!(windows) {
        home.join("Scripts").join("python.exe")
    } else {
        home.join("bin").join("python3")
    }
}

fn install(home: &Path, packages: &[&str]) -> Result<()> {
    // What an interrupted run left behind.
    if home.exists() {
        fs::remove_dir_all(home)?;
    }
    let mut venv = Command::new("python3");
    run(venv.args(["-m", "venv"]).arg(home)).context(HINT)?;
    if packages.is_empty() {
        return Ok(());
    }
    let mut pip = Command::new(interpreter(home));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    run(pip.args(packages)).context(NO_INDEX)
}

fn unpack(home: &Path, package: &str, files: &Path) -> Result<()> {
    let wheels = home.join("wheels");
    let python = |arguments: &[&str]| {
        let mut command = Command::new(interpreter(home));
        command.args(arguments);
        command
    };
    let quiet = ["--quiet", "--disable-pip-version-check"];
    let mut download = python(&["-m", "pip", "download", "--no-deps"]);
    let download = download.args(quiet).arg("--dest").arg(&wheels);
    run(download.arg(package)).context(NO_INDEX)?;
    for wheel in fs::read_dir(&wheels)? {
        let mut extract = python(&["-m", "zipfile", "--extract"]);
        run(extract.arg(wheel?.path()).arg(files))?;
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("running {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} failed: {}", said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_for_its_packages_in_any_order() {
        let expected = "jinja2-3_1_6_simpleeval-1_0_8";
        assert_eq!(slug(&["simpleeval==1.0.8", "jinja2==3.1.6"]), expected);
        assert_eq!(slug(&["jinja2==3.1.6", "simpleeval==1.0.8"]), expected);
    }

    #[test]
    fn a_package_without_a_version_is_refused() {
        let error = Python::with(&["jinja2"]).unwrap_err();
        assert_eq!(error.to_string(), "`jinja2` names no exact version");
    }
}
