//! `install.sh` and `SHA256SUMS`.

use anyhow::{Result, bail};

use super::platform::PLATFORMS;
use super::{Contents, VERSION, listing, pack, write as write_text};

/// Writes both. This comes last, because the sums cover all other files.
pub(super) fn write(contents: &Contents) -> Result<()> {
    let script = script(&contents.base_url)?;
    let path = contents.out.join("install.sh");
    write_text(&path, &script)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        use anyhow::Context;

        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).context("cannot make install.sh executable")?;
    }
    let names: Vec<String> = listing(&contents.out)?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let sums = pack::sums(&contents.out, &names)?;
    write_text(&contents.out.join("SHA256SUMS"), &sums)
}

fn script(base_url: &str) -> Result<String> {
    // The address becomes part of a quoted shell word.
    if base_url.contains(|c: char| c == '\'' || c.is_whitespace() || c.is_control()) {
        bail!("invalid base URL `{base_url}`: quotes and spaces are not allowed");
    }
    let targets = PLATFORMS.iter().filter(|platform| !platform.is_windows());
    let targets: Vec<&str> = targets.map(|platform| platform.target).collect();
    Ok(include_str!("files/install.sh")
        .replace("@VERSION@", VERSION)
        .replace("@TARGETS@", &targets.join(" "))
        .replace("@BASE_URL@", base_url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_to_fill_in() {
        let script = script("https://example.org/dodona").unwrap();
        assert!(script.contains("default_base_url='https://example.org/dodona'"));
        let placeholders = script
            .split('@')
            .filter(|part| part.starts_with(char::is_uppercase));
        assert_eq!(placeholders.count(), 0, "{script}");
    }

    #[test]
    fn an_address_with_quotes_is_rejected() {
        assert!(script("https://example.org/'; rm -rf ~; '").is_err());
    }
}
