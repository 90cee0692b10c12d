//! Markdown as it is written, tag by tag.

use dodona_plugin::http::Url;

/// How deep lists and quotes are indented; what is deeper stays there.
const DEEPEST: usize = 6;

/// Text on its way to Markdown.
pub(super) struct Ink {
    base: Url,
    out: String,
    /// What has to come before the next text: nothing, a space, the end of a line or a blank line.
    gap: Gap,
    lists: Vec<List>,
    quotes: usize,
    /// How many there were around the last line.
    quotes_before: usize,
    /// In preformatted text, where every space counts.
    pre: bool,
    code: bool,
    link: Option<(String, usize)>,
    row: Option<Row>,
    /// Whether the table has had its first row.
    in_table: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Block,
}

/// The number of the next item; none for a list without numbers.
struct List(Option<u32>);

/// A row of a table: where its cell began, and how many there were.
struct Row {
    cells: usize,
}

impl Ink {
    pub(super) fn new(base: Url) -> Self {
        Self {
            base,
            out: String::new(),
            gap: Gap::None,
            lists: Vec::new(),
            quotes: 0,
            quotes_before: 0,
            pre: false,
            code: false,
            link: None,
            row: None,
            in_table: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn finish(mut self) -> String {
        self.end_pre();
        self.end_link();
        self.out
    }

    /// Begins a new block with the next text.
    pub(super) fn block(&mut self) {
        self.end_link();
        // A cell is one line.
        let gap = if self.row.is_some() {
            Gap::Space
        } else {
            Gap::Block
        };
        self.gap = self.gap.max(gap);
    }

    fn line(&mut self) {
        let gap = if self.row.is_some() {
            Gap::Space
        } else {
            Gap::Line
        };
        self.gap = self.gap.max(gap);
    }

    /// Writes text as it stands in the page.
    pub(super) fn text(&mut self, text: &str) {
        if self.pre {
            self.write(text);
            return;
        }
        let mut words = text.split([' ', '\t', '\n', '\r', '\u{c}']).peekable();
        while let Some(word) = words.next() {
            if !word.is_empty() {
                let word = word.replace('\u{a0}', " ");
                match self.row.is_some() {
                    true => self.write(&word.replace('|', "\\|")),
                    false => self.write(&word),
                }
            }
            if words.peek().is_some() {
                self.gap = self.gap.max(Gap::Space);
            }
        }
    }

    /// Writes something after whatever gap has to come before it.
    fn write(&mut self, text: &str) {
        self.close_gap();
        self.out.push_str(text);
    }

    fn close_gap(&mut self) {
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        if self.out.is_empty() && gap != Gap::Block {
            return self.indent();
        }
        match gap {
            Gap::None => {}
            Gap::Space if self.out.ends_with([' ', '\n']) => {}
            Gap::Space => self.out.push(' '),
            Gap::Line => {
                self.out.push('\n');
                self.indent();
            }
            Gap::Block => {
                if !self.out.is_empty() {
                    self.out.push('\n');
                    if self.quotes.min(self.quotes_before) > 0 {
                        self.out.push('>');
                    }
                    self.out.push('\n');
                }
                self.indent();
            }
        }
    }

    fn indent(&mut self) {
        self.quotes_before = self.quotes;
        for _ in 0..self.quotes.min(DEEPEST) {
            self.out.push_str("> ");
        }
        for _ in 1..self.lists.len().min(DEEPEST) {
            self.out.push_str("  ");
        }
    }

    /// A tag that is neither left out nor a part of its own.
    pub(super) fn tag(
        &mut self,
        name: &str,
        opens: bool,
        attribute: impl Fn(&str) -> Option<String>,
    ) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(name, opens),
            "p" | "div" | "section" | "header" | "footer" | "nav" | "aside" | "figure" | "dl"
            | "details" | "address" | "fieldset" | "hgroup" => self.block(),
            "figcaption" | "dt" | "dd" | "summary" | "caption" | "legend" => self.line(),
            "br" => self.line(),
            "hr" if opens => {
                self.block();
                self.write("---");
                self.block();
            }
            "b" | "strong" => self.around("**", opens),
            "i" | "em" | "cite" => self.around("*", opens),
            "code" | "kbd" | "samp" | "tt" if !self.pre => {
                self.code = opens;
                self.around("`", opens);
            }
            "pre" => match opens {
                true => self.begin_pre(),
                false => self.end_pre(),
            },
            "blockquote" => {
                self.block();
                self.quotes = match opens {
                    true => self.quotes + 1,
                    false => self.quotes.saturating_sub(1),
                };
            }
            "ul" | "ol" | "menu" => self.list(name == "ol", opens),
            "li" if opens => self.item(),
            "a" if opens => self.begin_link(attribute("href")),
            "a" => self.end_link(),
            "img" if opens => self.image(attribute("src"), attribute("alt")),
            "table" | "tr" | "td" | "th" => self.table(name, opens),
            _ => {}
        }
    }

    fn heading(&mut self, name: &str, opens: bool) {
        self.block();
        if opens {
            let level = name.as_bytes().get(1).map_or(1, |digit| digit - b'0');
            self.write(&"#".repeat(usize::from(level)));
            self.gap = Gap::Space;
        }
    }

    /// A mark before or after text. The space goes outside of it.
    fn around(&mut self, mark: &str, opens: bool) {
        if self.pre {
            return;
        }
        match opens {
            true => self.write(mark),
            // Nothing was marked.
            false if self.out.ends_with(mark) && self.gap == Gap::None => {
                self.out.truncate(self.out.len() - mark.len());
            }
            false => self.out.push_str(mark),
        }
    }

    fn begin_pre(&mut self) {
        self.block();
        if self.row.is_none() && !self.pre {
            self.write("```\n");
            self.pre = true;
        }
    }

    fn end_pre(&mut self) {
        if std::mem::take(&mut self.pre) {
            if !self.out.ends_with('\n') {
                self.out.push('\n');
            }
            self.out.push_str("```");
            self.block();
        }
    }

    fn list(&mut self, numbered: bool, opens: bool) {
        match (opens, self.lists.is_empty()) {
            (true, true) => self.block(),
            (true, false) => self.line(),
            (false, _) => {}
        }
        match opens {
            true => self.lists.push(List(numbered.then_some(1))),
            false => drop(self.lists.pop()),
        }
        if !opens && self.lists.is_empty() {
            self.block();
        }
    }

    fn item(&mut self) {
        self.end_link();
        if self.gap != Gap::Block {
            self.line();
        }
        let mark = match self.lists.last_mut() {
            Some(List(Some(number))) => {
                *number += 1;
                format!("{}.", *number - 1)
            }
            _ => "-".to_owned(),
        };
        self.write(&mark);
        self.gap = Gap::Space;
    }

    fn begin_link(&mut self, href: Option<String>) {
        self.end_link();
        let url = href.and_then(|href| self.base.join(&href).ok());
        let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else {
            return;
        };
        if self.pre || self.code {
            return;
        }
        self.close_gap();
        self.link = Some((url.to_string(), self.out.len()));
    }

    /// A link around text that is there; one around nothing is none.
    fn end_link(&mut self) {
        let Some((url, start)) = self.link.take() else {
            return;
        };
        let Some(text) = self.out.get(start..) else {
            return;
        };
        if text.trim().is_empty() || text.contains('\n') {
            return;
        }
        let url = url.replace('(', "%28").replace(')', "%29");
        self.out.insert(start, '[');
        self.out.push_str("](");
        self.out.push_str(&url);
        self.out.push(')');
    }

    fn image(&mut self, src: Option<String>, alt: Option<String>) {
        let alt = alt.unwrap_or_default();
        let url = src.and_then(|src| self.base.join(&src).ok());
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let (Some(url), false) = (url, alt.trim().is_empty()) else {
            return;
        };
        let alt = alt.replace(['[', ']', '\n', '|'], " ");
        self.write(&format!("![{}]({url})", alt.trim()));
    }

    fn table(&mut self, name: &str, opens: bool) {
        match (name, opens) {
            ("table", _) => {
                self.end_row();
                self.in_table = false;
                self.block();
            }
            ("tr", true) => {
                self.end_row();
                self.gap = self.gap.max(Gap::Line);
                self.write("|");
                self.row = Some(Row { cells: 0 });
            }
            ("tr", false) => self.end_row(),
            (_, true) if self.row.is_some() => self.gap = Gap::Space,
            (_, false) => {
                if let Some(row) = &mut self.row {
                    row.cells += 1;
                    self.gap = Gap::None;
                    self.end_link();
                    self.out.push_str(" |");
                }
            }
            _ => {}
        }
    }

    /// Ends a row; the first one of a table is its heading.
    fn end_row(&mut self) {
        let Some(row) = self.row.take() else { return };
        self.gap = Gap::Line;
        if !std::mem::replace(&mut self.in_table, true) && row.cells > 0 {
            let rule = format!("|{}", "---|".repeat(row.cells));
            self.write(&rule);
            self.gap = Gap::Line;
        }
    }
}
