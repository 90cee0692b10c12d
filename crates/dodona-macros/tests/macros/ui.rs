//! Compiles the programs in `tests/ui`, each of which must fail, and compares the compiler's messages.
//!
//! The programs are compiled with the libraries that this test was built with. `trybuild` would
//! build all dependencies a second time, SQLite included.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates that the programs use.
const EXTERNS: [&str; 4] = ["dodona_plugin", "futures_util", "schemars", "serde"];

/// Run with `UPDATE=1` to rewrite the expected messages.
#[test]
fn invalid_methods_are_rejected_with_the_expected_form() {
    let libraries = built_libraries();
    let mut programs: Vec<PathBuf> = std::fs::read_dir("tests/ui")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    programs.sort();
    assert!(!programs.is_empty(), "tests/ui contains no programs");
    let mut differing = Vec::new();
    for program in programs {
        let messages = compile(&program, &libraries);
        let expected_file = program.with_extension("stderr");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&expected_file, &messages).unwrap();
        }
        let expected = std::fs::read_to_string(&expected_file).unwrap_or_default();
        if messages != expected {
            differing.push(format!(
                "{}: expected\n{expected}\nfound\n{messages}",
                program.display()
            ));
        }
    }
    assert!(
        differing.is_empty(),
        "{}\nhint: check the messages, then run this test with UPDATE=1",
        differing.join("\n")
    );
}

/// The library files of `EXTERNS` that cargo built for this test.
///
/// `--workspace` selects the features that a test of the whole workspace uses, so that nothing is
/// built again.
fn built_libraries() -> BTreeMap<&'static str, PathBuf> {
    let output = Command::new("cargo")
        .args(["test", "--workspace", "--test", "macros", "--no-run"])
        .arg("--message-format=json")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut libraries = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let file = message["filenames"][0].as_str().unwrap_or_default();
        if let Some(name) = EXTERNS.into_iter().find(|known| *known == name)
            && file.ends_with(".rlib")
        {
            libraries.insert(name, PathBuf::from(file));
        }
    }
    assert_eq!(libraries.len(), EXTERNS.len(), "{libraries:?}");
    libraries
}

/// Compiles a program that must fail and returns the compiler's messages.
fn compile(program: &Path, libraries: &BTreeMap<&'static str, PathBuf>) -> String {
    let folder = libraries["dodona_plugin"].parent().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("rustc");
    command
        .args(["--edition=2024", "--emit=metadata", "--crate-type=bin"])
        .arg("--out-dir")
        .arg(directory.path())
        .arg("-L")
        .arg(format!("dependency={}", folder.display()));
    for (name, library) in libraries {
        command
            .arg("--extern")
            .arg(format!("{name}={}", library.display()));
    }
    let output = command.arg(program).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success(),
        "{} compiles, but must not: {messages}",
        program.display()
    );
    without_machine_paths(&messages)
}

/// Removes the closing summary, and notes, which quote files by their path on this machine.
fn without_machine_paths(messages: &str) -> String {
    let summary = [
        "error: aborting",
        "For more information",
        "Some errors have",
    ];
    let mut in_note = false;
    let mut kept = Vec::new();
    for line in messages.lines() {
        let starts_part = line.is_empty() || line.starts_with(|first: char| first.is_alphabetic());
        if starts_part {
            in_note = line.starts_with("note: ");
        }
        if !in_note && !summary.iter().any(|start| line.starts_with(start)) {
            kept.push(line.trim_end());
        }
    }
    format!("{}\n", kept.join("\n").trim_end())
}
