//! `cargo xtask dist`: the packages of a release, all from one build of the program.

mod archive;
mod build;
mod check;
mod installer;
mod npm;
mod pack;
mod platform;
mod source;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{self, workspace_root};
use build::Build;
use pack::Effort;
use platform::Platform;

pub(crate) use check::check;

/// The name in package registries. The command is `dodona`; see `docs/decisions/0016`.
const PACKAGE: &str = "dodona-agent";

/// All crates share the version of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The largest size that a package should have. Users wait for the download before their first answer.
const MAX_BYTES: u64 = 22_000_000;

const SUMMARY: &str = "A programmable, local-first agent server that answers with citations";

const HELP: &str = "\
Builds the packages of a release from one build of the program: an archive, a Python wheel, npm packages,
install.sh, a source archive and SHA256SUMS.

Usage: cargo xtask dist [--profile NAME] [--binary PATH [--page DIR]] [--out DIR] [--base-url URL]

  --profile NAME  cargo profile of the build [default: dist]
  --binary PATH   package this program instead of building one
  --page DIR      built page for the source archive; without it, --binary produces no source archive
  --out DIR       directory for the packages, emptied first [default: target/dist-packages]
  --base-url URL  default download address in install.sh [env: DODONA_BASE_URL]
  --check         package the program of the tests or --binary, install every package and use it
  --help          print this text";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Options {
    profile: String,
    binary: Option<PathBuf>,
    page: Option<PathBuf>,
    out: Option<PathBuf>,
    base_url: String,
    check: bool,
}

/// Everything that the packages are made of.
struct Contents {
    platform: &'static Platform,
    binary: PathBuf,
    /// Folder with the built page, if it is known.
    page: Option<PathBuf>,
    /// Default download address in `install.sh`; empty for none.
    base_url: String,
    effort: Effort,
    /// Folder for intermediate files.
    work: PathBuf,
    /// Folder for the packages.
    out: PathBuf,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if arguments
        .iter()
        .any(|argument| argument == "--help" || argument == "-h")
    {
        println!("{HELP}");
        return Ok(());
    }
    let options = parse(arguments)?;
    let given = options.binary.map(|binary| Build {
        binary,
        page: options.page,
    });
    if options.check {
        return match given {
            Some(build) => check::check_build(&build),
            None => check(),
        };
    }
    let platform = platform::host()?;
    let build = match given {
        Some(build) => build,
        None => build::release(&options.profile)?,
    };
    check_binary(&build.binary)?;
    let target = build::target_directory()?;
    let contents = Contents {
        platform,
        binary: build.binary,
        page: build.page,
        base_url: options.base_url,
        effort: Effort::Best,
        work: target.join("dist-work"),
        out: options.out.unwrap_or_else(|| target.join("dist-packages")),
    };
    package(&contents)?;
    for (name, bytes) in listing(&contents.out)? {
        println!("{:>10.1} MB  {name}", bytes as f64 / 1e6);
        if bytes > MAX_BYTES {
            println!(
                "warning: {name} is larger than {} MB",
                MAX_BYTES / 1_000_000
            );
        }
    }
    Ok(())
}

/// Writes all packages to the output folder.
fn package(contents: &Contents) -> Result<()> {
    for folder in [&contents.out, &contents.work] {
        empty(folder)?;
    }
    let staged = archive::stage(contents)?;
    archive::write(contents, &staged)?;
    wheel::write(contents)?;
    npm::write(contents)?;
    match &contents.page {
        Some(page) => source::write(contents, page)?,
        None => println!("no source archive: pass --page DIR with --binary PATH"),
    }
    installer::write(contents)?;
    fs::remove_dir_all(&contents.work).context("cannot remove intermediate files")
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        profile: "dist".to_owned(),
        binary: None,
        page: None,
        out: None,
        base_url: std::env::var("DODONA_BASE_URL").unwrap_or_default(),
        check: false,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let value = arguments.next();
            value.with_context(|| format!("`{argument}` needs a value"))
        };
        match argument.as_str() {
            "--profile" => options.profile = value()?.clone(),
            "--binary" => options.binary = Some(std::path::absolute(value()?)?),
            "--page" => options.page = Some(std::path::absolute(value()?)?),
            "--out" => options.out = Some(std::path::absolute(value()?)?),
            "--check" => options.check = true,
            "--base-url" => options.base_url = value()?.clone(),
            unknown => bail!("unknown argument `{unknown}`; see `cargo xtask dist --help`"),
        }
    }
    if options.page.is_some() && options.binary.is_none() {
        bail!("`--page` needs `--binary`; a build has its own page");
    }
    Ok(options)
}

/// Refuses a program of a different version or without the page.
fn check_binary(binary: &Path) -> Result<()> {
    let shown = binary.display();
    let printed = process::output(std::process::Command::new(binary).arg("--version"))?;
    if printed.trim() != format!("dodona {VERSION}") {
        bail!(
            "{shown} is `{}`, but the workspace has version {VERSION}",
            printed.trim()
        );
    }
    if !build::has_page(binary)? {
        bail!("{shown} was built without the page; install Node and build it again");
    }
    Ok(())
}

/// Creates a folder, or removes everything in it.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Copies a file and creates the folder it goes to. Permissions are kept.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::create_dir_all(to.parent().unwrap_or(to)).and_then(|()| fs::copy(from, to));
    copied
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// Writes a text file and creates the folder it goes to.
fn write(path: &Path, text: &str) -> Result<()> {
    let written =
        fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::write(path, text));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Licences and README, which every package contains.
fn copy_documents(folder: &Path) -> Result<()> {
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
        copy(&workspace_root().join(name), &folder.join(name))?;
    }
    Ok(())
}

/// The files of a folder and their sizes in bytes, sorted by name.
fn listing(folder: &Path) -> Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, entry.metadata()?.len()));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        parse(&arguments)
    }

    #[test]
    fn options_have_defaults() {
        let options = parsed(&[]).unwrap();
        assert_eq!(options.profile, "dist");
        assert_eq!(options.binary, None);
    }

    #[test]
    fn options_are_read() {
        let options = parsed(&["--binary", "/a/dodona", "--page", "/p", "--out", "/o"]).unwrap();
        assert_eq!(options.binary, Some("/a/dodona".into()));
        assert_eq!(options.page, Some("/p".into()));
        assert_eq!(options.out, Some("/o".into()));
    }

    #[test]
    fn rejects_unknown_and_incomplete_arguments() {
        for (arguments, message) in [
            (&["--fast"][..], "unknown argument `--fast`"),
            (&["--out"], "`--out` needs a value"),
            (&["--page", "/p"], "`--page` needs `--binary`"),
        ] {
            let error = parsed(arguments).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
