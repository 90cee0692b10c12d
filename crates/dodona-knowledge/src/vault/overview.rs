//! A note that lists the notes of a folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::change::Planned;
use super::error::WriteError;
use super::moving::read;
use super::path::NotePath;
use super::rewrite::encoded;
use super::text::compose;
use crate::parse::markdown;

/// What stands around the list, so that it is found again and nothing else is touched.
const BEGIN: &str = "<!-- index: begin -->";
const END: &str = "<!-- index: end -->";

/// How much of a note's first paragraph is shown.
const SUMMARY: usize = 200;

/// Whether a note's first words are listed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summaries {
    Shown,
    Left,
}

/// The list to write.
pub(super) struct Overview {
    /// Where it is written.
    pub(super) path: NotePath,
    /// The folder, without a `/` at its end; empty for the root.
    pub(super) folder: String,
    pub(super) title: Option<String>,
    pub(super) summaries: Summaries,
    /// Path and title of every note in the folder and below it.
    pub(super) notes: Vec<(String, String)>,
}

impl Overview {
    /// What to do to the file.
    pub(super) fn plan(&self, root: &Path) -> Result<Vec<Planned>, WriteError> {
        let path = self.path.as_str();
        self.path.locate(root, None)?;
        let before = read(root, path)?;
        let not_text = || WriteError::NotText {
            path: path.to_owned(),
        };
        let existing = match &before {
            Some(bytes) => Some(std::str::from_utf8(bytes).map_err(|_| not_text())?),
            None => None,
        };
        let list = self.list(root)?;
        let after = match existing {
            None => {
                let title = self.title.clone().unwrap_or_else(|| self.name());
                format!("# {title}\n\n{list}")
            }
            Some(text) => {
                let body = markdown::frontmatter_extent(text);
                let written = with_list(&text[body..].replace("\r\n", "\n"), &list);
                let title = self.title.as_deref();
                compose(Some(text), &written, title).map_err(|_| {
                    WriteError::TitleInFrontmatter {
                        path: path.to_owned(),
                    }
                })?
            }
        };
        Ok(vec![Planned {
            path: path.to_owned(),
            before,
            after: Some(after.into_bytes()),
            origin: None,
        }])
    }

    fn name(&self) -> String {
        let name = self.folder.rsplit('/').next().unwrap_or_default();
        if name.is_empty() { "Index" } else { name }.to_owned()
    }

    /// The notes of the folder itself, then those of each folder below it.
    fn list(&self, root: &Path) -> Result<String, WriteError> {
        let mut folders: BTreeMap<&str, Vec<(&str, &str, &str)>> = BTreeMap::new();
        for (path, title) in &self.notes {
            let below = path.strip_prefix(&self.folder).unwrap_or(path);
            let below = below.trim_start_matches('/');
            let folder = below.rsplit_once('/').map_or("", |(folder, _)| folder);
            if path != self.path.as_str() {
                folders
                    .entry(folder)
                    .or_default()
                    .push((below, title, path));
            }
        }
        let mut list = format!("{BEGIN}\n\n");
        for (folder, notes) in folders {
            if !folder.is_empty() {
                let _ = write!(list, "## {folder}\n\n");
            }
            for (below, title, path) in notes {
                let _ = write!(list, "- [{}]({})", label(title), encoded(below));
                if self.summaries == Summaries::Shown
                    && let Some(summary) = summary(root, path)?
                {
                    let _ = write!(list, ": {summary}");
                }
                list.push('\n');
            }
            list.push('\n');
        }
        list.push_str(END);
        list.push('\n');
        Ok(list)
    }
}

/// A text with the list in the place of the one that is there, or below everything.
fn with_list(text: &str, list: &str) -> String {
    let begin = text.find(BEGIN);
    let end = begin.and_then(|begin| text[begin..].find(END).map(|end| begin + end + END.len()));
    match (begin, end) {
        (Some(begin), Some(end)) => {
            format!("{}{}{}", &text[..begin], list.trim_end(), &text[end..])
        }
        _ if text.trim().is_empty() => list.to_owned(),
        _ => format!("{}\n\n{list}", text.trim_end()),
    }
}

/// A title as the text of a link.
fn label(title: &str) -> String {
    let mut label = String::with_capacity(title.len());
    for c in title.chars() {
        if matches!(c, '[' | ']' | '\\' | '`') {
            label.push('\\');
        }
        label.push(if c.is_control() { ' ' } else { c });
    }
    label
}

/// The beginning of a note's first paragraph, as plain text.
fn summary(root: &Path, path: &str) -> Result<Option<String>, WriteError> {
    if NotePath::parse(path, None).is_err() {
        return Ok(None);
    }
    let bytes = read(root, path)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let prose = markdown::first_paragraph(&text).map(|text| {
        let end = text.floor_char_boundary(SUMMARY);
        match end < text.len() {
            true => format!("{}…", label(text[..end].trim_end())),
            false => label(&text),
        }
    });
    Ok(prose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_the_place_of_the_one_that_was_there() {
        let list = format!("{BEGIN}\nnew\n{END}\n");
        assert_eq!(with_list("", &list), list);
        assert_eq!(with_list("mine\n", &list), format!("mine\n\n{list}"));
        let again = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
        let expected = format!("above\n{BEGIN}\nnew\n{END}\nbelow\n");
        assert_eq!(with_list(&again, &list), expected);
    }
}
