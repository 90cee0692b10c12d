//! From a file's text to what can be found in it.
//!
//! [`parse`] never fails and never panics, whatever it is given: a note becomes sections, code
//! becomes symbols, everything else (and whatever cannot be understood in time) becomes windows
//! of lines. In every case each line with text is in exactly one chunk, the frontmatter of a
//! note excepted.

mod code;
mod lines;
pub(crate) mod markdown;
#[cfg(test)]
mod tests;
mod window;

use dodona_proto::SourceKind;

use self::lines::Lines;

/// A passage that is found and cited as one: a section of a note, a function, a window of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The first line, from 1.
    pub line_start: u32,
    /// The last line.
    pub line_end: u32,
    /// The headings above a passage of a note, outermost first, joined by ` › `; the containers
    /// of a symbol likewise. Empty at the top.
    pub heading: String,
    /// The name of the function, type or section; empty where there is none. Where short
    /// sections share a chunk their names are joined by ` · `.
    pub symbol: String,
    /// The text of those lines, joined by `\n` also where the file has `\r\n`.
    pub text: String,
}

/// Something that is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// `function`, `method`, `class`, `interface`, `module`, `macro`, `type`, `constant`.
    pub(crate) kind: String,
    /// The symbols it is inside of, outermost first, joined by ` › `.
    pub(crate) container: String,
    /// The first line, that of its doc comment, attribute or decorator where it has one.
    pub(crate) line_start: u32,
    pub(crate) line_end: u32,
    /// The line that names it, trimmed: what a list shows.
    pub(crate) signature: String,
}

/// A place where something is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) line: u32,
}

/// A link from a note to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The note as written, without heading and alias: `note`, `folder/note`; for a Markdown
    /// link the decoded path. Empty for a link to a heading of the same note.
    pub(crate) target: String,
    /// What follows the `#`.
    pub(crate) heading: Option<String>,
    /// What follows the `|`, or the text of a Markdown link.
    pub(crate) alias: Option<String>,
    pub(crate) line: u32,
}

/// Everything that is found in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// A note's title (frontmatter, first heading or file name), or the file's name.
    pub(crate) title: String,
    /// The language of code, such as `rust`.
    pub(crate) language: Option<&'static str>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) references: Vec<Reference>,
    pub(crate) links: Vec<Link>,
    /// Without the `#`, in the order of their first use.
    pub(crate) tags: Vec<String>,
    /// Other names of a note, from its frontmatter: a wikilink may use any of them.
    pub(crate) aliases: Vec<String>,
}

/// What joins the names of containers and headings.
const PATH_SEPARATOR: &str = " › ";

/// What a file is, by its name.
pub(crate) fn kind_of(path: &str) -> SourceKind {
    let extension = extension(path);
    if markdown::EXTENSIONS.contains(&extension.as_str()) {
        SourceKind::Note
    } else if code::is_code(&extension) {
        SourceKind::Code
    } else {
        SourceKind::Text
    }
}

/// Reads a file. Never fails: what cannot be understood is cut into windows of lines.
pub(crate) fn parse(path: &str, text: &str) -> Parsed {
    match kind_of(path) {
        SourceKind::Note => markdown::parse(file_stem(path), text),
        SourceKind::Code => Parsed {
            title: file_name(path).to_owned(),
            ..code::parse(&extension(path), text)
        },
        SourceKind::Text
        | SourceKind::Commit
        | SourceKind::Thread
        | SourceKind::Web
        | SourceKind::Context => Parsed {
            title: file_name(path).to_owned(),
            chunks: window::chunks(&Lines::new(text)),
            ..Parsed::default()
        },
    }
}

/// The last part of a path, with either separator: an index may be read on another system.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The name without its extension; a name that is nothing but an extension stays.
fn file_stem(path: &str) -> &str {
    let name = file_name(path);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// The extension in lower case without the dot; empty where there is none.
fn extension(path: &str) -> String {
    match file_name(path).rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension.to_lowercase(),
        _ => String::new(),
    }
}
