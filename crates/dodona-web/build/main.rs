//! Puts the page into the program: writes the list of its files as Rust source to `OUT_DIR`.
//!
//! The page comes from the first source that applies:
//!
//! 1. the folder in `DODONA_WEB_DIST`,
//! 2. `prebuilt/` in this crate, which source archives contain,
//! 3. Vite, run with Node on the source in `web/`.
//!
//! If none works, the build prints one warning and the program contains a page that explains what is
//! missing: the server is useful without the page. `DODONA_WEB=skip` leaves the page out,
//! `DODONA_WEB=build` ignores `prebuilt/`, and `DODONA_WEB=require` turns the warning into an error.

mod node;
mod page;
mod table;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Files and folders in `web/` that the page is built from. A change to tests or docs builds nothing.
const SOURCES: &[&str] = &[
    "src",
    "public",
    "vite",
    "index.html",
    "vite.config.ts",
    "svelte.config.js",
    "tsconfig.json",
    "package.json",
    "package-lock.json",
];

fn main() {
    let package = variable("CARGO_MANIFEST_DIR");
    let out = variable("OUT_DIR");
    println!("cargo::rerun-if-env-changed=DODONA_WEB");
    println!("cargo::rerun-if-env-changed=DODONA_WEB_DIST");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/missing");

    let mode = env::var("DODONA_WEB").unwrap_or_default();
    let found = match mode.as_str() {
        "skip" => Err("it was left out of this build (DODONA_WEB=skip)".to_owned()),
        mode => find(&package, &out, mode),
    };
    if let Err(reason) = &found {
        assert!(
            mode != "require",
            "the page is required (DODONA_WEB=require), but it is missing: {reason}"
        );
        if mode != "skip" {
            println!("cargo::warning=the page is not part of this build: {reason}");
        }
    }
    write(&out.join("files.rs"), &table::source(found, &out));
}

/// The folder with the built page. The error is a sentence for the user without a full stop.
fn find(package: &Path, out: &Path, mode: &str) -> Result<PathBuf, String> {
    if let Some(given) = env::var_os("DODONA_WEB_DIST").filter(|given| !given.is_empty()) {
        // Cargo runs build scripts in the package's folder, so a relative path would not mean what
        // the user sees in the shell.
        let folder = PathBuf::from(given);
        if !folder.is_absolute() {
            let shown = folder.display();
            return Err(format!(
                "DODONA_WEB_DIST must be an absolute path, not `{shown}`"
            ));
        }
        return prebuilt(&folder)
            .ok_or_else(|| format!("DODONA_WEB_DIST has no index.html: `{}`", folder.display()));
    }
    if mode != "build"
        && let Some(folder) = prebuilt(&package.join("prebuilt"))
    {
        return Ok(folder);
    }
    let web = package.join("../../web");
    for source in SOURCES {
        watch(&web.join(source));
    }
    page::build(&web, &out.join("page"))
}

/// The folder, if it holds a built page.
fn prebuilt(folder: &Path) -> Option<PathBuf> {
    watch(folder);
    folder
        .join("index.html")
        .is_file()
        .then(|| folder.to_owned())
}

/// Runs this script again when the path changes. Cargo treats a missing path as changed and would run
/// the script in every build, so missing paths are left out.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn variable(name: &str) -> PathBuf {
    let value = env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name} for build scripts"));
    value.into()
}

fn write(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
