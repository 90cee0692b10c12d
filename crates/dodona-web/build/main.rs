//! Builds the page into `OUT_DIR` and writes down which files it has.
//!
//! A build without Node, or without a registry to fetch packages from, gets a page that says what is
//! missing instead of failing: the server is useful without it. `DODONA_WEB=skip` leaves the page out,
//! `DODONA_WEB=require` makes what would be a warning an error.

mod page;
mod table;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// What the page is made of, below `web/`. Tests and docs are not among it: a change there builds nothing.
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
    let web = variable("CARGO_MANIFEST_DIR").join("../../web");
    let out = variable("OUT_DIR");
    println!("cargo::rerun-if-env-changed=DODONA_WEB");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/missing");
    for source in SOURCES {
        let path = web.join(source);
        // A path that is not there would make every build run this again.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let wish = env::var("DODONA_WEB").unwrap_or_default();
    let built = match wish.as_str() {
        "skip" => Err("it was left out of this build (DODONA_WEB=skip)".to_owned()),
        _ => page::build(&web, &out.join("page")),
    };
    if let Err(reason) = &built {
        assert!(
            wish != "require",
            "the page could not be built: {reason} (and DODONA_WEB=require says that it must be)"
        );
        if wish != "skip" {
            println!("cargo::warning=the page is not part of this build: {reason}");
        }
    }
    write(&out.join("files.rs"), &table::source(built, &out));
}

fn variable(name: &str) -> PathBuf {
    let value = env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name} for build scripts"));
    value.into()
}

fn write(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
