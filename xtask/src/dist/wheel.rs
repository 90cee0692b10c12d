//! The Python wheel: the program as a script, and a small module that finds and runs it.
//!
//! Written by hand instead of by maturin, which would build the program again; see
//! `docs/decisions/0017`.

use std::fs;

use anyhow::{Result, bail};

use super::platform::WheelTag;
use super::{Contents, PACKAGE, SUMMARY, VERSION, copy, pack, write as write_text};
use crate::process::workspace_root;

/// Writes `dodona_agent-VERSION-py3-none-PLATFORM.whl`.
pub(super) fn write(contents: &Contents) -> Result<()> {
    let module = PACKAGE.replace('-', "_");
    let tag = format!("py3-none-{}", platform_tag(contents)?);
    let folder = contents.work.join("wheel");
    let stem = format!("{module}-{VERSION}");
    let info = folder.join(format!("{stem}.dist-info"));

    let scripts = folder.join(format!("{stem}.data/scripts"));
    copy(&contents.binary, &scripts.join(contents.platform.program()))?;
    write_text(
        &folder.join(&module).join("__init__.py"),
        include_str!("files/wheel_init.py"),
    )?;
    write_text(
        &folder.join(&module).join("__main__.py"),
        include_str!("files/wheel_main.py"),
    )?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let to = info.join("licenses").join(licence);
        copy(&workspace_root().join(licence), &to)?;
    }
    let readme = fs::read_to_string(workspace_root().join("README.md"))?;
    write_text(&info.join("METADATA"), &metadata(&readme))?;
    write_text(&info.join("WHEEL"), &wheel_file(&tag))?;
    // `uvx dodona-agent` runs the command with the name of the package.
    let entry = format!("[console_scripts]\n{PACKAGE} = {module}:main\n");
    write_text(&info.join("entry_points.txt"), &entry)?;
    let out = contents.out.join(format!("{stem}-{tag}.whl"));
    pack::wheel(&out, &folder, contents.effort)
}

/// The platform part of the tag. On Linux it names the glibc version that the program needs, so that pip
/// does not install it where it cannot run.
fn platform_tag(contents: &Contents) -> Result<String> {
    match contents.platform.wheel {
        WheelTag::Fixed(tag) => Ok(tag.to_owned()),
        WheelTag::Manylinux { machine } => {
            let glibc = pack::glibc(&contents.binary)?;
            if glibc.is_empty() {
                bail!("{} does not use glibc", contents.binary.display());
            }
            Ok(format!("manylinux_{}_{machine}", glibc.replace('.', "_")))
        }
    }
}

fn metadata(readme: &str) -> String {
    format!(
        "Metadata-Version: 2.4\n\
         Name: {PACKAGE}\n\
         Version: {VERSION}\n\
         Summary: {SUMMARY}\n\
         License-Expression: MIT OR Apache-2.0\n\
         License-File: LICENSE-MIT\n\
         License-File: LICENSE-APACHE\n\
         Keywords: agent,search,notes,mcp,llm\n\
         Classifier: Development Status :: 4 - Beta\n\
         Classifier: Environment :: Console\n\
         Classifier: Programming Language :: Rust\n\
         Requires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\
         \n{readme}"
    )
}

fn wheel_file(tag: &str) -> String {
    format!(
        "Wheel-Version: 1.0\nGenerator: dodona xtask ({VERSION})\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
}
