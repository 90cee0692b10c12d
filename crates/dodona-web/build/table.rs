//! The list of the page's files as Rust source.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Two constants: the `File`s of the page, and the reason if the page is missing.
pub(crate) fn source(built: Result<PathBuf, String>, out: &Path) -> String {
    let (folder, missing) = match built {
        Ok(folder) => (folder, None),
        Err(reason) => (stand_in(out, &reason), Some(reason)),
    };
    let mut files = BTreeMap::new();
    collect(&folder, "", &mut files);
    let mut text = String::from("const FILES: &[File] = &[\n");
    for (name, path) in &files {
        // A compressed file is a field of the entry of its original.
        if !name.ends_with(".br") && !name.ends_with(".gz") {
            entry(&mut text, name, path, &files);
        }
    }
    let _ = writeln!(text, "];\nconst MISSING: Option<&str> = {missing:?};");
    text
}

fn entry(text: &mut String, name: &str, path: &Path, files: &BTreeMap<String, PathBuf>) {
    let body =
        fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let packed = |ending: &str| match files.get(&format!("{name}.{ending}")) {
        Some(path) => format!("Some(include_bytes!({path:?}))"),
        None => "None".to_owned(),
    };
    let _ = writeln!(
        text,
        "    File {{ path: {name:?}, tag: \"\\\"{:016x}\\\"\", plain: include_bytes!({path:?}), \
         gzip: {}, brotli: {} }},",
        hasher.finish(),
        packed("gz"),
        packed("br")
    );
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, PathBuf>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()));
    for entry in entries.flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files);
        } else {
            files.insert(name, path);
        }
    }
}

/// Writes the page that explains why the page is missing.
fn stand_in(out: &Path, reason: &str) -> PathBuf {
    let folder = out.join("stand-in");
    let page = include_str!("../src/missing/index.html").replace("{reason}", &escaped(reason));
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("index.html"), page))
        .and_then(|()| {
            let style = include_str!("../src/missing/missing.css");
            fs::write(folder.join("missing.css"), style)
        });
    written.unwrap_or_else(|error| panic!("cannot write to {}: {error}", folder.display()));
    folder
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
