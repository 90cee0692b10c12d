//! The build script, compiled and run with fake `node` and `npm` programs: where it takes the page from,
//! and the one warning it prints if there is no page.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test, as the test itself would"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// The compiled build script. Kept for the whole run, because compiling takes most of the time.
fn script() -> &'static Path {
    static SCRIPT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = SCRIPT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("build-script");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build/main.rs");
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let status = Command::new(rustc)
            .args(["--edition", "2024", "--crate-name", "build_script", "-o"])
            .arg(&path)
            .arg(source)
            .status()
            .unwrap();
        assert!(status.success(), "the build script does not compile");
        (folder, path)
    });
    path
}

/// A source tree with `web/` and the crate's folder, and a `PATH` with nothing but fake programs.
struct Tree {
    folder: TempDir,
}

struct Outcome {
    /// What cargo would show the user.
    warnings: Vec<String>,
    stderr: String,
    success: bool,
    /// The generated Rust source.
    files: String,
    index: String,
}

impl Tree {
    fn new() -> Self {
        let tree = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in ["bin", "out", "web", "crates/dodona-web"] {
            fs::create_dir_all(tree.path(folder)).unwrap();
        }
        fs::write(tree.path("web/package.json"), "{}").unwrap();
        tree
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// A program that notes each call in `calls` and then runs the given shell commands.
    fn program(self, name: &str, commands: &str) -> Self {
        let path = self.path("bin").join(name);
        let calls = self.path("calls");
        let text = format!(
            "#!/bin/sh\necho {name} \"$@\" >> '{}'\n{commands}\n",
            calls.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn page(self, relative: &str, text: &str) -> Self {
        fs::create_dir_all(self.path(relative)).unwrap();
        fs::write(self.path(relative).join("index.html"), text).unwrap();
        self
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }

    fn run(&self, variables: &[(&str, &str)]) -> Outcome {
        let output = Command::new(script())
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("CARGO_MANIFEST_DIR", self.path("crates/dodona-web"))
            .env("OUT_DIR", self.path("out"))
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let warnings = stdout
            .lines()
            .filter_map(|line| line.strip_prefix("cargo::warning="));
        let files = fs::read_to_string(self.path("out/files.rs")).unwrap_or_default();
        let index = files
            .split("plain: include_bytes!(\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .find(|path| path.ends_with("index.html"))
            .map(|path| fs::read_to_string(path).unwrap());
        Outcome {
            warnings: warnings.map(str::to_owned).collect(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            success: output.status.success(),
            files,
            index: index.unwrap_or_default(),
        }
    }
}

/// The build goes on with the explaining page, and the user reads one sentence.
#[track_caller]
fn assert_explained(outcome: &Outcome, reason: &str) {
    assert!(outcome.success, "{}", outcome.stderr);
    let expected = format!("the page is not part of this build: {reason}");
    assert_eq!(outcome.warnings, [expected]);
    assert!(outcome.files.contains("MISSING: Option<&str> = Some("));
    assert!(
        outcome.index.contains("running without its page"),
        "{}",
        outcome.index
    );
}

const NODE: &str = "echo v20.19.0";

#[test]
fn missing_node_is_one_warning() {
    assert_explained(
        &Tree::new().run(&[]),
        "Node was not found; install Node 20.19 or later in the 20 series, or 22.12 or later",
    );
}

#[test]
fn old_node_is_one_warning_with_its_version() {
    for version in ["18.19.1", "20.18.3", "21.7.0", "22.11.0"] {
        let tree = Tree::new().program("node", &format!("echo v{version}"));
        assert_explained(
            &tree.run(&[]),
            &format!(
                "Node {version} cannot build it; install Node 20.19 or later in the 20 series, or \
                 22.12 or later"
            ),
        );
    }
}

#[test]
fn broken_node_is_one_warning() {
    let tree = Tree::new().program("node", "exit 1");
    let outcome = tree.run(&[]);
    assert_explained(
        &outcome,
        "`node --version` failed; install Node 20.19 or later in the 20 series, or 22.12 or later",
    );
}

#[test]
fn missing_npm_is_one_warning() {
    let outcome = Tree::new().program("node", NODE).run(&[]);
    assert_eq!(outcome.warnings.len(), 1, "{:?}", outcome.warnings);
    let warning = &outcome.warnings[0];
    assert!(warning.contains("`npm` could not be started"), "{warning}");
}

#[test]
fn unreachable_registry_is_one_warning() {
    let npm = "echo 'npm error code ENOTFOUND' >&2; echo 'npm error network failed' >&2; exit 1";
    let tree = Tree::new().program("node", NODE).program("npm", npm);
    assert_explained(
        &tree.run(&[]),
        "npm could not reach its registry (ENOTFOUND); connect to the network, or set \
         DODONA_WEB_DIST to a built page",
    );
    assert!(
        tree.calls().contains("npm ci --ignore-scripts"),
        "{}",
        tree.calls()
    );
}

#[test]
fn other_npm_failure_shows_its_output() {
    let npm = "echo 'npm error lock file and manifest differ' >&2; exit 1";
    let outcome = Tree::new()
        .program("node", NODE)
        .program("npm", npm)
        .run(&[]);
    let warnings = outcome.warnings;
    assert_eq!(
        warnings[0],
        "npm ci: npm error lock file and manifest differ"
    );
    assert!(warnings[1].contains("`npm ci` failed"), "{warnings:?}");
}

#[test]
fn prebuilt_page_needs_no_node() {
    let tree = Tree::new()
        .program("node", NODE)
        .program("npm", "exit 1")
        .page("crates/dodona-web/prebuilt", "<p>prebuilt");
    let outcome = tree.run(&[]);
    assert_eq!(outcome.warnings, Vec::<String>::new());
    assert_eq!(outcome.index, "<p>prebuilt");
    assert!(outcome.files.contains("MISSING: Option<&str> = None"));
    assert_eq!(tree.calls(), "", "neither node nor npm is called");
}

#[test]
fn mode_build_ignores_the_prebuilt_page() {
    let tree = Tree::new().page("crates/dodona-web/prebuilt", "<p>prebuilt");
    let outcome = tree.run(&[("DODONA_WEB", "build")]);
    assert!(outcome.warnings[0].contains("Node was not found"));
}

#[test]
fn given_folder_comes_before_the_prebuilt_page() {
    let tree = Tree::new()
        .page("crates/dodona-web/prebuilt", "<p>prebuilt")
        .page("given", "<p>given");
    let given = tree.path("given").display().to_string();
    let outcome = tree.run(&[("DODONA_WEB_DIST", &given)]);
    assert_eq!(outcome.warnings, Vec::<String>::new());
    assert_eq!(outcome.index, "<p>given");
}

#[test]
fn given_folder_without_page_is_one_warning() {
    let tree = Tree::new();
    let given = tree.path("nowhere").display().to_string();
    assert_explained(
        &tree.run(&[("DODONA_WEB_DIST", &given)]),
        &format!("DODONA_WEB_DIST has no index.html: `{given}`"),
    );
    assert_explained(
        &tree.run(&[("DODONA_WEB_DIST", "web/dist")]),
        "DODONA_WEB_DIST must be an absolute path, not `web/dist`",
    );
}

#[test]
fn required_page_fails_the_build() {
    let outcome = Tree::new().run(&[("DODONA_WEB", "require")]);
    assert!(!outcome.success);
    let expected =
        "the page is required (DODONA_WEB=require), but it is missing: Node was not found";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
}

#[test]
fn skipped_page_is_no_warning() {
    let outcome = Tree::new().run(&[("DODONA_WEB", "skip")]);
    assert!(outcome.success);
    assert_eq!(outcome.warnings, Vec::<String>::new());
    assert!(outcome.index.contains("DODONA_WEB=skip"));
}
