//! What notes were.

use similar::TextDiff;

use super::change::{Edit, version_of};
use super::error::WriteError;
use super::moving::read;
use super::scribe::Scribe;
use super::types::Difference;

/// How far back a version is looked for.
const DEEP: u32 = 10_000;

/// The fewest characters of a version that name it.
const SHORTEST: usize = 8;

/// The whole name of a version of a note that somebody names by its beginning.
pub(super) async fn version(
    scribe: &Scribe,
    path: &str,
    named: &str,
) -> Result<String, WriteError> {
    let unknown = || WriteError::NoVersion {
        path: path.to_owned(),
        version: named.chars().take(64).collect(),
    };
    if named.len() < SHORTEST {
        return Err(unknown());
    }
    let history = scribe.ledger.history(path, DEEP).await?;
    let versions = history
        .into_iter()
        .flat_map(|(_, edit)| [edit.after, edit.before])
        .flatten();
    versions
        .into_iter()
        .find(|version| version.starts_with(named))
        .ok_or_else(unknown)
}

/// The bytes of a version.
pub(super) async fn content(
    scribe: &Scribe,
    path: &str,
    version: &str,
) -> Result<Vec<u8>, WriteError> {
    let mut found = scribe.ledger.contents(vec![version.to_owned()]).await?;
    found.remove(version).ok_or_else(|| WriteError::NoVersion {
        path: path.to_owned(),
        version: version.to_owned(),
    })
}

/// What is there now.
async fn present(scribe: &Scribe, path: &str) -> Result<Option<Vec<u8>>, WriteError> {
    let (root, path) = (scribe.root.clone(), path.to_owned());
    crate::library::blocking(move || read(&root, &path))
        .await
        .map_err(|_| WriteError::Lost)?
}

/// What is other between two versions of a note.
pub(super) async fn diff(
    scribe: &Scribe,
    path: &str,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Difference, WriteError> {
    let (to, new) = match to {
        Some(named) => {
            let version = version(scribe, path, named).await?;
            let bytes = content(scribe, path, &version).await?;
            (Some(version), Some(bytes))
        }
        None => {
            let bytes = present(scribe, path).await?;
            (bytes.as_deref().map(version_of), bytes)
        }
    };
    let from = match from {
        Some(named) => Some(version(scribe, path, named).await?),
        None => previous(scribe, path, to.as_deref()).await?,
    };
    let old = match &from {
        Some(version) => Some(content(scribe, path, version).await?),
        None => None,
    };
    if old.is_none() && new.is_none() {
        return Err(WriteError::Missing {
            path: path.to_owned(),
        });
    }
    let text =
        |bytes: Option<Vec<u8>>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let (old, new) = (text(old), text(new));
    let diff = TextDiff::from_lines(&old, &new)
        .unified_diff()
        .context_radius(3)
        .header(
            &heading(path, from.as_deref()),
            &heading(path, to.as_deref()),
        )
        .to_string();
    Ok(Difference { from, to, diff })
}

fn heading(path: &str, version: Option<&str>) -> String {
    let version = version.map_or("nothing", |version| version.get(..12).unwrap_or(version));
    format!("{path} {version}")
}

/// The version that a version took the place of.
async fn previous(
    scribe: &Scribe,
    path: &str,
    version: Option<&str>,
) -> Result<Option<String>, WriteError> {
    let history = scribe.ledger.history(path, DEEP).await?;
    let became = |(_, edit): &(_, Edit)| edit.after.as_deref() == version;
    let Some(at) = history.iter().position(became) else {
        return Ok(None);
    };
    let (_, edit) = &history[at];
    match (&edit.before, &edit.origin, history.get(at + 1)) {
        (Some(before), ..) => Ok(Some(before.clone())),
        // A note that moved was somewhere else before.
        (None, Some(_), Some((_, elsewhere))) => Ok(elsewhere.after.clone()),
        _ => Ok(None),
    }
}
