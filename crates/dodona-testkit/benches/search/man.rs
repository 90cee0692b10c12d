//! What a manual page does → the page, with its NAME section taken out.

use anyhow::Result;
use dodona_knowledge::search::FileChunks;

use crate::fetch;
use crate::sets::{self, Answer, Known, Set};

/// Where the pages come from: system calls, libraries, formats and everyday commands.
pub(crate) const PACKAGES: &[&str] = &[
    "coreutils",
    "git-man",
    "manpages",
    "manpages-dev",
    "python3.11-doc",
    "util-linux",
];

/// Requests that lay out a page and say nothing.
const LAYOUT: &[&str] = &[
    "TH", "Dd", "Dt", "Os", "ds", "de", "if", "ie", "el", "nr", "ft", "hy", "ad", "nh",
];

/// Builds the set.
pub(crate) fn set() -> Result<Set> {
    let root = fetch::debian(PACKAGES)?.join("usr/share/man");
    let sources = fetch::texts(&root, |path| path.starts_with("man"));
    let (mut files, mut known) = (Vec::new(), Vec::new());
    for (path, source) in sources {
        let Some(page) = Page::read(&source) else {
            continue;
        };
        let path = format!("{path}.txt");
        if page.does.split_whitespace().count() >= 3 {
            known.push(Known {
                question: page.does,
                path: path.clone(),
                line: 1,
                symbol: None,
            });
        }
        files.push(FileChunks::of(&path, &page.text));
    }
    let groups = sets::groups(&files, Answer::File);
    Ok(Set::new("man page", files, known, Answer::File, groups))
}

/// A manual page as plain text.
struct Page {
    /// What its NAME section says after the dash.
    does: String,
    /// Everything else.
    text: String,
}

impl Page {
    /// None for a page that only points to another, or that has no such line.
    fn read(source: &str) -> Option<Self> {
        let (mut name, mut does, mut text) = (String::new(), String::new(), String::new());
        let mut in_name = false;
        for line in source.lines() {
            let Some(request) = line.strip_prefix(['.', '\'']) else {
                let line = plain(line);
                let to = if in_name { &mut name } else { &mut text };
                to.push_str(&line);
                to.push(if in_name { ' ' } else { '\n' });
                continue;
            };
            let (request, rest) = request
                .trim_start()
                .split_once(' ')
                .unwrap_or((request, ""));
            let rest = plain(rest).replace('"', "");
            match request {
                "so" => return None,
                "Nd" => does = rest,
                "SH" | "Sh" => {
                    in_name = rest.trim().eq_ignore_ascii_case("name");
                    if !in_name {
                        text.push_str(&format!("\n{rest}\n"));
                    }
                }
                _ if request.starts_with('\\') || LAYOUT.contains(&request) => {}
                _ if in_name => name.push_str(&format!("{rest} ")),
                _ => text.push_str(&format!("{rest}\n")),
            }
        }
        if does.is_empty() {
            does = name.split_once(" - ")?.1.to_owned();
        }
        let does = does.trim().to_owned();
        Some(Self { does, text })
    }
}

/// A line without its escapes: fonts, sizes and special characters.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = escape.chars();
        rest = match chars.next() {
            Some('-') => {
                out.push('-');
                chars.as_str()
            }
            Some('e') => {
                out.push('\\');
                chars.as_str()
            }
            Some('f' | '*' | 'n') => after_name(chars.as_str()),
            Some('s') => chars
                .as_str()
                .trim_start_matches(|c: char| "+-0123456789".contains(c)),
            Some('(' | '[') => {
                out.push(' ');
                after_name(escape)
            }
            Some('"') => "",
            _ => chars.as_str(),
        };
    }
    out.push_str(rest);
    out
}

/// What follows a name of one letter, `(two` or `[many]`.
fn after_name(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        Some('[') => chars.as_str().split_once(']').map_or("", |(_, rest)| rest),
        Some('(') => chars.as_str().get(2..).unwrap_or_default(),
        _ => chars.as_str(),
    }
}
