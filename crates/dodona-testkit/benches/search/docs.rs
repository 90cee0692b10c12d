//! The title of a section of documentation → the section, with every title taken out.

use anyhow::Result;
use dodona_knowledge::search::FileChunks;

use crate::fetch;
use crate::man::PACKAGES;
use crate::sets::{self, Answer, Known, Set};

/// A section with less text has nothing by which it could be found.
const FEWEST_WORDS: usize = 20;

/// Whether the titles stay where they are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Titles {
    /// Neither a section nor those below it have a title: only what is written is searched.
    Removed,
    /// As in real life.
    Kept,
}

/// Builds the set, from the documentation of Python.
pub(crate) fn set(titles: Titles) -> Result<Set> {
    let root = fetch::debian(PACKAGES)?.join("usr/share/doc/python3.11/html/_sources");
    let (mut files, mut known, mut heads) = (Vec::new(), Vec::new(), Vec::<Vec<u32>>::new());
    for (path, source) in fetch::texts(&root, |path| path.ends_with(".rst.txt")) {
        let path = path.replace(".rst.txt", ".md");
        let (text, sections) = markdown(&source);
        let file = FileChunks::of(&path, &text);
        for section in &sections {
            if section.words >= FEWEST_WORDS && section.title.split_whitespace().count() >= 2 {
                known.push(Known {
                    question: section.title.clone(),
                    path: path.clone(),
                    line: section.line,
                    symbol: None,
                });
            }
        }
        heads.push(sections.iter().map(|section| section.line).collect());
        files.push(file);
    }
    // Before the titles go: the parts of a long section are one answer.
    let groups = sets::groups(&files, Answer::Symbol);
    let name = match titles {
        Titles::Removed => "doc section",
        Titles::Kept => "doc section, titles kept",
    };
    if titles == Titles::Removed {
        let both = files.iter_mut().zip(&heads);
        both.for_each(|(file, heads)| untitle(file, heads));
    }
    Ok(Set::new(name, files, known, Answer::Symbol, groups))
}

/// Takes the titles out of a file; the lines that had them stay, empty.
fn untitle(file: &mut FileChunks, heads: &[u32]) {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    file.title = name.to_owned();
    for chunk in &mut file.chunks {
        chunk.heading.clear();
        chunk.symbol.clear();
        let lines = chunk.text.lines().zip(chunk.line_start..);
        let kept = lines.map(|(line, number)| if heads.contains(&number) { "" } else { line });
        chunk.text = kept.collect::<Vec<_>>().join("\n");
    }
}

struct Section {
    title: String,
    line: u32,
    words: usize,
}

/// Turns reStructuredText into Markdown as far as titles go, line by line.
fn markdown(source: &str) -> (String, Vec<Section>) {
    let lines: Vec<&str> = source.lines().collect();
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let mut sections: Vec<Section> = Vec::new();
    // The order in which kinds of underline first appear tells their level.
    let mut levels: Vec<(char, bool)> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let rule = |index: usize| lines.get(index).copied().and_then(adornment);
        let over = rule(at).filter(|c| rule(at + 2) == Some(*c));
        let titled = |index: usize| {
            let line = lines.get(index).copied().unwrap_or_default();
            !line.trim().is_empty() && !line.starts_with("..") && adornment(line).is_none()
        };
        let under = || {
            let line = lines[at];
            let long = lines
                .get(at + 1)
                .is_some_and(|l| l.trim_end().len() + 2 >= line.trim_end().len());
            rule(at + 1).filter(|_| titled(at) && !line.starts_with(' ') && long)
        };
        let (key, title, took) = match (over, under()) {
            (Some(c), _) if titled(at + 1) => ((c, true), lines[at + 1], 3),
            (_, Some(c)) => ((c, false), lines[at], 2),
            _ => {
                if let Some(section) = sections.last_mut() {
                    section.words += lines[at].split_whitespace().count();
                }
                // The anchor of a title is the title in other letters, and stands above it: in the
                // section before.
                let anchor = lines[at].starts_with(".. _") && lines[at].ends_with(':');
                out.push(if anchor { "" } else { lines[at] }.to_owned());
                at += 1;
                continue;
            }
        };
        let level = levels
            .iter()
            .position(|known| *known == key)
            .unwrap_or_else(|| {
                levels.push(key);
                levels.len() - 1
            });
        sections.push(Section {
            title: without_roles(title),
            line: u32::try_from(out.len()).unwrap_or(u32::MAX) + 1,
            words: 0,
        });
        out.push(format!("{} {}", "#".repeat(level.min(5) + 1), title.trim()));
        out.extend(std::iter::repeat_n(String::new(), took - 1));
        at += took;
    }
    (out.join("\n"), sections)
}

/// The character of a line that underlines a title.
fn adornment(line: &str) -> Option<char> {
    let line = line.trim_end();
    let first = line
        .chars()
        .next()
        .filter(|c| "=-~^\"'*+#<>:.`_".contains(*c))?;
    (line.len() >= 3 && line.chars().all(|c| c == first)).then_some(first)
}

/// A title as people read it: ":mod:`json` --- JSON" is "json --- JSON".
fn without_roles(title: &str) -> String {
    let mut out = String::new();
    for (index, piece) in title.split('`').enumerate() {
        let piece = match index % 2 {
            0 => {
                let cut = piece.rfind(char::is_whitespace).map_or(0, |at| at + 1);
                let (before, role) = piece.split_at(cut);
                let is_role = role.len() > 2 && role.starts_with(':') && role.ends_with(':');
                if is_role { before } else { piece }
            }
            _ => piece.trim_start_matches(['!', '~']),
        };
        out.push_str(piece);
    }
    out.replace('*', "").trim().to_owned()
}
